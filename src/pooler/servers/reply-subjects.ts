/** Subjects of entries in a reply queue: what is to be noted or said when the answer comes. */
import type { ErrorFields } from '../../wire/error-fields.js';
import type { TransactionStatus } from '../../wire/message-types.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import type { Subject } from './reply-queue.js';
import type { Preparation } from './server-statements.js';

/** Answer that the pooler gives in the server's place, once the Query reaches the head of the queue. */
export interface LocalReply {
  write(writer: MessageWriter, status: TransactionStatus): void;
}

/** Error that the client gets in place of the server's, where that has a certain code. */
export interface Replacement {
  readonly error: ErrorFields;
  readonly insteadOf: string;
}

/** A statement that a client has named. */
export interface NamedStatement extends Preparation {
  /** The client's name for it. */
  readonly nameBytes: Buffer;
}

export function isPreparation(subject: Subject): subject is Preparation {
  return (subject as Partial<Preparation> | undefined)?.copy !== undefined;
}

/** The parts that running a client's statements needs. */

import type { Dialect } from '../../dialect/judgement.js';
import type { Conflicts } from '../conflicts/conflicts.js';
import type { Participant } from '../conflicts/participant.js';
import type { Message } from './channel.js';
import type { SessionHooks, TransactionLimits } from './settings.js';

export interface RunOptions {
  readonly participant: Participant;
  readonly conflicts: Conflicts;
  readonly dialect: Dialect;
  readonly limits: TransactionLimits;
  readonly hooks: SessionHooks;
  /** Sends bytes of an answer to the client. */
  readonly send: (source: Buffer, start?: number, end?: number) => void;
  /** The client's next message, while it sends the rows of a COPY; undefined when it has left, or `isOver` tells that none is wanted. */
  readonly next: (isOver: Promise<unknown>) => Promise<Message | undefined>;
  /** True if the statement that runs is the last before COMMIT of a transaction that the stand-in has begun. */
  readonly isLast: () => boolean;
  /** Cancels what PostgreSQL does in this session; resolves when that can't hit a later request any more. */
  readonly cancel: () => Promise<void>;
  /** A message of PostgreSQL's was sent to the client. */
  readonly answered: (type: number) => void;
}

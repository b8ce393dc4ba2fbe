/** One way in which a client proves that it knows its password: what it is asked, and what its answers are worth. */
import type { MessageWriter } from '../../wire/message-writer.js';
import type { ScramKeyCache, ScramKeys } from './scram-keys.js';
import type { Secret } from './secret.js';
import type { UnknownUsers } from './unknown-users.js';

/** Whose password is proved, with what. */
export interface Claim {
  readonly user: string;
  /** Of a user that does not exist: one that nobody knows the password of. */
  readonly secret: Secret;
  /** The secret that has taken its place meanwhile, where there is one. */
  readonly newerSecret: () => Promise<Secret | undefined>;
}

/** What a client has shown besides. */
export interface Proof {
  readonly scramKeys?: ScramKeys;
  readonly clearPassword?: Buffer;
}

/** `more`: the client is asked again. `wrong`: it does not know the password. */
export type Verdict = 'more' | 'wrong' | Proof;

export interface Exchange {
  /** Writes what the client is asked first. */
  begin(writer: MessageWriter): void;
  /**
   * Takes a PasswordMessage with its header, which is read before the first pause; writes what is sent in return. Throws a
   * SaslMessageError or a ProtocolViolationError for what is no answer.
   */
  answer(source: Buffer, start: number, end: number, writer: MessageWriter): Promise<Verdict>;
}

export interface ExchangeTools {
  readonly keys: ScramKeyCache;
  readonly unknownUsers: UnknownUsers;
  readonly randomBytes: (count: number) => Buffer;
}

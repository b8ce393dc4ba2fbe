/** A method by which a client proves that it knows its password: the requests to the client, and the check of its answers. */
import type { MessageWriter } from '../../wire/message-writer.js';
import type { ScramKeyCache, ScramKeys } from './scram-keys.js';
import type { Secret } from './secret.js';
import type { UnknownUsers } from './unknown-users.js';

/** The user, and the secret to check the password with. */
export interface Claim {
  readonly user: string;
  /** For a missing user, a secret made of random bytes, without a known password. */
  readonly secret: Secret;
  readonly isKnown: boolean;
  /** Secret that has replaced `secret` meanwhile, if any. */
  readonly newerSecret: () => Promise<Secret | undefined>;
}

/** Secrets that the client has shown in the exchange. */
export interface Proof {
  readonly scramKeys?: ScramKeys;
  readonly clearPassword?: Buffer;
}

/** `more`: the client is asked again. `wrong`: the password is wrong. */
export type Verdict = 'more' | 'wrong' | Proof;

export interface Exchange {
  /** Writes the first request to the client. */
  begin(writer: MessageWriter): void;
  /**
   * Takes a PasswordMessage with its header, which is read before the first pause; writes the reply. Throws a SaslMessageError
   * or a ProtocolViolationError for an invalid answer.
   */
  answer(source: Buffer, start: number, end: number, writer: MessageWriter): Promise<Verdict>;
}

export interface ExchangeTools {
  readonly keys: ScramKeyCache;
  readonly unknownUsers: UnknownUsers;
  readonly randomBytes: (count: number) => Buffer;
}

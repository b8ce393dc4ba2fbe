/** SCRAM-SHA-256 as the client, with a server whose identity is not certain. */
import { timingSafeEqual } from 'node:crypto';
import { channelBindingType } from './channel-binding.js';
import { SaslMessageError } from './errors.js';
import { exclusiveOr, hmac, type ScramKeys, storedKeyOf } from './scram-keys.js';
import {
  type BindingFlag,
  readServerFinal,
  readServerFirst,
  type ServerFirst,
  scramMechanism,
  scramPlusMechanism,
} from './scram-messages.js';

/** Limit of iterations that a server may ask for, since they cost processor time. PostgreSQL's default is 4096. */
const mostIterations = 1_000_000;

export interface ScramClientOptions {
  /** Mechanisms that the server offers. */
  readonly mechanisms: readonly string[];
  /** Printable, without a comma, and never used before. */
  readonly nonce: string;
  /** Data for channel binding; none without TLS, or where the certificate does not support it. */
  readonly endPoint: Buffer | undefined;
}

export class ScramClient {
  readonly mechanism: string;
  readonly #header: string;
  readonly #bound: Buffer;
  readonly #bare: string;
  readonly #nonce: string;
  #serverFirst: ServerFirst | undefined;
  #expectedSignature: Buffer | undefined;

  constructor({ mechanisms, nonce, endPoint }: ScramClientOptions) {
    const isBound = endPoint !== undefined && mechanisms.includes(scramPlusMechanism);
    const flag: BindingFlag = isBound ? 'p' : endPoint === undefined ? 'n' : 'y';
    this.mechanism = isBound ? scramPlusMechanism : scramMechanism;
    this.#header = isBound ? `p=${channelBindingType},,` : `${flag},,`;
    this.#bound = isBound ? endPoint : Buffer.alloc(0);
    this.#nonce = nonce;
    // PostgreSQL takes the user from the startup packet, and ignores a name here.
    this.#bare = `n=,r=${nonce}`;
  }

  /** The server offers a supported mechanism. */
  static isPossible({ mechanisms, endPoint }: Omit<ScramClientOptions, 'nonce'>): boolean {
    return (
      mechanisms.includes(scramMechanism) ||
      (endPoint !== undefined && mechanisms.includes(scramPlusMechanism))
    );
  }

  get clientFirst(): Buffer {
    return Buffer.from(this.#header + this.#bare, 'latin1');
  }

  /** Takes the server-first-message. Returns the parameters to derive the keys with. */
  readServerFirst(data: Buffer): ServerFirst {
    const first = readServerFirst(data);
    if (this.#serverFirst !== undefined) throw new SaslMessageError('The server began SCRAM a second time.');
    if (first.nonce.length <= this.#nonce.length || !first.nonce.startsWith(this.#nonce))
      throw new SaslMessageError('The server did not go on with our nonce.');
    if (first.iterations > mostIterations)
      throw new SaslMessageError(
        `The server asks for ${first.iterations} iterations, and at most ${mostIterations} are made.`,
      );
    this.#serverFirst = first;
    return first;
  }

  /** The client-final-message. */
  clientFinal({ clientKey, serverKey }: ScramKeys): Buffer {
    const first = this.#serverFirst;
    if (first === undefined) throw new SaslMessageError('The server ended SCRAM before it began.');
    const binding = Buffer.concat([Buffer.from(this.#header, 'latin1'), this.#bound]).toString('base64');
    const withoutProof = `c=${binding},r=${first.nonce}`;
    const signed = `${this.#bare},${first.text},${withoutProof}`;
    const proof = exclusiveOr(clientKey, hmac(storedKeyOf(clientKey), signed)).toString('base64');
    this.#expectedSignature = hmac(serverKey, signed);
    return Buffer.from(`${withoutProof},p=${proof}`, 'latin1');
  }

  /** Takes the server-final-message: `proved` if the server knows the secret, too, `forged` if not, or the reason of its refusal. */
  judgeServerFinal(data: Buffer): 'proved' | 'forged' | { readonly refusal: string } {
    const expected = this.#expectedSignature;
    if (expected === undefined)
      throw new SaslMessageError('The server ended SCRAM before our proof, or twice.');
    this.#expectedSignature = undefined;
    const answer = readServerFinal(data);
    if (typeof answer === 'string') return { refusal: answer };
    return timingSafeEqual(answer, expected) ? 'proved' : 'forged';
  }
}

/** SCRAM-SHA-256 as the server: two messages of the client in, two answers out. */
import { timingSafeEqual } from 'node:crypto';
import { SqlState } from '../../wire/sql-states.js';
import { SaslMessageError } from './errors.js';
import { exclusiveOr, hmac, type ScramKeys, storedKeyOf } from './scram-keys.js';
import { type ClientFirst, readClientFinal, readClientFirst } from './scram-messages.js';

/** Data to check a proof with. Salt and iteration count are sent first; the keys may be ready later. */
export interface ScramVerifier {
  readonly salt: Buffer;
  readonly iterations: number;
  readonly keys:
    | { readonly storedKey: Buffer; readonly serverKey: Buffer }
    | Promise<{ readonly storedKey: Buffer; readonly serverKey: Buffer }>;
}

export interface ScramServerOptions {
  readonly verifier: ScramVerifier;
  /** Printable, without a comma, and never used before. */
  readonly nonce: string;
  /** Data for channel binding, where that mechanism was offered. */
  readonly endPoint: Buffer | undefined;
  /** The client chose the mechanism with channel binding. */
  readonly isBound: boolean;
}

/** The client knows the password; `message` proves to it that the pooler knows its secret. */
export interface ScramSuccess {
  readonly message: Buffer;
  readonly keys: ScramKeys;
}

export class ScramServer {
  readonly #options: ScramServerOptions;
  #clientFirst: ClientFirst | undefined;
  #serverFirst = '';

  constructor(options: ScramServerOptions) {
    this.#options = options;
  }

  /** Takes the client-first-message, and returns the server-first-message. */
  begin(data: Buffer): Buffer {
    const first = readClientFirst(data);
    const { verifier, nonce, endPoint, isBound } = this.#options;
    if (isBound !== (first.flag === 'p'))
      throw new SaslMessageError('The mechanism and the flag for channel binding do not belong together.');
    // An attacker in between may have removed the better mechanism from the list.
    if (first.flag === 'y' && endPoint !== undefined)
      throw new SaslMessageError(
        'The client supports channel binding and thinks that the server does not, but it does.',
        SqlState.invalidAuthorization,
      );
    this.#clientFirst = first;
    const salt = verifier.salt.toString('base64');
    this.#serverFirst = `r=${first.nonce}${nonce},s=${salt},i=${verifier.iterations}`;
    return Buffer.from(this.#serverFirst, 'latin1');
  }

  /** Takes the client-final-message. `undefined`: the proof is wrong. Reads `data` before it returns. */
  async finish(data: Buffer): Promise<ScramSuccess | undefined> {
    const first = this.#clientFirst;
    if (first === undefined) throw new SaslMessageError('The client ended SCRAM before it began.');
    const final = readClientFinal(data);
    const { verifier, nonce } = this.#options;
    if (final.nonce !== `${first.nonce}${nonce}`)
      throw new SaslMessageError('Invalid SCRAM response: its nonce is not the one that was agreed on.');
    if (final.binding !== this.#expectedBinding(first))
      throw new SaslMessageError('Invalid SCRAM response: the channel binding does not match.');

    const { storedKey, serverKey } = await verifier.keys;
    const signed = `${first.bare},${this.#serverFirst},${final.withoutProof}`;
    const clientKey = exclusiveOr(final.proof, hmac(storedKey, signed));
    if (!timingSafeEqual(storedKeyOf(clientKey), storedKey)) return undefined;
    const signature = hmac(serverKey, signed).toString('base64');
    const { salt, iterations } = verifier;
    return { message: Buffer.from(`v=${signature}`), keys: { salt, iterations, clientKey, serverKey } };
  }

  #expectedBinding({ header, flag }: ClientFirst): string {
    const { endPoint } = this.#options;
    const bound = flag === 'p' && endPoint !== undefined ? endPoint : Buffer.alloc(0);
    return Buffer.concat([Buffer.from(header, 'latin1'), bound]).toString('base64');
  }
}

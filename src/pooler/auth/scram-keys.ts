/** Keys that SCRAM-SHA-256 derives from a password (RFC 5802, RFC 7677), and a cache for them, since deriving is costly. */
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { preparePassword } from './saslprep.js';

/** Bytes of every key, signature and proof. */
export const scramKeyBytes = 32;

/** Keys that prove knowledge of the password to a server, as long as its secret has this salt and iteration count. */
export interface ScramKeys {
  readonly salt: Buffer;
  readonly iterations: number;
  readonly clientKey: Buffer;
  readonly serverKey: Buffer;
}

/** Takes milliseconds of processor time, in a thread of Node's pool. */
export async function deriveScramKeys(
  password: string | Buffer,
  salt: Buffer,
  iterations: number,
): Promise<ScramKeys> {
  const salted = await new Promise<Buffer>((resolve, reject) => {
    pbkdf2(preparePassword(password), salt, iterations, scramKeyBytes, 'sha256', (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
  return { salt, iterations, clientKey: hmac(salted, 'Client Key'), serverKey: hmac(salted, 'Server Key') };
}

export function storedKeyOf(clientKey: Buffer): Buffer {
  return createHash('sha256').update(clientKey).digest();
}

/** SCRAM texts stand for the bytes that arrived, one character each. */
export function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text, 'latin1').digest();
}

export function exclusiveOr(one: Buffer, other: Buffer): Buffer {
  return Buffer.from(one.map((byte, index) => byte ^ (other[index] as number)));
}

/**
 * Cache of keys for the pooler's own passwords, such as those for servers and those of the user list. It does not keep the
 * passwords. Do not use it for clients' guesses: they would displace the rest.
 */
export class ScramKeyCache {
  readonly #known: BoundedMap<string, Promise<ScramKeys>>;
  readonly #digestKey = randomBytes(scramKeyBytes);
  /** Limit of kept keys. */
  readonly most: number;

  constructor(most = 1_000) {
    this.most = most;
    this.#known = new BoundedMap(most);
  }

  get size(): number {
    return this.#known.size;
  }

  /** Concurrent calls for the same keys share one derivation. */
  derive(password: string | Buffer, salt: Buffer, iterations: number): Promise<ScramKeys> {
    const digest = this.#digest(password, salt, iterations);
    const known = this.#known.get(digest);
    if (known !== undefined) return known;
    const keys = deriveScramKeys(password, Buffer.from(salt), iterations);
    this.#known.set(digest, keys);
    keys.catch(() => this.#known.delete(digest));
    return keys;
  }

  #digest(password: string | Buffer, salt: Buffer, iterations: number): string {
    return createHmac('sha256', this.#digestKey)
      .update(`${iterations} ${salt.length} `)
      .update(salt)
      .update(password)
      .digest('base64');
  }
}

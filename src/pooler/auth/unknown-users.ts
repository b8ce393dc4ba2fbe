/**
 * Secrets for users that do not exist, so that a client can't tell them from existing users: a secret without a known
 * password, always the same for the same name. The exchange runs with it as usual, and fails.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { scramKeyBytes } from './scram-keys.js';
import { type ScramSecret, type Secret, usualIterations, usualSaltBytes } from './secret.js';

/** Visible properties of a secret. */
export interface SecretLook {
  readonly kind: Secret['kind'];
  readonly iterations: number;
  readonly saltBytes: number;
}

const usualLook: SecretLook = { kind: 'scram', iterations: usualIterations, saltBytes: usualSaltBytes };

export class UnknownUsers {
  readonly #key: Buffer;
  readonly look: SecretLook;

  /** `key`: random, and kept over restarts where possible, because it determines the salts of unknown users. */
  constructor(look: SecretLook = usualLook, key: Buffer = randomBytes(scramKeyBytes)) {
    this.look = look;
    this.#key = key;
  }

  secretOf(user: string): Secret {
    switch (this.look.kind) {
      case 'scram':
        return this.scramSecretOf(user);
      case 'md5':
        return { kind: 'md5', hash: this.#derive('md5', user).toString('hex', 0, 16) };
      case 'plain':
        return { kind: 'plain', password: this.#derive('password', user).toString('base64') };
    }
  }

  scramSecretOf(user: string): ScramSecret {
    return {
      kind: 'scram',
      iterations: this.look.iterations,
      salt: this.saltOf(user),
      storedKey: this.#derive('stored key', user),
      serverKey: this.#derive('server key', user),
    };
  }

  /** Also used for users whose password itself is stored, since they have no salt. */
  saltOf(user: string): Buffer {
    return this.#derive('salt', user).subarray(0, this.look.saltBytes);
  }

  #derive(what: string, user: string): Buffer {
    return createHmac('sha256', this.#key).update(`${what} `).update(user).digest();
  }
}

/** The most common properties among the secrets, for unknown users to blend in. `iterations`: for secrets without a count of their own. */
export function lookOfMost(secrets: Iterable<Secret>, iterations = usualIterations): SecretLook {
  const looks = new Map<string, { readonly look: SecretLook; count: number }>();
  let most = { look: { ...usualLook, iterations }, count: 0 };
  for (const secret of secrets) {
    const look = lookOf(secret, iterations);
    const key = `${look.kind} ${look.iterations} ${look.saltBytes}`;
    const entry = looks.get(key) ?? { look, count: 0 };
    looks.set(key, entry);
    entry.count++;
    if (entry.count > most.count) most = entry;
  }
  return most.look;
}

function lookOf(secret: Secret, iterations: number): SecretLook {
  if (secret.kind !== 'scram') return { kind: secret.kind, iterations, saltBytes: usualSaltBytes };
  const saltBytes = Math.min(secret.salt.length, scramKeyBytes);
  return { kind: 'scram', iterations: secret.iterations, saltBytes };
}

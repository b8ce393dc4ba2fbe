/** Checks a password in clear text against the stored secret of any kind. */
import { isSameSecret } from './constant-time.js';
import { md5Hash } from './md5.js';
import { deriveScramKeys, storedKeyOf } from './scram-keys.js';
import type { Secret } from './secret.js';

export async function isPasswordOf(password: Buffer, user: string, secret: Secret): Promise<boolean> {
  switch (secret.kind) {
    case 'plain':
      return isSameSecret(password, secret.password);
    case 'md5':
      return isSameSecret(md5Hash(password, user), secret.hash);
    case 'scram': {
      const { clientKey } = await deriveScramKeys(password, secret.salt, secret.iterations);
      return isSameSecret(storedKeyOf(clientKey), secret.storedKey);
    }
  }
}

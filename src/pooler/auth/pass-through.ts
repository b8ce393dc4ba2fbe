/** Credentials for a login at the server that a client's login provides. */
import type { Login } from './client-authentication.js';
import type { Secret } from './secret.js';
import type { ServerCredentials } from './server-authentication.js';

/** The best available credentials: the password, the keys that the client showed, or the stored md5 hash. */
export function credentialsOfLogin({ clearPassword, secret, scramKeys }: Login): ServerCredentials {
  if (clearPassword !== undefined) return { kind: 'password', password: clearPassword };
  const stored = credentialsOfSecret(secret);
  // Keys of a password stored in clear text use the pooler's own salt, which no server has.
  if (stored.kind === 'none' && scramKeys !== undefined) return { kind: 'scramKeys', keys: scramKeys };
  return stored;
}

/** Credentials without a client's login. By design, a SCRAM secret alone allows no login. */
export function credentialsOfSecret(secret: Secret | undefined): ServerCredentials {
  if (secret?.kind === 'plain') return { kind: 'password', password: secret.password };
  if (secret?.kind === 'md5') return { kind: 'md5', hash: secret.hash };
  return { kind: 'none' };
}

/** What a client's login here is worth for a login at the server in its name. */
import type { Login } from './client-authentication.js';
import type { Secret } from './secret.js';
import type { ServerCredentials } from './server-authentication.js';

/** The best there is: the password, the keys that the client showed, or the stored md5 hash. */
export function credentialsOfLogin({ clearPassword, secret, scramKeys }: Login): ServerCredentials {
  if (clearPassword !== undefined) return { kind: 'password', password: clearPassword };
  const stored = credentialsOfSecret(secret);
  // The keys of a password that is stored as it is have a salt of ours, which no server has.
  if (stored.kind === 'none' && scramKeys !== undefined) return { kind: 'scramKeys', keys: scramKeys };
  return stored;
}

/** Without a client. A SCRAM secret lets nobody in by itself: that is the point of it. */
export function credentialsOfSecret(secret: Secret | undefined): ServerCredentials {
  if (secret?.kind === 'plain') return { kind: 'password', password: secret.password };
  if (secret?.kind === 'md5') return { kind: 'md5', hash: secret.hash };
  return { kind: 'none' };
}

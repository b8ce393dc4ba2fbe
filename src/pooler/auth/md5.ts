/** PostgreSQL's md5 passwords: the stored hash, and the answer to a salt. Weak, and still in use. */
import { createHash } from 'node:crypto';
import type { Md5Secret, PlainSecret } from './secret.js';

/** The stored hash, without its `md5`. */
export function md5Hash(password: string | Buffer, user: string): string {
  return hashBoth(password, user);
}

/** The hash of a user whose password or hash is known. */
export function md5HashOf(secret: PlainSecret | Md5Secret, user: string): string {
  return secret.kind === 'md5' ? secret.hash : md5Hash(secret.password, user);
}

/** The client's answer to a salt. */
export function md5Response(hash: string, salt: Buffer): string {
  return `md5${hashBoth(hash, salt)}`;
}

function hashBoth(one: string | Buffer, other: string | Buffer): string {
  return createHash('md5').update(one).update(other).digest('hex');
}

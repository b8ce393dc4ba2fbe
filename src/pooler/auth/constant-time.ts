/** Comparing what is secret, in a time that says nothing about it. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const key = randomBytes(32);

/** Whether both are the same, whatever their lengths. */
export function isSameSecret(one: Buffer | string, other: Buffer | string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

/** Compared are digests with a key that nobody knows, since only what is equally long can be compared in constant time. */
function digest(secret: Buffer | string): Buffer {
  return createHmac('sha256', key).update(secret).digest();
}

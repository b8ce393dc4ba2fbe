/** Compares secrets in constant time. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const key = randomBytes(32);

/** Compares two secrets of any lengths. */
export function isSameSecret(one: Buffer | string, other: Buffer | string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

/** Compares digests with a random key, because only values of equal length can be compared in constant time. */
function digest(secret: Buffer | string): Buffer {
  return createHmac('sha256', key).update(secret).digest();
}

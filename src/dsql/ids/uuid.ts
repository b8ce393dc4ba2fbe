/** UUIDs as text and as 16 bytes. Strict: one form of text, and nothing is guessed. */
import { InvalidUuidError } from './errors.js';

const form = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/**
 * The 16 bytes of a UUID that is written with hyphens, in any case of letters. Throws an `InvalidUuidError` for all else.
 *
 * @example
 * ```ts
 * import { bytesToUuid, uuidToBytes } from 'headgate/dsql';
 *
 * const bytes = uuidToBytes('017F22E2-79B0-7CC3-98C4-DC0C0C07398F');
 *
 * console.log(bytesToUuid(bytes)); // '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'
 * ```
 */
export function uuidToBytes(uuid: string): Uint8Array {
  if (typeof uuid !== 'string' || !form.test(uuid)) throw new InvalidUuidError(describe(uuid));
  return Uint8Array.from(Buffer.from(uuid.replaceAll('-', ''), 'hex'));
}

/** The UUID of 16 bytes, in lower case with hyphens. Throws an `InvalidUuidError` for any other number of bytes. */
export function bytesToUuid(bytes: Uint8Array): string {
  if (!(bytes instanceof Uint8Array) || bytes.length !== 16) {
    const what = bytes instanceof Uint8Array ? `${bytes.length} bytes` : typeof bytes;
    throw new InvalidUuidError(`A UUID has 16 bytes (a Buffer or Uint8Array), not ${what}.`);
  }
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The value is not shown: it may be anything that a stranger sent. */
function describe(uuid: unknown): string {
  const found = typeof uuid === 'string' ? `a text of ${uuid.length} characters` : typeof uuid;
  return `A UUID is written as 32 hexadecimal digits with hyphens, 8-4-4-4-12; found ${found}.`;
}

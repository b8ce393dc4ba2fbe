/** Base64 as SCRAM wants it: what does not stand for bytes in exactly one way is refused, where Node would guess. */

/** `undefined` when the text is no base64. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

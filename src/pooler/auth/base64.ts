/** Base64 for SCRAM: a text that is not the canonical form of its bytes is refused, where Node would guess. */

/** `undefined` when the text is not base64. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

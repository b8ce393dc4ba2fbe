/** Channel binding of type tls-server-end-point (RFC 5929): a hash of the server's TLS certificate. */
import { createHash } from 'node:crypto';

export const channelBindingType = 'tls-server-end-point';

const sequenceTag = 0x30;
const objectIdTag = 0x06;
const explicitTag0 = 0xa0;

/** Hash for each signature algorithm of a certificate. SHA-256 replaces weaker hashes. */
const hashes: Readonly<Record<string, string>> = {
  '2a864886f70d010104': 'sha256', // md5WithRSA
  '2a864886f70d010105': 'sha256', // sha1WithRSA
  '2a864886f70d01010b': 'sha256', // sha256WithRSA
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  '2a864886f70d01010e': 'sha224',
  '2a8648ce3d0401': 'sha256', // ecdsa-with-SHA1
  '2a8648ce3d040301': 'sha224',
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
  // The hashes themselves, as RSASSA-PSS names them.
  '2b0e03021a': 'sha256', // sha1
  '608648016503040201': 'sha256',
  '608648016503040202': 'sha384',
  '608648016503040203': 'sha512',
  '608648016503040204': 'sha224',
};
const rsassaPss = '2a864886f70d01010a';

/** `undefined` for a certificate whose signature has no hash of its own, such as Ed25519: channel binding is not possible. */
export function tlsServerEndPoint(certificate: Buffer): Buffer | undefined {
  try {
    const hash = signatureHash(certificate);
    return hash === undefined ? undefined : createHash(hash).update(certificate).digest();
  } catch {
    return undefined; // Not a certificate.
  }
}

/** Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER, parameters }, ... } */
function signatureHash(certificate: Buffer): string | undefined {
  const outer = readElement(certificate, 0, sequenceTag);
  const toBeSigned = readElement(certificate, outer.start, sequenceTag);
  const algorithm = readElement(certificate, toBeSigned.end, sequenceTag);
  const name = readElement(certificate, algorithm.start, objectIdTag);
  const id = certificate.toString('hex', name.start, name.end);
  return id === rsassaPss ? pssHash(certificate, name.end) : hashes[id];
}

/** RSASSA-PSS-params ::= SEQUENCE { hashAlgorithm [0] SEQUENCE { OBJECT IDENTIFIER, ... } DEFAULT sha1, ... } */
function pssHash(certificate: Buffer, at: number): string | undefined {
  const parameters = readElement(certificate, at, sequenceTag);
  if (parameters.start === parameters.end || certificate[parameters.start] !== explicitTag0) return 'sha256';
  const wrapped = readElement(certificate, parameters.start, explicitTag0);
  const algorithm = readElement(certificate, wrapped.start, sequenceTag);
  const name = readElement(certificate, algorithm.start, objectIdTag);
  return hashes[certificate.toString('hex', name.start, name.end)];
}

/** Range of the contents of the DER element at `at`. */
function readElement(der: Buffer, at: number, tag: number): { readonly start: number; readonly end: number } {
  if (der[at] !== tag) throw new RangeError('Another element was expected.');
  const first = der.readUInt8(at + 1);
  const isShort = first < 0x80;
  const length = isShort ? first : der.readUIntBE(at + 2, first & 0x7f);
  const start = at + 2 + (isShort ? 0 : first & 0x7f);
  if (start + length > der.length) throw new RangeError('An element is longer than its certificate.');
  return { start, end: start + length };
}

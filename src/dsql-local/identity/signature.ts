/** AWS's Signature Version 4 of a presigned GET whose only signed header is the host, from the verifier's side. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export const algorithm = 'AWS4-HMAC-SHA256';

export interface SignedRequest {
  readonly host: string;
  /** All but the signature. */
  readonly parameters: ReadonlyMap<string, string>;
  /** `20261115T010540Z` */
  readonly time: string;
  /** `20261115`, region, service and `aws4_request`. */
  readonly scope: readonly string[];
}

/** In hexadecimal. */
export function signatureOf(
  { host, parameters, time, scope }: SignedRequest,
  secretAccessKey: string,
): string {
  const request = ['GET', '/', canonicalQuery(parameters), `host:${host}`, '', 'host', sha256('')].join('\n');
  const text = [algorithm, time, scope.join('/'), sha256(request)].join('\n');
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  return hmac(key, text).toString('hex');
}

/** RFC 3986: `encodeURIComponent` leaves some characters as they are. */
export function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Takes as long whatever the texts are. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function canonicalQuery(parameters: ReadonlyMap<string, string>): string {
  return [...parameters]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function sha256(text: string): string {
  return digest(text).toString('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

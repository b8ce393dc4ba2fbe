/** Signs a request to AWS in its address alone (Signature Version 4, presigned): what IAM tokens for databases are. */
import { createHash, createHmac } from 'node:crypto';
import type { AwsCredentials } from './signer.js';

export interface PresignedRequest {
  /** Service of the token: `rds-db` or `dsql`. */
  readonly service: string;
  readonly region: string;
  /** With the port, where it is signed too. */
  readonly host: string;
  /** The query: `Action` and its like. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly credentials: AwsCredentials;
  /** Milliseconds since 1970. */
  readonly signedAt: number;
  readonly lifeSeconds: number;
}

const algorithm = 'AWS4-HMAC-SHA256';

/** The address without its scheme, as databases want it. */
export function presign(request: PresignedRequest): string {
  const { service, region, parameters, credentials, signedAt, lifeSeconds } = request;
  // As the verifier sees it.
  const host = request.host.toLowerCase();
  const time = new Date(signedAt).toISOString().replace(/[-:]|\.\d+/g, '');
  const scope = [time.slice(0, 8), region, service, 'aws4_request'];
  const query = canonicalQuery({
    ...parameters,
    'X-Amz-Algorithm': algorithm,
    'X-Amz-Credential': [credentials.accessKeyId, ...scope].join('/'),
    'X-Amz-Date': time,
    'X-Amz-Expires': String(lifeSeconds),
    'X-Amz-SignedHeaders': 'host',
    ...(credentials.sessionToken === undefined ? {} : { 'X-Amz-Security-Token': credentials.sessionToken }),
  });
  const canonical = ['GET', '/', query, `host:${host}`, '', 'host', sha256('')].join('\n');
  const toSign = [algorithm, time, scope.join('/'), sha256(canonical)].join('\n');
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${credentials.secretAccessKey}`);
  return `${host}/?${query}&X-Amz-Signature=${hmac(key, toSign).toString('hex')}`;
}

/** In the order of the names; both sides sign the same text. */
function canonicalQuery(parameters: Readonly<Record<string, string>>): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
}

/** As RFC 3986 has it: `encodeURIComponent` leaves some signs as they are. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

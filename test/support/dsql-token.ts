// Signs tokens as AWS does (SigV4, a presigned GET without its scheme), at any time of day.
import { createHash, createHmac } from 'node:crypto';

interface TestCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

interface TokenDetails {
  readonly host: string;
  readonly region: string;
  readonly action: 'DbConnect' | 'DbConnectAdmin';
  readonly credentials: TestCredentials;
  readonly signedAt?: Date;
  readonly lifeSeconds?: number;
}

export function signToken(details: TokenDetails): string {
  const { host, region, action, credentials, signedAt = new Date(), lifeSeconds = 900 } = details;
  const time = amzTime(signedAt);
  const scope = `${time.slice(0, 8)}/${region}/dsql/aws4_request`;
  const query = new Map([
    ['Action', action],
    ['X-Amz-Algorithm', 'AWS4-HMAC-SHA256'],
    ['X-Amz-Credential', `${credentials.accessKeyId}/${scope}`],
    ['X-Amz-Date', time],
    ['X-Amz-Expires', String(lifeSeconds)],
    ['X-Amz-SignedHeaders', 'host'],
  ]);
  if (credentials.sessionToken !== undefined) query.set('X-Amz-Security-Token', credentials.sessionToken);
  const signature = signatureOf(host, query, credentials.secretAccessKey);
  return `${host}/?${canonical(query)}&X-Amz-Signature=${signature}`;
}

function signatureOf(host: string, query: ReadonlyMap<string, string>, secret: string): string {
  const time = query.get('X-Amz-Date') ?? '';
  const [, ...scope] = (query.get('X-Amz-Credential') ?? '').split('/');
  const request = ['GET', '/', canonical(query), `host:${host}`, '', 'host', sha256('')].join('\n');
  const text = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(request)].join('\n');
  const key = scope.reduce<string | Buffer>((made, part) => hmac(made, part), `AWS4${secret}`);
  return hmac(key, text).toString('hex');
}

function canonical(query: ReadonlyMap<string, string>): string {
  const encode = (text: string): string =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return [...query]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
}

function amzTime(date: Date): string {
  return date.toISOString().replace(/[-:]|\.\d+/g, '');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

// Signs tokens as AWS does (SigV4, a presigned GET without its scheme), at any time of day, and verifies them.
import { createHash, createHmac } from 'node:crypto';

export interface TestCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface TokenDetails {
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

/** Why the token does not let this user in at this host, in the server's words; undefined when it does. */
export function refusalOf(
  token: string,
  expected: { host: string; region: string; user: string; credentials: TestCredentials; now: Date },
): string | undefined {
  const { host, region, user, credentials, now } = expected;
  if (!URL.canParse(`https://${token}`)) return 'The token is not a presigned request.';
  const url = new URL(`https://${token}`);
  const query = new Map(url.searchParams);
  const signature = query.get('X-Amz-Signature');
  query.delete('X-Amz-Signature');
  const [accessKeyId, day, signedRegion, service] = (query.get('X-Amz-Credential') ?? '').split('/');
  const time = query.get('X-Amz-Date') ?? '';
  const action = query.get('Action');
  if (accessKeyId !== credentials.accessKeyId)
    return 'The security token included in the request is invalid.';
  if (url.hostname !== host) return `The token is for ${url.hostname}.`;
  if (signedRegion !== region || service !== 'dsql' || day !== time.slice(0, 8))
    return 'Credential should be scoped to a valid region.';
  if (signature !== signatureOf(url.hostname, query, credentials.secretAccessKey))
    return 'The request signature we calculated does not match the signature you provided.';
  const end = parseAmzTime(time) + Number(query.get('X-Amz-Expires')) * 1_000;
  if (!(now.getTime() < end))
    return `Signature expired: ${time} is now earlier than ${amzTime(new Date(now.getTime() - (end - parseAmzTime(time))))}`;
  if ((action === 'DbConnectAdmin') !== (user === 'admin'))
    return `Wrong user to action mapping. user: ${user}, action: ${action}`;
  return undefined;
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

function parseAmzTime(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3:$4:$5Z'));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

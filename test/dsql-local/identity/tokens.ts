// Tokens for the tests of identity, by AWS's own signer at any time of day, and with anything in them changed.
import { createHash, createHmac } from 'node:crypto';
import { DsqlSigner } from '@aws-sdk/dsql-signer';
import { vi } from 'vitest';
import { type AccessKey, Accounts } from '../../../src/dsql-local/identity/accounts.js';
import type { TokenExpectations } from '../../../src/dsql-local/identity/token-verifier.js';

export const region = 'us-east-1';
export const host = `abcdefghijklmnopqrstuvwxyz.dsql.${region}.on.aws`;
export const now = Date.UTC(2026, 10, 15, 1, 5, 40);
export const key: AccessKey = {
  accessKeyId: 'AKIATESTTESTTESTTEST',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};
export const userArn = 'arn:aws:iam::111122223333:user/dev';
export const sessionKey: AccessKey = {
  accessKeyId: 'ASIATESTTESTTESTTEST',
  secretAccessKey: 'another/secret+of/40+characters/xxxxxxxx',
  sessionToken: "IQoJb3JpZ2luX2VjE+a/b==~!*'()-_.",
  expiration: new Date(now + 600_000),
};
export const roleArn = 'arn:aws:sts::111122223333:assumed-role/app/session-1';

export function accounts(): Accounts {
  return new Accounts([
    { arn: userArn, keys: [key] },
    { arn: roleArn, keys: [sessionKey] },
  ]);
}

export function expectations(changes: Partial<TokenExpectations> = {}): TokenExpectations {
  return { hosts: [host], region, user: 'admin', now, accounts: accounts(), ...changes };
}

export interface AwsTokenOptions {
  readonly hostname?: string;
  readonly credentials?: AccessKey;
  readonly expiresIn?: number;
  readonly user?: string;
}

/** By `@aws-sdk/dsql-signer`, at `now`. */
export async function awsToken(options: AwsTokenOptions = {}): Promise<string> {
  const { hostname = host, credentials = key, expiresIn, user = 'admin' } = options;
  vi.useFakeTimers({ now, toFake: ['Date'] });
  try {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    const signer = new DsqlSigner({
      hostname,
      region,
      credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) },
      ...(expiresIn === undefined ? {} : { expiresIn }),
    });
    return await (user === 'admin' ? signer.getDbConnectAdminAuthToken() : signer.getDbConnectAuthToken());
  } finally {
    vi.useRealTimers();
  }
}

/** Correctly signed by AWS's published algorithm, whatever is in it; `undefined` leaves a parameter out. */
export function signedToken(
  changes: Readonly<Record<string, string | undefined>> = {},
  { signedHost = host, secret = key.secretAccessKey } = {},
): string {
  const all: Record<string, string | undefined> = {
    Action: 'DbConnectAdmin',
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${key.accessKeyId}/20261115/${region}/dsql/aws4_request`,
    'X-Amz-Date': '20261115T010540Z',
    'X-Amz-Expires': '900',
    'X-Amz-SignedHeaders': 'host',
    ...changes,
  };
  const query = Object.entries(all)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${encode(name)}=${encode(value)}`]))
    .sort()
    .join('&');
  const scope = (all['X-Amz-Credential'] ?? '').split('/').slice(1);
  const request = ['GET', '/', query, `host:${signedHost}`, '', 'host', sha256('')].join('\n');
  const text = ['AWS4-HMAC-SHA256', all['X-Amz-Date'], scope.join('/'), sha256(request)].join('\n');
  const signingKey = scope.reduce<string | Buffer>(hmac, `AWS4${secret}`);
  return `${signedHost}/?${query}&X-Amz-Signature=${hmac(signingKey, text).toString('hex')}`;
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(secret: string | Buffer, text: string): Buffer {
  return createHmac('sha256', secret).update(text).digest();
}

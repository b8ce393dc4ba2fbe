// Tokens for RDS: the same that AWS's own tools make, good for as long as the credentials are.
import { DsqlSigner } from '@aws-sdk/dsql-signer';
import { afterEach, expect, test, vi } from 'vitest';
import { presign } from '../../src/dsql/presigned-request.js';
import { rdsTokenProvider } from '../../src/dsql/rds-token.js';
import type { SignedToken } from '../../src/dsql/token-cache.js';
import { expiryOf } from '../../src/dsql/token-text.js';

const signedAt = Date.UTC(2016, 10, 7, 17, 39, 33);
const clock = { now: () => signedAt };
const request = {
  host: 'prod-instance.us-east-1.rds.amazonaws.com:3306',
  region: 'us-east-1',
  user: 'someusername',
};

afterEach(() => vi.useRealTimers());

test('A token for RDS has the signature that AWS publishes for this host, user and time', async () => {
  const provide = rdsTokenProvider({
    credentials: { accessKeyId: 'akid', secretAccessKey: 'skid' },
    clock,
  });
  const { token, expiresAt } = (await provide(request)) as SignedToken;
  const url = new URL(`https://${token}`);
  expect(url.host).toBe(request.host);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    Action: 'connect',
    DBUser: 'someusername',
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': 'akid/20161107/us-east-1/rds-db/aws4_request',
    'X-Amz-Date': '20161107T173933Z',
    'X-Amz-Expires': '900',
    'X-Amz-SignedHeaders': 'host',
    // From the tests of botocore, generate_db_auth_token.
    'X-Amz-Signature': 'd1138cdbc0ca63eec012ec0fc6c2267e03642168f5884a7795320d4c18374c61',
  });
  expect(expiresAt).toEqual(new Date(signedAt + 900_000));
  expect(expiryOf(token)).toBe(signedAt + 900_000);
});

test('A token for RDS is the same however the host is written', async () => {
  const provide = rdsTokenProvider({
    credentials: { accessKeyId: 'akid', secretAccessKey: 'skid' },
    clock,
  });
  expect(await provide({ ...request, host: request.host.toUpperCase() })).toEqual(await provide(request));
});

test('A token for RDS ends with the credentials that it was signed with', async () => {
  const expiration = new Date(signedAt + 60_000);
  const credentials = { accessKeyId: 'akid', secretAccessKey: 'skid', sessionToken: 'a/b+c=', expiration };
  const { token, expiresAt } = (await rdsTokenProvider({ credentials: async () => credentials, clock })(
    request,
  )) as SignedToken;
  expect(expiresAt).toEqual(expiration);
  expect(token).toContain('X-Amz-Security-Token=a%2Fb%2Bc%3D');
});

test('A token for RDS is signed with the credentials of the environment, unless a profile is named', async () => {
  const environment = { AWS_ACCESS_KEY_ID: 'of-env', AWS_SECRET_ACCESS_KEY: 's', AWS_SESSION_TOKEN: '' };
  const { token } = (await rdsTokenProvider({ environment, clock })(request)) as SignedToken;
  expect(token).toContain('X-Amz-Credential=of-env%2F');
  expect(token).not.toContain('Security-Token');
});

test.each([
  ['plain credentials', { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG' }],
  [
    'credentials of a session',
    { accessKeyId: 'ASIA', secretAccessKey: 'k', sessionToken: "to/ken+with=signs!'()*" },
  ],
])('Presigning gives the same as the signer of AWS, with %s', async (_, credentials) => {
  vi.useFakeTimers({ now: signedAt, toFake: ['Date'] });
  const host = 'abcdefghijklmnopqrstuvwxyz.dsql.eu-west-1.on.aws';
  const signer = new DsqlSigner({ hostname: host, region: 'eu-west-1', expiresIn: 900, credentials });
  const theirs = new URL(`https://${await signer.getDbConnectAuthToken()}`);
  const ours = presign({
    service: 'dsql',
    region: 'eu-west-1',
    host,
    parameters: { Action: 'DbConnect' },
    credentials,
    signedAt,
    lifeSeconds: 900,
  });
  const entries = (url: URL) => [...url.searchParams].sort();
  expect(entries(new URL(`https://${ours}`))).toEqual(entries(theirs));
});

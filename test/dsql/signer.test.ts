// Tokens from AWS's signer, verified as the server would.
import { expect, test } from 'vitest';
import { awsTokenProvider } from '../../src/dsql/signer.js';
import { SignerMissingError } from '../../src/dsql.js';
import { Accounts } from '../../src/dsql-local/identity/accounts.js';
import { verifyToken } from '../../src/dsql-local/identity/token-verifier.js';
import { rejectionOf } from '../support/outcomes.js';

const credentials = { accessKeyId: 'AKID', secretAccessKey: 'secret' };
const arn = 'arn:aws:iam::000000000000:user/test';
const accounts = new Accounts([{ arn, keys: [credentials] }]);
const place = { host: 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws', region: 'us-east-1' };

test.each(['admin', 'app'])("AWS's signer makes tokens that let %s in", async (user) => {
  const signed = await awsTokenProvider({ credentials })({ ...place, user });
  const { token } = signed as { token: string };
  const verify = (as: string, now = Date.now()) =>
    verifyToken(token, { hosts: [place.host], region: place.region, user: as, now, accounts });
  expect(verify(user)).toMatchObject({ identity: { arn } });
  expect(verify(user === 'admin' ? 'app' : 'admin')).toMatchObject({
    hint: expect.stringMatching(/^Wrong user to action mapping/),
  });
  expect(verify(user, Date.now() + 901_000)).toMatchObject({
    hint: expect.stringMatching(/^Signature expired/),
  });
});

test("AWS's signer makes tokens that end no later than the credentials", async () => {
  const expiration = new Date(Date.now() + 30_000);
  const provide = awsTokenProvider({ credentials: async () => ({ ...credentials, expiration }) });
  expect(await provide({ ...place, user: 'app' })).toMatchObject({ expiresAt: expiration });
});

test("AWS's signer makes tokens as long as is asked for", async () => {
  const provide = awsTokenProvider({ credentials, tokenLifeSeconds: 60 });
  const { token, expiresAt } = (await provide({ ...place, user: 'app' })) as {
    token: string;
    expiresAt: Date;
  };
  expect(token).toContain('X-Amz-Expires=60&');
  expect(expiresAt.getTime()).toBeLessThanOrEqual(Date.now() + 60_000);
});

test("AWS's signer is searched for credentials once, however many tokens are signed", async () => {
  let searches = 0;
  class DsqlSigner {
    readonly credentials: unknown;
    constructor(settings: { credentials?: unknown }) {
      if (settings.credentials === undefined) searches += 1;
      this.credentials = settings.credentials ?? (async () => credentials);
    }
    async getDbConnectAuthToken(): Promise<string> {
      return 'token';
    }
  }
  const provide = awsTokenProvider({}, async () => ({ DsqlSigner }));
  for (let count = 0; count < 3; count++) await provide({ ...place, user: 'app' });
  expect(searches).toBe(1);
});

test("AWS's signer is missed with an error that says what to install", async () => {
  const provide = awsTokenProvider({}, () => Promise.reject(new Error('Cannot find package')));
  const error = await rejectionOf(Promise.resolve(provide({ ...place, user: 'app' })));
  expect(error).toBeInstanceOf(SignerMissingError);
  expect(error.message).toContain('@aws-sdk/dsql-signer');
});

// Tokens of AWS IAM for the pooler: made once for many connections, and anew when the server refuses one.
import { expect, test } from 'vitest';
import { iamTokens } from '../../src/cli/iam-tokens.js';
import type { TokenRequest } from '../../src/dsql/token-cache.js';
import type { IamTokenRequest } from '../../src/pooler/servers/iam-login.js';

/** Tokens that say how many were made before, and what was asked for. */
function world(environment = {}) {
  const asked: TokenRequest[] = [];
  const provide = (request: TokenRequest) => {
    asked.push(request);
    return { token: `token ${asked.length}`, expiresAt: new Date(Date.now() + 900_000) };
  };
  const make = iamTokens({ environment, providers: { rds: provide, dsql: provide } });
  const ask = (some: Partial<IamTokenRequest> = {}) =>
    make({
      iam: 'rds',
      host: 'db.abc.eu-west-1.rds.amazonaws.com',
      port: 5432,
      region: undefined,
      user: 'app',
      refused: undefined,
      ...some,
    });
  return { asked, ask };
}

test('The token of a connection is for the host, its port with RDS, and the region that the host is in', async () => {
  const { asked, ask } = world();
  await ask();
  await ask({ iam: 'dsql', host: 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-2.on.aws', user: 'admin' });
  expect(asked).toMatchObject([
    { host: 'db.abc.eu-west-1.rds.amazonaws.com:5432', region: 'eu-west-1', user: 'app' },
    { host: 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-2.on.aws', region: 'us-east-2', user: 'admin' },
  ]);
});

test.each([
  ['as the configuration says', { host: 'db.internal', region: 'ap-south-1' }, 'ap-south-1'],
  ['as the host says, of a proxy', { host: 'p.proxy-x.ca-central-1.rds.amazonaws.com' }, 'ca-central-1'],
  ['as the host says, in China', { host: 'db.abc.rds.cn-north-1.amazonaws.com.cn' }, 'cn-north-1'],
  ['as the host says, in GovCloud', { host: 'db.abc.us-gov-west-1.rds.amazonaws.com' }, 'us-gov-west-1'],
  ['as the environment says', { host: 'db.internal' }, 'sa-east-1'],
])('The token of a connection has its region %s', async (_, some, region) => {
  const { asked, ask } = world({ AWS_REGION: 'sa-east-1' });
  await ask(some);
  expect(asked).toMatchObject([{ region }]);
});

test('The token of a connection is used by others until the server refuses it', async () => {
  const { ask } = world();
  expect([await ask(), await ask()]).toEqual(['token 1', 'token 1']);
  expect(await ask({ user: 'other' })).toBe('token 2');
  expect(await ask({ refused: 'token 1' })).toBe('token 3');
  expect(await ask({ refused: 'token 1' })).toBe('token 3');
});

test('A token of a connection is not made without a region', async () => {
  const { ask } = world();
  await expect(ask({ host: 'db.internal' })).rejects.toThrow('set AWS_REGION');
});

// Databases that are logged in to with tokens of AWS IAM: a real PostgreSQL that wants a password over TLS, and tokens for it.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { iamTokens } from '../../src/cli/iam-tokens.js';
import type { TokenRequest } from '../../src/dsql/token-cache.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import type { TestDatabase } from '../support/postgres.js';
import { startTlsPostgres, type TlsPostgres, tlsPostgresCa } from '../support/tls-postgres.js';
import { scrape } from './metrics/scrape.js';

const hba = `
hostssl  all  app       127.0.0.1/32  password
host     all  postgres  127.0.0.1/32  scram-sha-256
`;

/** Length of a token of a role with a session. */
const tokenFor = (number: number): string =>
  `db.example:5432/?Action=connect&X-Amz-Signature=${number}${'f'.repeat(1_500)}`;

let server: TlsPostgres;
let db: TestDatabase;
let admin: pg.Client;
beforeAll(async () => {
  server = await startTlsPostgres(hba, [
    'create role app login',
    'create table t (n int)',
    'grant all on t to app',
  ]);
  db = { ...server, drop: () => server.stop() };
  admin = new pg.Client(server.url);
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await db.drop();
});

const accept = (token: string) => admin.query(`alter role app password ${pg.escapeLiteral(token)}`);

/** A pooler whose tokens are numbered, and all that was asked for. */
async function start(
  some: { iam?: string; make?: (request: TokenRequest) => Promise<never> } = {},
): Promise<TestPooler & { asked: TokenRequest[]; refused(): Promise<unknown> }> {
  const asked: TokenRequest[] = [];
  const provide = async (request: TokenRequest) => {
    asked.push(request);
    await some.make?.(request);
    return { token: tokenFor(asked.length), expiresAt: new Date(Date.now() + 900_000) };
  };
  const makeIamToken = iamTokens({ environment: {}, providers: { rds: provide, dsql: provide } });
  const pooler = await startTestPooler(
    db,
    {
      databases: {
        [db.database]: { host: db.host, port: db.port, iam: some.iam ?? 'rds', region: 'eu-west-1' },
      },
      serverTls: { mode: 'verify-ca', caFile: tlsPostgresCa },
      admin: { adminUsers: ['app'] },
      observability: { metricsListen: '127.0.0.1:0' },
      pooling: { serverLoginRetry: '20ms' },
      timeouts: { queryWaitTimeout: '1s' },
    },
    { host: { makeIamToken } },
  );
  return {
    ...pooler,
    asked,
    refused: () =>
      pooler.connect({ user: 'app' }).then(
        () => undefined,
        (error) => error,
      ),
  };
}

test.each(['rds', 'dsql'])('a client is let in, and the pooler shows the server a token: %s', async (iam) => {
  await accept(tokenFor(1));
  const { connect, asked } = await start({ iam });
  const client = await connect({ user: 'app' });
  expect((await client.query('select current_user')).rows).toEqual([{ current_user: 'app' }]);
  const host = iam === 'rds' ? `${db.host}:${db.port}` : db.host;
  expect(asked).toMatchObject([{ host, region: 'eu-west-1', user: 'app' }]);
});

test('one token serves all connections as long as it is good', async () => {
  await accept(tokenFor(1));
  const { connect, asked, pooler } = await start();
  const clients = [
    await connect({ user: 'app' }),
    await connect({ user: 'app' }),
    await connect({ user: 'app' }),
  ];
  await Promise.all(clients.map((client) => client.query('select pg_sleep(0.05)')));
  expect(pooler.stats().pools).toMatchObject([{ live: 3 }]);
  expect(asked).toHaveLength(1);
});

test('a token that the server refuses is replaced by a fresh one, and the client does not notice', async () => {
  await accept(tokenFor(1));
  const { connect, asked } = await start();
  const client = await connect({ user: 'app' });
  const console = await connect({ user: 'app', database: 'headgate' });
  await client.query('select 1');
  await accept(tokenFor(2));
  await console.query('RECONNECT');
  expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }]);
  expect(asked).toHaveLength(2);
});

test('a fresh token that is refused as well is an error, in the words of the server and without the token', async () => {
  await accept('none of them');
  const { asked, refused } = await start();
  const error = await refused();
  expect(error).toMatchObject({
    code: '28P01',
    message: expect.stringContaining('password authentication failed'),
  });
  expect(JSON.stringify(error)).not.toContain('X-Amz');
  expect(asked.length).toBeGreaterThanOrEqual(2);
});

test('where no token can be had, the client is told why, and it is counted', async () => {
  const { pooler, refused } = await start({
    make: () => Promise.reject(new Error('Could not load credentials from any providers')),
  });
  expect(await refused()).toMatchObject({ message: expect.stringContaining('Could not load credentials') });
  const of = await scrape(pooler.metricsPort as number);
  expect(of.value('headgate_pooler_open_failures_total', { cause: 'token_provider' })).toBeGreaterThan(0);
  expect(of.value('headgate_pooler_login_failures_total', { reason: 'no_server' })).toBe(1);
});

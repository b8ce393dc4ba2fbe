// DsqlPool against the stand-in for Aurora DSQL.
import { type EventEmitter, once } from 'node:events';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  DsqlConnectError,
  DsqlPool,
  type DsqlPoolOptions,
  IdleInTransactionError,
  StatementTimeoutError,
  type TokenRequest,
} from '../../src/dsql.js';
import type { FaultSettings } from '../../src/dsql-local.js';
import { TokenBucket } from '../../src/index.js';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';
import { signToken } from '../support/dsql-token.js';
import { eventOf, nextTurn, rejectionOf } from '../support/outcomes.js';

let dsql: TestDsql;
const pools: DsqlPool[] = [];

beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.addRole('app');
  await dsql.run('CREATE TABLE left_alone (n int)');
  await dsql.reset();
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

/**
 * Errors come back at once, unless the test is about waiting. Connections are opened when someone wants one, and no test
 * has to wait for what another did to the limiter that they would share.
 */
function openPool(options: DsqlPoolOptions = {}): DsqlPool {
  const { credentials } = dsql;
  const source = options.tokenProvider === undefined ? { credentials } : {};
  const pool = new DsqlPool({
    ...dsql.connection,
    ...source,
    onDialFailure: 'reject',
    env: {},
    warmup: false,
    keeper: false,
    startJitter: 0,
    rateLimiter: new TokenBucket({ rate: 1_000, burst: 100 }),
    ...options,
  });
  pools.push(pool);
  return pool;
}

function tokenFor({ host, region, user }: TokenRequest, signedAt = new Date()): string {
  const action = user === 'admin' ? 'DbConnectAdmin' : 'DbConnect';
  return signToken({ host, region, action, credentials: dsql.credentials, signedAt });
}

const longAgo = new Date(Date.now() - 3_600_000);

async function connectErrorOf(promise: Promise<unknown>): Promise<DsqlConnectError> {
  const error = await rejectionOf(promise);
  expect(error).toBeInstanceOf(DsqlConnectError);
  return error as DsqlConnectError;
}

test.each(['admin', 'app'])(
  "logging in the user %s is let in with a token from AWS's own signer",
  async (user) => {
    const pool = openPool({ user });
    const { rows } = await pool.query('select 1 + 1 as two');
    expect(rows).toEqual([{ two: 2 }]);
    expect(dsql.logins).toEqual([{ user, serverName: dsql.endpoint, isDirectTls: true, refusal: undefined }]);
  },
);

test('logging in a session token of temporary credentials is part of the signature', async () => {
  const key = { accessKeyId: 'ASIATESTTESTTESTTEST', secretAccessKey: 'secret', sessionToken: 'a/b+c= d' };
  dsql.addIdentity({ arn: 'arn:aws:sts::000000000000:assumed-role/work/test', keys: [key] });
  const pool = openPool({ credentials: key });
  await pool.query('select 1');
  expect(dsql.logins).toHaveLength(1);
});

test('logging in a token for another kind of user is refused, and the error says what to allow', async () => {
  const pool = openPool({
    user: 'app',
    tokenProvider: (request) => tokenFor({ ...request, user: 'admin' }),
  });
  const error = await connectErrorOf(pool.query('select 1'));
  expect(error).toMatchObject({ reason: 'not_authorized', remedy: 'never', sqlState: '08006' });
  expect(error.hint).toBe('Wrong user to action mapping. user: app, action: DbConnectAdmin');
  expect(dsql.logins).toHaveLength(1);
});

test('logging in a wrong secret key is refused', async () => {
  const pool = openPool({ credentials: { ...dsql.credentials, secretAccessKey: 'another' } });
  expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({ reason: 'not_authorized' });
});

test('logging in many connections are opened with one token, and never more than max', async () => {
  let signed = 0;
  const pool = openPool({
    max: 4,
    tokenProvider: (request) => {
      signed += 1;
      return tokenFor(request);
    },
  });
  await Promise.all(Array.from({ length: 40 }, () => pool.query('select pg_sleep(0)')));
  expect(signed).toBe(1);
  expect(dsql.logins.length).toBeGreaterThan(1);
  expect(dsql.connectionCounts().peak).toBeLessThanOrEqual(4);
});

test('logging in TLS can also be asked for in the old way', async () => {
  const pool = openPool({ sslnegotiation: 'postgres' });
  await pool.query('select 1');
  expect(dsql.logins[0]).toMatchObject({ isDirectTls: false, serverName: dsql.endpoint });
});

test('a token that the server finds too old is replaced, and the dial is made once more: the caller notices nothing', async () => {
  const tokens = [longAgo, new Date()];
  const pool = openPool({
    max: 1,
    tokenProvider: (request) => ({ token: tokenFor(request, tokens.shift()), expiresAt: inAnHour() }),
  });
  await pool.query('select 1');
  expect(dsql.logins.map(({ refusal }) => refusal?.hint?.slice(0, 17))).toEqual([
    'Signature expired',
    undefined,
  ]);
  expect(dsql.connectionCounts().peak).toBe(1);
});

test('a token that the server finds too old is replaced once: when the new one is too old as well, the error says so', async () => {
  const pool = openPool({
    tokenProvider: (request) => ({ token: tokenFor(request, longAgo), expiresAt: inAnHour() }),
  });
  const error = await connectErrorOf(pool.query('select 1'));
  expect(error).toMatchObject({ reason: 'token_expired', remedy: 'fresh_token' });
  expect(error.message).toContain('clock');
  expect(dsql.logins).toHaveLength(2);
});

test('a token that the server finds too old is not replaced for a pool that has ended meanwhile', async () => {
  let askedAgain = (): void => {};
  const secondRequest = new Promise<void>((resolve) => {
    askedAgain = resolve;
  });
  const tokens = [longAgo];
  const pool = openPool({
    closeTimeoutMillis: 10,
    tokenProvider: (request) => {
      const signedAt = tokens.shift();
      if (signedAt !== undefined) return { token: tokenFor(request, signedAt), expiresAt: inAnHour() };
      askedAgain();
      return new Promise(() => {});
    },
  });
  const caller = new AbortController();
  const refused = rejectionOf(pool.connect({ signal: caller.signal }));
  await secondRequest;
  caller.abort();
  await refused;
  await pool.end();
  pools.length = 0;
  expect(dsql.logins).toHaveLength(1);
});

test('a token that the server finds too old is replaced once for all dials that used it', async () => {
  let signed = 0;
  const pool = openPool({
    max: 8,
    tokenProvider: (request) => {
      signed += 1;
      return { token: tokenFor(request, signed === 1 ? longAgo : new Date()), expiresAt: inAnHour() };
    },
  });
  await pool.ready(8);
  expect(signed).toBe(2);
  expect(dsql.connectionCounts().peak).toBeLessThanOrEqual(8);
});

test('a token provider that fails fails the caller without a connection being spent, and is asked again by the next', async () => {
  let isDown = true;
  const pool = openPool({
    tokenProvider: (request) => {
      if (isDown) throw new Error('no route to the credentials');
      return tokenFor(request);
    },
  });
  const error = await connectErrorOf(pool.query('select 1'));
  expect(error).toMatchObject({
    reason: 'token_unavailable',
    cause: { message: 'no route to the credentials' },
  });
  expect(dsql.logins).toHaveLength(0);
  isDown = false;
  await pool.query('select 1');
  expect(pool.stats()).toMatchObject({ live: 1, pending: 0 });
});

test('a token provider that fails is waited for when the pool retries', async () => {
  let failures = 3;
  const pool = openPool({
    onDialFailure: 'retry',
    backoffBaseMillis: 1,
    tokenProvider: (request) => {
      if (failures-- > 0) throw new Error('not yet');
      return tokenFor(request);
    },
  });
  await pool.query('select 1');
  expect(dsql.logins).toHaveLength(1);
});

test('a token provider that hangs costs its caller the timeout, and no slot for ever', async () => {
  const pool = openPool({
    max: 1,
    connectionTimeoutMillis: 50,
    tokenProvider: () => new Promise(() => {}),
  });
  await rejectionOf(pool.query('select 1'));
  expect(dsql.logins).toHaveLength(0);
  expect(pool.stats()).toMatchObject({ pending: 0, live: 0 });
});

test.each<[string, string, FaultSettings]>([
  ['rate_exceeded', '53400', { refuseConnections: true }],
  ['waking_up', '08006', { wakingMs: 3_600_000 }],
])('what the server says reaches the caller as %s (%s)', async (reason, sqlState, faults) => {
  dsql.setFaults(faults);
  const pool = openPool();
  expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({ reason, sqlState });
  expect(dsql.logins).toHaveLength(1);
  dsql.setFaults({});
  await pool.query('select 1');
});

test('a refusal of the server reaches the caller as not_authorized where the role is not granted, or can not log in', async () => {
  const pool = openPool({ user: 'nobody' });
  expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({
    reason: 'not_authorized',
    sqlState: '08006',
    hint: expect.stringContaining('is not authorized to access this resource'),
  });
  await dsql.run('CREATE ROLE silent', `AWS IAM GRANT silent TO '${dsql.arn}'`);
  const silent = openPool({ user: 'silent' });
  expect(await connectErrorOf(silent.query('select 1'))).toMatchObject({
    reason: 'not_authorized',
    sqlState: '28000',
  });
});

test('a refusal of the server reaches the caller as too_many_connections where the cluster is full', async () => {
  const full = await startTestDsql({ maxConnections: 1 });
  try {
    const held = await full.connect();
    const pool = openPool({ ...full.connection, credentials: full.credentials });
    expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({
      reason: 'too_many_connections',
      sqlState: '53300',
    });
    await held.end();
    while (full.connectionCounts().open > 0) await nextTurn();
    await pool.query('select 1');
  } finally {
    await Promise.all(pools.splice(0).map((pool) => pool.end()));
    await full.stop();
  }
});

test('a refusal of the server is waited out when the pool retries, as it does unless told otherwise', async () => {
  dsql.setFaults({ refuseConnections: true });
  const pool = openPool({ onDialFailure: undefined, backoffBaseMillis: 1 });
  const answer = pool.query('select 1');
  while (dsql.logins.length < 2) await new Promise((resolve) => setImmediate(resolve));
  dsql.setFaults({});
  await answer;
});

test('TLS to a server whose certificate has no trusted issuer is refused before a token is sent', async () => {
  const pool = openPool({ ssl: true });
  expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({ reason: 'tls', remedy: 'never' });
  expect(dsql.logins).toEqual([]);
});

test('TLS to a server with a certificate for another name is refused before a token is sent', async () => {
  const pool = openPool({ host: 'db.example', region: 'us-east-1' });
  const error = await connectErrorOf(pool.query('select 1'));
  expect(error).toMatchObject({ reason: 'tls', cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } });
  expect(dsql.logins).toEqual([]);
});

test('connections that the server cuts while they are idle are logged and replaced, and do not end the program', async () => {
  const logged: string[] = [];
  const pool = openPool({ max: 1, log: (message: string) => logged.push(message) });
  await pool.ready(1);
  const lost = once(pool, 'remove');
  dsql.dropConnections();
  await lost;
  await pool.query('select 1');
  expect(logged).toContain('an idle connection was lost');
});

test('connections that the server cuts while they are in use fail the query that runs, and not the program', async () => {
  const pool = openPool({ max: 1 });
  const client = await pool.connect();
  const query = rejectionOf(client.query('select pg_sleep(60)'));
  dsql.dropConnections();
  await query;
  client.release();
  await pool.query('select 1');
});

test('limits that the server does not have a statement that takes too long fails, and the next one gets another connection', async () => {
  const pool = openPool({ max: 1, statementTimeoutMillis: 50 });
  expect(await rejectionOf(pool.query('select pg_sleep(600)'))).toBeInstanceOf(StatementTimeoutError);
  expect(await rejectionOf(pool.query('select pg_sleep($1)', [600]))).toBeInstanceOf(StatementTimeoutError);
  expect(dsql.logins).toHaveLength(2);
  expect(dsql.connectionCounts().peak).toBe(1);
});

test('limits that the server does not have a statement that is done in time leaves its connection as it is', async () => {
  const pool = openPool({ max: 1, statementTimeoutMillis: '1m' });
  const named = { name: 'one', text: 'select $1::int as one' };
  for (let count = 0; count < 3; count++) expect((await pool.query(named, [1])).rows).toEqual([{ one: 1 }]);
  await rejectionOf(pool.query('select 1/0'));
  await pool.query('select 1; select 2');
  expect(dsql.logins).toHaveLength(2);
});

test('limits that the server does not have a transaction that is left alone ends, its holder learns of it, and nothing of it is kept', async () => {
  const said: unknown[] = [];
  const pool = openPool({
    max: 1,
    idleInTransactionTimeoutMillis: 50,
    log: (_message: string, error: unknown) => said.push(error),
  });
  const client = await pool.connect();
  await client.query('begin');
  await client.query('insert into left_alone values (1)');
  await eventOf(client as unknown as EventEmitter, 'end');
  await rejectionOf(client.query('commit'));
  client.release();
  expect(said).toContainEqual(expect.any(IdleInTransactionError));
  expect((await pool.query('select * from left_alone')).rows).toEqual([]);
});

test('no token is in any error, log line, or inspection of the pool and its clients', async () => {
  const seen: unknown[] = [];
  const pool = openPool({
    max: 2,
    log: (...said: unknown[]) => seen.push(...said),
    tokenProvider: (request) => ({ token: tokenFor(request, longAgo), expiresAt: inAnHour() }),
  });
  seen.push(await rejectionOf(pool.query('select 1')));
  const working = openPool({ log: (...said: unknown[]) => seen.push(...said) });
  const client = await working.connect();
  seen.push(pool, working, client);
  client.release();
  dsql.dropConnections();
  await once(working, 'remove');
  const everything = seen
    .map(
      (it) =>
        `${inspect(it, { depth: 8 })} ${it instanceof Error ? `${it.stack} ${JSON.stringify(it)}` : ''}`,
    )
    .join('\n');
  expect(everything).toContain('Signature expired');
  expect(everything).not.toContain('X-Amz-Signature');
  expect(everything).not.toContain(dsql.credentials.secretAccessKey);
});

function inAnHour(): Date {
  return new Date(Date.now() + 3_600_000);
}

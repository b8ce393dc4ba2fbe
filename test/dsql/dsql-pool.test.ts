// DsqlPool against a real PostgreSQL behind a front that verifies tokens as Aurora DSQL does.
import { type EventEmitter, once } from 'node:events';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  DsqlConnectError,
  DsqlPool,
  type DsqlPoolOptions,
  IdleInTransactionError,
  StatementTimeoutError,
  type TokenRequest,
} from '../../src/dsql.js';
import { TokenBucket } from '../../src/index.js';
import { type DsqlFront, refusals, startDsqlFront } from '../support/dsql-front.js';
import { signToken } from '../support/dsql-token.js';
import { eventOf, rejectionOf } from '../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

let db: TestDatabase;
let front: DsqlFront;
const pools: DsqlPool[] = [];

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());
beforeEach(async () => {
  front = await startDsqlFront(db);
});
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  await front.stop();
});

/**
 * Errors come back at once, unless the test is about waiting. Connections are opened when someone wants one, and no test
 * has to wait for what another did to the limiter that they would share.
 */
function openPool(options: DsqlPoolOptions = {}): DsqlPool {
  const { credentials } = front;
  const source = options.tokenProvider === undefined ? { credentials } : {};
  const pool = new DsqlPool({
    ...front.connection,
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
  return signToken({ host, region, action, credentials: front.credentials, signedAt });
}

const longAgo = new Date(Date.now() - 3_600_000);

async function connectErrorOf(promise: Promise<unknown>): Promise<DsqlConnectError> {
  const error = await rejectionOf(promise);
  expect(error).toBeInstanceOf(DsqlConnectError);
  return error as DsqlConnectError;
}

describe('logging in', () => {
  test.each(['admin', 'app'])("the user %s is let in with a token from AWS's own signer", async (user) => {
    const pool = openPool({ user });
    const { rows } = await pool.query('select 1 + 1 as two');
    expect(rows).toEqual([{ two: 2 }]);
    expect(front.logins).toEqual([{ user, serverName: front.host, isDirect: true, refusal: undefined }]);
  });

  test('a session token of temporary credentials is part of the signature', async () => {
    const pool = openPool({ credentials: { ...front.credentials, sessionToken: 'a/b+c= d' } });
    await pool.query('select 1');
    expect(front.logins).toHaveLength(1);
  });

  test('a token for another kind of user is refused, and the error says what to allow', async () => {
    const pool = openPool({
      user: 'app',
      tokenProvider: (request) => tokenFor({ ...request, user: 'admin' }),
    });
    const error = await connectErrorOf(pool.query('select 1'));
    expect(error).toMatchObject({ reason: 'not_authorized', remedy: 'never', sqlState: '08006' });
    expect(error.hint).toBe('Wrong user to action mapping. user: app, action: DbConnectAdmin');
    expect(front.accepted).toBe(1);
  });

  test('a wrong secret key is refused', async () => {
    const pool = openPool({ credentials: { ...front.credentials, secretAccessKey: 'another' } });
    expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({ reason: 'not_authorized' });
  });

  test('many connections are opened with one token, and never more than max', async () => {
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
    expect(front.logins.length).toBeGreaterThan(1);
    expect(front.peak).toBeLessThanOrEqual(4);
  });

  test('TLS can also be asked for in the old way', async () => {
    const pool = openPool({ sslnegotiation: 'postgres' });
    await pool.query('select 1');
    expect(front.logins[0]).toMatchObject({ isDirect: false, serverName: front.host });
  });
});

describe('a token that the server finds too old', () => {
  test('is replaced, and the dial is made once more: the caller notices nothing', async () => {
    const tokens = [longAgo, new Date()];
    const pool = openPool({
      max: 1,
      tokenProvider: (request) => ({ token: tokenFor(request, tokens.shift()), expiresAt: inAnHour() }),
    });
    await pool.query('select 1');
    expect(front.logins.map(({ refusal }) => refusal?.slice(0, 17))).toEqual([
      'Signature expired',
      undefined,
    ]);
    expect(front.peak).toBe(1);
  });

  test('is replaced once: when the new one is too old as well, the error says so', async () => {
    const pool = openPool({
      tokenProvider: (request) => ({ token: tokenFor(request, longAgo), expiresAt: inAnHour() }),
    });
    const error = await connectErrorOf(pool.query('select 1'));
    expect(error).toMatchObject({ reason: 'token_expired', remedy: 'fresh_token' });
    expect(error.message).toContain('clock');
    expect(front.accepted).toBe(2);
  });

  test('is not replaced for a pool that has ended meanwhile', async () => {
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
    expect(front.accepted).toBe(1);
  });

  test('is replaced once for all dials that used it', async () => {
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
    expect(front.peak).toBeLessThanOrEqual(8);
  });
});

describe('a token provider that fails', () => {
  test('fails the caller without a connection being spent, and is asked again by the next', async () => {
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
    expect(front.accepted).toBe(0);
    isDown = false;
    await pool.query('select 1');
    expect(pool.stats()).toMatchObject({ live: 1, pending: 0 });
  });

  test('is waited for when the pool retries', async () => {
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
    expect(front.accepted).toBe(1);
  });

  test('that hangs costs its caller the timeout, and nobody a slot for ever', async () => {
    const pool = openPool({
      max: 1,
      connectionTimeoutMillis: 50,
      tokenProvider: () => new Promise(() => {}),
    });
    await rejectionOf(pool.query('select 1'));
    expect(front.accepted).toBe(0);
    expect(pool.stats()).toMatchObject({ pending: 0, live: 0 });
  });
});

describe('what the server says', () => {
  test.each([
    ['too_many_connections', '53300', refusals.tooMany],
    ['rate_exceeded', '53400', refusals.rate],
    ['waking_up', '08006', refusals.waking],
    [
      'not_authorized',
      '08006',
      refusals.denied('User: arn:aws:iam::1:user/x is not authorized to perform this'),
    ],
    ['not_authorized', '28000', { code: '28000', message: 'no such role' }],
  ] as const)('reaches the caller as %s (%s)', async (reason, sqlState, refusal) => {
    front.refuse(refusal);
    const pool = openPool();
    expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({ reason, sqlState });
    expect(front.accepted).toBe(1);
    front.refuse(undefined);
    await pool.query('select 1');
  });

  test('is waited out when the pool retries, as it does unless told otherwise', async () => {
    front.refuse(refusals.rate);
    const pool = openPool({ onDialFailure: undefined, backoffBaseMillis: 1 });
    const answer = pool.query('select 1');
    while (front.logins.length < 2) await new Promise((resolve) => setImmediate(resolve));
    front.refuse(undefined);
    await answer;
  });
});

describe('TLS', () => {
  test('to a server whose certificate nobody vouches for is refused before a token is sent', async () => {
    const pool = openPool({ ssl: true });
    expect(await connectErrorOf(pool.query('select 1'))).toMatchObject({ reason: 'tls', remedy: 'never' });
    expect(front.logins).toEqual([]);
  });

  test('to a server with a certificate for another name is refused before a token is sent', async () => {
    const pool = openPool({ host: 'db.example', region: 'us-east-1' });
    const error = await connectErrorOf(pool.query('select 1'));
    expect(error).toMatchObject({ reason: 'tls', cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } });
    expect(front.logins).toEqual([]);
  });
});

describe('connections that the server cuts', () => {
  test('while they are idle are logged and replaced, and do not end the program', async () => {
    const logged: string[] = [];
    const pool = openPool({ max: 1, log: (message: string) => logged.push(message) });
    await pool.ready(1);
    const lost = once(pool, 'remove');
    front.cutAll();
    await lost;
    await pool.query('select 1');
    expect(logged).toContain('an idle connection was lost');
  });

  test('while they are lent fail the query that runs, and not the program', async () => {
    const pool = openPool({ max: 1 });
    const client = await pool.connect();
    const query = rejectionOf(client.query('select pg_sleep(60)'));
    front.cutAll();
    await query;
    client.release();
    await pool.query('select 1');
  });
});

describe('limits that the server does not have', () => {
  test('a statement that takes too long fails, and the next one gets another connection', async () => {
    const pool = openPool({ max: 1, statementTimeoutMillis: 50 });
    expect(await rejectionOf(pool.query('select pg_sleep(600)'))).toBeInstanceOf(StatementTimeoutError);
    expect(await rejectionOf(pool.query('select pg_sleep($1)', [600]))).toBeInstanceOf(StatementTimeoutError);
    expect(front.logins).toHaveLength(2);
    expect(front.peak).toBe(1);
  });

  test('a statement that is done in time leaves its connection as it is', async () => {
    const pool = openPool({ max: 1, statementTimeoutMillis: '1m' });
    const named = { name: 'one', text: 'select $1::int as one' };
    for (let count = 0; count < 3; count++) expect((await pool.query(named, [1])).rows).toEqual([{ one: 1 }]);
    await rejectionOf(pool.query('select 1/0'));
    await pool.query('select 1; select 2');
    expect(front.logins).toHaveLength(2);
  });

  test('a transaction that is left alone ends, its holder learns of it, and nothing of it is kept', async () => {
    const said: unknown[] = [];
    const pool = openPool({
      max: 1,
      idleInTransactionTimeoutMillis: 50,
      log: (_message: string, error: unknown) => said.push(error),
    });
    await pool.query('create table left_alone (n int)');
    const client = await pool.connect();
    await client.query('begin');
    await client.query('insert into left_alone values (1)');
    await eventOf(client as unknown as EventEmitter, 'end');
    await rejectionOf(client.query('commit'));
    client.release();
    expect(said).toContainEqual(expect.any(IdleInTransactionError));
    expect((await pool.query('select * from left_alone')).rows).toEqual([]);
  });
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
  front.cutAll();
  await once(working, 'remove');
  const everything = seen
    .map(
      (it) =>
        `${inspect(it, { depth: 8 })} ${it instanceof Error ? `${it.stack} ${JSON.stringify(it)}` : ''}`,
    )
    .join('\n');
  expect(everything).toContain('Signature expired');
  expect(everything).not.toContain('X-Amz-Signature');
  expect(everything).not.toContain(front.credentials.secretAccessKey);
});

function inAnHour(): Date {
  return new Date(Date.now() + 3_600_000);
}

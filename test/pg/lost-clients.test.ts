// Clients whose connection is lost while they are checked out, and failing servers: what it costs the pool, beside pg.Pool.
import { install } from '@sinonjs/fake-timers';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DoubleReleaseError, Pool } from '../../src/index.js';
import { type FaultyServer, startFaultyServer } from '../support/faulty-server.js';
import { eventOf, rejectionOf } from '../support/outcomes.js';
import { type AnyPool, abandon, type PooledClient, usePoolsOf } from './contract/every-pool.js';

type Options = NonNullable<ConstructorParameters<typeof Pool>[0]>;
type Warning = Error & { code?: string };

const { server, terminate } = usePoolsOf(Pool);
let front: FaultyServer;
let opened: AnyPool[] = [];
let warnings: Warning[] = [];
const note = (warning: Warning): void => void warnings.push(warning);

beforeEach(async () => {
  warnings = [];
  process.on('warning', note);
  front = await startFaultyServer(server());
});

afterEach(async () => {
  process.off('warning', note);
  for (const pool of opened) abandon(pool);
  opened = [];
  await front.stop();
});

/** A pool that reaches its server through the front. */
function newPool(options: Options = {}): Pool {
  const pool = new Pool({ ...server(), port: front.port, name: 'orders', ...options });
  opened.push(pool as unknown as AnyPool);
  return pool;
}

function newPgPool(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ ...server(), port: front.port, ...options });
  opened.push(pool as unknown as AnyPool);
  return pool;
}

function streamOf(client: unknown): PooledClient['connection']['stream'] {
  return (client as PooledClient).connection.stream;
}

/** The socket of the idle client is reset, and Drizzle sends its BEGIN before the program could know. */
async function loseOneToDrizzle(pool: Pool | pg.Pool): Promise<void> {
  await pool.query('select 1');
  front.resetAll();
  await rejectionOf(drizzle(pool).transaction((transaction) => transaction.execute(sql`select 1`)));
}

function lossWarnings(): Warning[] {
  return warnings.filter(({ code }) => code === 'HG_CLIENT_LOST');
}

test('a BEGIN of Drizzle that fails because the connection is gone, whose client is never released costs pg.Pool a place, and after as many as max nothing is served', async () => {
  const pool = newPgPool({ max: 2, connectionTimeoutMillis: 300 });
  pool.on('error', () => {});
  // pg.Pool leaves the errors of a client in use to its holder, and Drizzle does not listen.
  pool.on('connect', (client) => client.on('error', () => {}));
  await loseOneToDrizzle(pool);
  await loseOneToDrizzle(pool);
  expect((await rejectionOf(pool.query('select 1'))).message).toContain('timeout exceeded');
  expect(pool.totalCount).toBe(2);
});

test('a BEGIN of Drizzle that fails because the connection is gone, whose client is never released costs Headgate nothing: the pool goes on, ends, and says that it happened', async () => {
  const pool = newPool({ max: 2, leakThresholdMillis: 600_000 });
  pool.on('error', () => {});
  for (let n = 0; n < 4; n++) await loseOneToDrizzle(pool);
  const clients = [await pool.connect(), await pool.connect()];
  expect(pool.stats()).toMatchObject({ inUse: 2, limit: 2 });
  for (const client of clients) client.release();
  await pool.end();
  expect(pool.totalCount).toBe(0);
  const [first, ...others] = lossWarnings();
  expect(others).toEqual([]);
  expect(first?.message).toMatch(/^Pool orders: a client lost its connection while it was checked out \(/);
  expect(first?.message).toMatch(/error: .*\n {2}taken\n {4}at [\s\S]*drizzle/);
});

test('a client that loses its connection while it is checked out frees its place when the socket is gone, and is released without harm, once', async () => {
  const pool = newPool({ max: 1 });
  const heard: string[] = [];
  for (const event of ['acquire', 'release', 'remove']) pool.on(event as 'acquire', () => heard.push(event));
  const client = await pool.connect();
  client.on('error', () => {});
  const ended = eventOf(client, 'end');
  await terminate(client);
  await ended;
  expect(pool.stats()).toMatchObject({ inUse: 0, closing: 0 });
  const next = await pool.connect();
  await expect(next.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  expect(await rejectionOf(client.query('select 1'))).toBeInstanceOf(Error);
  client.release();
  expect(() => client.release()).toThrow(DoubleReleaseError);
  expect(pool.stats().inUse).toBe(1);
  next.release();
  expect(heard).toEqual(['acquire', 'remove', 'acquire', 'release', 'release']);
  await pool.end();
  expect(lossWarnings()[0]?.message).toContain('Where it was taken was not noted; from now on it is');
});

test('a client that loses its connection while it is checked out lets a caller that waits have the place, never more than max at once', async () => {
  const pool = newPool({ max: 2 });
  const held = [await pool.connect(), await pool.connect()];
  for (const client of held) client.on('error', () => {});
  const waiting = [pool.connect(), pool.connect()];
  front.resetAll();
  for (const client of await Promise.all(waiting)) client.release();
  expect(front.peak).toBeLessThanOrEqual(2);
  await pool.end();
  for (const client of held) client.release();
});

test('a client that loses its connection while it is checked out lets end() finish that waits for it', async () => {
  const pool = newPool();
  const client = await pool.connect();
  client.on('error', () => {});
  const ending = pool.end();
  front.resetAll();
  await ending;
  client.release();
});

test('a client that loses its connection while it is checked out is no reason for a warning when its caller has ended it', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  await (client as unknown as pg.Client).end();
  await pool.query('select 1');
  client.release();
  await pool.end();
  expect(lossWarnings()).toEqual([]);
});

test('a client that loses its connection while it is checked out gives its place free once when it is lost under a query that is then released with the error', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  client.on('error', () => {});
  const sleeping = rejectionOf(client.query('select pg_sleep(30)'));
  front.resetAll();
  client.release(await sleeping);
  await pool.query('select 1');
  expect(pool.stats()).toMatchObject({ inUse: 0, idle: 1 });
  await pool.end();
});

const role = `narrow_${process.pid}`;

test.each([
  ['true', true],
  ['an error of the program', new TypeError('of the program')],
])(
  'a client that is given back to be closed with %s leaves its place on the server before another takes it',
  async (_what, reason) => {
    const admin = newPgPool();
    await admin.query(`create role ${role} login password 'limited' connection limit 2`);
    const pool = newPool({ user: role, password: 'limited', max: 2, port: server().port });
    const worked = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) {
        const client = await pool.connect();
        await client.query('select 1');
        client.release(reason);
      }
    };
    await Promise.all([worked(), worked()]);
    expect(pool.stats().totals.discarded.released_with_error).toBe(200);
    await pool.end();
    await admin.query(`drop role ${role}`);
    await admin.end();
  },
);

test('clients whose peer has vanished are destroyed at once when they come back with an error: the next caller does not wait for them', async () => {
  const pool = newPool({ max: 4, closeTimeoutMillis: 600_000 });
  const clients = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
  front.ignoreGoodbyes();
  const fifth = pool.connect();
  for (const client of clients) client.release(new Error('no answer'));
  (await fifth).release();
  expect(pool.stats()).toMatchObject({ inUse: 0, closing: 0 });
  front.behave();
  await pool.end();
});

test('clients whose peer has vanished are not waited for when a query of theirs has no answer', async () => {
  const pool = newPool({ max: 4, closeTimeoutMillis: 600_000 });
  const clients = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
  front.ignoreGoodbyes();
  for (const client of clients) client.query('select pg_sleep(600)').catch(() => {});
  const closed: boolean[] = [];
  const fifth = pool.connect();
  for (const client of clients) {
    const stream = streamOf(client);
    client.release(new Error('no answer'));
    closed.push(stream.destroyed);
  }
  expect(closed).toEqual([true, true, true, true]);
  (await fifth).release();
  front.behave();
  await pool.end();
});

test('clients whose peer has vanished have said goodbye all the same', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  const stream = streamOf(client);
  let goodbyes = 0;
  const { write } = stream as unknown as { write: (chunk: Buffer) => boolean };
  Object.assign(stream, {
    write(chunk: Buffer, ...rest: []) {
      if (chunk[0] === 'X'.charCodeAt(0)) goodbyes++;
      return write.call(stream, chunk, ...rest);
    },
    end(chunk: Buffer) {
      if (chunk?.[0] === 'X'.charCodeAt(0)) goodbyes++;
    },
  });
  client.release(true);
  await pool.query('select 1');
  expect(goodbyes).toBe(1);
  await pool.end();
});

test('clients whose peer has vanished are looked for among the idle ones when one of them fails by the network', async () => {
  const pool = newPool({ max: 3 });
  const failed = eventOf(pool, 'error');
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  const asked: string[] = [];
  for (const client of clients) {
    const { query } = client;
    Object.assign(client, {
      query(this: pg.Client, ...args: unknown[]) {
        asked.push(`${clients.indexOf(client)}: ${String(args[0])}`);
        return Reflect.apply(query, this, args) as unknown;
      },
    });
    client.release();
  }
  streamOf(clients[0]).emit('error', Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
  await failed;
  expect(asked.sort()).toEqual(['1: SELECT 1', '2: SELECT 1']);
  expect(pool.stats()).toMatchObject({ checking: 2, idle: 0 });
  await Promise.all([pool.query('select 1'), pool.query('select 1')]);
  await vi.waitFor(() => expect(pool.stats()).toMatchObject({ checking: 0, inUse: 0 }), { timeout: 20_000 });
  await pool.end();
});

test('clients whose peer has vanished are not looked for when the server has ended just that one', async () => {
  const pool = newPool({ max: 2 });
  const failed = eventOf(pool, 'error');
  const clients = await Promise.all([pool.connect(), pool.connect()]);
  for (const client of clients) client.release();
  await terminate(clients[0] as pg.PoolClient);
  await failed;
  expect(pool.stats()).toMatchObject({ checking: 0, idle: 1 });
  await pool.end();
});

describe.each([
  ['pg.Pool', newPgPool as (options: object) => pg.Pool],
  ['headgate Pool', (options: object) => newPool({ closeTimeoutMillis: 600_000, ...options })],
])('Four clients in use behind a server that has become a black hole: %s', (_name, make) => {
  test.each<[string, (client: pg.PoolClient) => Promise<unknown>]>([
    ['true', async () => true],
    ['an error of the program', async () => new TypeError('of the program')],
    ['an error of the server', (client: pg.PoolClient) => rejectionOf(client.query('select nothing'))],
  ])('make no caller wait when they come back with %s', async (_what, makeReason) => {
    // Time stands still: who is served has waited for no timer.
    const fakes = install({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
    try {
      const pool = make({ max: 4 });
      const clients = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
      const reasons = await Promise.all(clients.map(makeReason));
      fakes.tick(1_000);
      front.freeze();
      for (const [n, client] of clients.entries()) client.release(reasons[n] as Error);
      const answers = await Promise.all(clients.map(() => pool.query('select 1 as one')));
      expect(answers.map(({ rows }) => rows)).toEqual(clients.map(() => [{ one: 1 }]));
      expect(pool.totalCount).toBe(4);
      await pool.end();
    } finally {
      fakes.uninstall();
    }
  });
});

test('An idle client behind a server that has become a black hole is found by keepalive, with its siblings', async () => {
  const pool = newPool({ max: 3, keepaliveMillis: 20, checkTimeoutMillis: 50, closeTimeoutMillis: 600_000 });
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  for (const client of clients) client.release();
  front.freeze();
  await vi.waitFor(() => expect(pool.stats().totals.discarded.failed_check).toBe(3), { timeout: 20_000 });
  await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  await pool.end();
});

test.each([
  ['a query that pg has given up', 'query_timeout'],
  ['a client that comes back with an error while its query has no answer', 'release'],
] as const)(
  'Idle clients behind a server that has become a black hole are checked before they are lent, after %s; pg.Pool hands them out',
  async (_what, how) => {
    const options = { max: 3, query_timeout: 100 };
    const pools = [newPgPool(options), newPool({ ...options, checkTimeoutMillis: 50 })] as const;
    for (const pool of pools) {
      const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
      for (const client of clients) client.release();
    }
    front.freeze();
    for (const pool of pools) {
      if (how === 'query_timeout') await rejectionOf(pool.query('select 1'));
      else {
        const client = await pool.connect();
        client.query('select 1').catch(() => {});
        client.release(new Error('given up'));
      }
    }
    const [theirs, ours] = pools;
    expect(ours.stats()).toMatchObject({ checking: 2, idle: 0 });
    await expect(ours.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    expect(ours.stats().totals.discarded.failed_check).toBeLessThanOrEqual(2);
    expect((await rejectionOf(theirs.query('select 1'))).message).toBe('Query read timeout');
    await ours.end();
  },
);

test('An idle client whose session the server has ended frees its place soon, though its socket is never closed from there', async () => {
  const pool = newPool({ max: 1, closeTimeoutMillis: 600_000 });
  const failed = eventOf(pool, 'error');
  const client = await pool.connect();
  front.ignoreGoodbyes();
  client.release();
  await terminate(client);
  await failed;
  await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  front.behave();
  await pool.end();
});

test('The first client that is lost, or comes back in a transaction, has the pool note where clients are taken: the next warning names the place', async () => {
  const pool = newPool({ max: 2 });
  const open = await pool.connect();
  await open.query('begin');
  open.release();
  await pool.query('rollback');
  const client = await pool.connect();
  client.on('error', () => {});
  const ended = eventOf(client, 'end');
  await terminate(client);
  await ended;
  await vi.waitFor(() => expect(lossWarnings()).toHaveLength(1));
  const first = warnings.find(({ code }) => code === 'HG_OPEN_TRANSACTION');
  expect(first?.message).toContain(
    'Where it was taken was not noted; from now on it is, for pool.connect().',
  );
  expect(lossWarnings()[0]?.message).toMatch(/\n {2}taken\n {4}at .*lost-clients\.test/);
  client.release();
  await pool.end();
});

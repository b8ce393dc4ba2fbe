// A pool that makes someone wait for long says so by itself: who waits, why, and who has the connections.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PromisePool, TokenBucket } from '../../src/engine.js';
import { Pool } from '../../src/index.js';
import { poolNameOf } from '../../src/pg/pool-name.js';
import { clientsThatWait, FakeClient } from '../support/fake-client.js';
import { rejectionOf } from '../support/outcomes.js';

type Options = NonNullable<ConstructorParameters<typeof Pool>[0]>;
type Warning = Error & { code?: string };

let warnings: Warning[] = [];
const note = (warning: Warning) => {
  warnings.push(warning);
  onWarning();
};
let onWarning = (): void => {};

beforeEach(() => {
  warnings = [];
  process.on('warning', note);
});

afterEach(() => {
  process.off('warning', note);
});

async function nextWarning(): Promise<Warning> {
  const seen = warnings.length;
  if (seen === 0) {
    await new Promise<void>((resolve) => {
      onWarning = resolve;
    });
  }
  return warnings[seen === 0 ? 0 : seen - 1] as Warning;
}

function newPool(options: Options, Client: unknown = FakeClient): Pool {
  return new Pool({ name: 'orders', warnAfterMillis: 30, max: 2, ...options, Client: Client as never });
}

/** Resolves when a pool that begins to wait now has warned: by then, one that waits already has waited for longer. */
async function anotherPoolWarns(): Promise<void> {
  const pool = newPool({ name: 'another', max: 1 });
  const client = await pool.connect();
  const query = pool.query('select 1');
  const seen = warnings.length;
  while (!warnings.slice(seen).some(({ message }) => message.startsWith('Pool another'))) {
    await new Promise<void>((resolve) => {
      onWarning = resolve;
    });
  }
  client.release();
  await query;
  await pool.end();
}

test('A pool whose clients are never released warns which callers have them and where they were taken', async () => {
  const pool = newPool({ leakThresholdMillis: 600_000 });
  const clients = [await pool.connect(), await pool.connect()];
  const query = pool.query('select 1');
  const warning = await nextWarning();
  expect(warning.code).toBe('HG_POOL_STUCK');
  expect(warning.message).toMatch(/^Pool orders: 1 caller waits for a connection, the first for \d+ms/);
  expect(warning.message).toContain('has all its connections in use');
  expect(warning.message).toContain('state open; limit 2: 2 in use, 0 idle');
  expect(warning.message).toMatch(
    /connection 1 \(idle\): in use for \d+ms, taken\n[\s\S]*stuck-pool\.test\.ts/,
  );
  expect(warning.message).toMatch(/connection 2 \(idle\): in use for/);
  for (const client of clients) client.release();
  await query;
  await pool.end();
});

test('A stuck pool warns once at first, and notes the places of later checkouts', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  const query = pool.query('select 1');
  const { message } = await nextWarning();
  expect(message).toContain('Set leakThresholdMillis to note it from the start.');
  for (let round = 0; round < 4; round++) await anotherPoolWarns();
  expect(warnings.filter(({ message }) => message.startsWith('Pool orders'))).toHaveLength(1);
  client.release();
  await query;
  await pool.end();
});

test('A paused pool says that it is paused, in the warning and in the timeout', async () => {
  const pool = newPool({});
  pool.pause();
  const waiting = rejectionOf(pool.connect({ timeout: '200ms' }));
  expect((await nextWarning()).message).toContain('because the pool is paused. Call resume().');
  expect(pool.stats().waitCause).toBe('paused');
  expect((await waiting).message).toMatch(
    /; 1 waiting\. Pool orders is paused\.$|; 0 waiting\. Pool orders is paused\.$/,
  );
  expect(pool.stats().waitCause).toBeUndefined();
  await pool.end();
});

test('A pool that may not open connections says that it waits for its rate limiter', async () => {
  const pool = newPool({ rateLimiter: new TokenBucket({ rate: 0.01, burst: 1 }) });
  const first = await pool.connect();
  const second = rejectionOf(pool.connect({ timeout: '200ms' }));
  expect((await nextWarning()).message).toContain('it waits for its rate limiter');
  expect(pool.stats()).toMatchObject({ waitCause: 'permit', waitingForPermit: 1 });
  expect(pool.stats().totals).toMatchObject({ permitWaits: 1, refillFailures: { rate_limit: 1 } });
  expect(pool.stats().totals.permitWaitedMs).toBeGreaterThan(0);
  expect((await second).message).toContain('it waits for its rate limiter');
  first.release();
  await pool.end();
});

test('A pool without a lease says so', async () => {
  const none = { acquire: () => new Error('The budget is used up.'), release: () => {} };
  const pool = newPool({ leases: none });
  const waiting = rejectionOf(pool.connect({ timeout: '200ms' }));
  const { message } = await nextWarning();
  expect(message).toContain('gets no lease');
  expect(message).toContain('last error: The budget is used up.');
  await waiting;
  await pool.end();
});

function poolWithoutServer(options: Options): Pool {
  const pool = new Pool({
    ...{ host: '127.0.0.1', port: 1, name: 'orders', warnAfterMillis: 200 },
    ...{ backoffBaseMillis: '1h', backoffCapMillis: '1h', ...options },
  });
  pool.on('error', () => {});
  return pool;
}

test('A pool that could not connect says so, and not that its connections are in use', async () => {
  const pool = poolWithoutServer({ onDialFailure: 'retry' });
  const waiting = rejectionOf(pool.connect({ timeout: '20s' }));
  const { message } = await nextWarning();
  expect(message).toContain('because the pool could not connect, and tries again soon.');
  expect(message).toContain('Dials that failed in a row: 1.');
  expect(message).toMatch(/last error: .*ECONNREFUSED/);
  await pool.end({ deadline: 1 });
  await waiting;
});

test('ready() of a pool whose breaker is open says that it tries again only now and then', async () => {
  const pool = poolWithoutServer({ minIdle: 1, breakerThreshold: 1 });
  const ready = rejectionOf(pool.ready(1));
  const { message } = await nextWarning();
  expect(message).toMatch(/^Pool orders: ready\(\) has waited for \d+ms because the pool fails to connect/);
  expect(message).toMatch(/last error: .*ECONNREFUSED/);
  await pool.end({ deadline: 1 });
  await ready;
});

test('A server that does not answer is named as what callers wait for', async () => {
  const { Client, pending } = clientsThatWait();
  const pool = newPool({}, Client);
  const waiting = pool.connect();
  expect((await nextWarning()).message).toContain('because the pool is opening connections');
  for (const connected of pending) connected();
  (await waiting).release();
  await pool.end();
});

test('end() that waits for a client says for which', async () => {
  const pool = newPool({});
  const client = await pool.connect();
  const ended = pool.end();
  const { message } = await nextWarning();
  expect(message).toMatch(/^Pool orders: end\(\) has waited for \d+ms for 1 connection still in use/);
  expect(message).toContain('connection 1 (idle): in use for');
  client.release();
  await ended;
});

test('ready() that waits says what for', async () => {
  const { Client, pending } = clientsThatWait();
  const pool = newPool({}, Client);
  const ready = pool.ready(1);
  expect((await nextWarning()).message).toMatch(
    /^Pool orders: ready\(\) has waited for \d+ms because the pool is opening/,
  );
  for (const connected of pending) connected();
  await ready;
  await pool.end();
});

test('A pool that serves its callers, or has warnAfterMillis 0, does not warn', async () => {
  const busy = newPool({ max: 1, warnAfterMillis: 500 });
  await Promise.all(Array.from({ length: 200 }, () => busy.query('select 1')));
  const silent = newPool({ max: 1, warnAfterMillis: 0 });
  const client = await silent.connect();
  const query = silent.query('select 1');
  for (let round = 0; round < 2; round++) await anotherPoolWarns();
  client.release();
  await query;
  await Promise.all([busy.end(), silent.end()]);
  expect(warnings.filter(({ message }) => message.startsWith('Pool orders'))).toEqual([]);
});

test('A PromisePool warns too', async () => {
  const pool = new PromisePool({
    name: 'sockets',
    max: 1,
    warnAfter: '30ms',
    connect: async () => ({}),
    close: async () => {},
  });
  const lease = await pool.acquire();
  const next = pool.acquire();
  expect((await nextWarning()).message).toMatch(/^Pool sockets: 1 caller waits/);
  lease.release();
  (await next).release();
  await pool.drain();
});

test('An unknown option is warned about with the nearest known one, once', async () => {
  const options = { maxLifetimeSecond: 5 } as Options;
  const pools = [new Pool(options), new Pool(options)];
  const warning = await nextWarning();
  expect(warning.code).toBe('HG_UNKNOWN_OPTION');
  expect(warning.message).toContain(
    'maxLifetimeSecond is not known and does nothing. Did you mean maxLifetimeSeconds?',
  );
  for (const pool of pools) await pool.end();
  expect(warnings).toHaveLength(1);
});

test('The name of a pool is what it connects to', () => {
  const environment = { PGHOST: 'db.example', PGPORT: '6000', USER: 'me' };
  expect(poolNameOf({}, environment)).toBe('db.example:6000/me');
  expect(poolNameOf({}, {})).toBe('localhost:5432');
  expect(poolNameOf({ host: 'other', database: 'app' }, environment)).toBe('other:6000/app');
  const connectionString = 'postgres://me:secret@first.example/app%20one?host=/run/pg';
  expect(poolNameOf({ connectionString, port: 7 }, environment)).toBe('/run/pg:7/app one');
  expect(poolNameOf({ connectionString: 'postgres://first.example:1/app', port: 7 }, environment)).toBe(
    'first.example:1/app',
  );
  expect(poolNameOf({ host: '::1', user: 'you' }, {})).toBe('[::1]:5432/you');
});

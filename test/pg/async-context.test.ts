// The async context in which the work of a pool runs, beside pg.Pool where it keeps to the same rule.
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import Cursor from 'pg-cursor';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PromisePool } from '../../src/engine.js';
import { type ConnectOptions, type LeaseHolder, Pool, TokenBucket } from '../../src/index.js';
import { nextTurn } from '../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

interface Request {
  readonly id: number;
}

type Options = NonNullable<ConstructorParameters<typeof Pool>[0]>;
type AnyPool = pg.Pool & Partial<Pick<Pool, 'stats'>>;

const current = new AsyncLocalStorage<Request>();
const here = (): number | undefined => current.getStore()?.id;
const killOthers =
  'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()';

let db: TestDatabase;
let pools: AnyPool[] = [];
/** Statements that clients got, and the request of each as the store tells. */
let asked: { text: string; by: number | undefined }[] = [];
let dialedBy: (number | undefined)[] = [];

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());
afterEach(async () => {
  await Promise.all(pools.map((pool) => (pool.ending ? undefined : pool.end())));
  pools = [];
  asked = [];
  dialedBy = [];
});

class WatchedClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: it stands in for every overload at once
  override connect(...args: any[]): any {
    dialedBy.push(here());
    return super.connect(...(args as []));
  }

  // biome-ignore lint/suspicious/noExplicitAny: it stands in for every overload at once
  override query(...args: any[]): any {
    const [query] = args as [string | { text: string }];
    asked.push({ text: typeof query === 'string' ? query : query.text, by: here() });
    return super.query(...(args as [string]));
  }
}

function open<P extends AnyPool>(PoolClass: new (options?: Options) => P, options: Options = {}): P {
  const { host, port, user, password, database } = db;
  const server = { host, port, user, password, database };
  const pool = new PoolClass({ ...server, max: 4, Client: WatchedClient, ...options } as Options);
  pools.push(pool);
  return pool;
}

const implementations: [name: string, make: (options?: Options) => AnyPool][] = [
  ['pg.Pool', (options) => open(pg.Pool as unknown as new (options?: Options) => AnyPool, options)],
  ['headgate Pool', (options) => open(Pool, options)],
  ['headgate Pool with pipelining', (options) => open(Pool, { ...options, pipeline: { depth: 8 } })],
];
const ours = implementations.slice(1);

/** Runs `work` for each of `count` requests at once. */
async function requests(count: number, work: (id: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => current.run({ id: n + 1 }, () => work(n + 1))));
}

/** Queries whose text names another request than the store did. */
function misplaced(): unknown[] {
  return asked.filter(({ text, by }) => by !== Number(/request (\d+)/.exec(text)?.[1]));
}

function called<T>(start: (done: (error: Error | null | undefined, result?: T) => void) => unknown): Promise<{
  error: Error | null | undefined;
  result: T | undefined;
  by: number | undefined;
}> {
  return new Promise((resolve) => {
    start((error, result) => resolve({ error, result, by: here() }));
  });
}

/** Whether `connect()` called back with an error, and in whose context. */
function connectCalled(
  pool: Pool,
  options: ConnectOptions,
): Promise<{ error: unknown; by: number | undefined }> {
  return new Promise((resolve) => {
    pool.connect(options, (error) => resolve({ error, by: here() }));
  });
}

describe.each(implementations)('Promises of 200 requests on 4 connections: %s', (name, make) => {
  test('start every query in the context of its own request', async () => {
    const pool = make();
    await requests(200, async (id) => {
      await pool.query(`select 1 -- request ${id}`);
      await nextTurn();
      const client = await pool.connect();
      await client.query({ text: `select $1::int -- request ${id}`, values: [id] });
      client.release();
      expect(here()).toBe(id);
    });
    expect(asked).toHaveLength(400);
    // pg.Pool runs the queries of callers that waited for another's release in that other's context.
    if (name === 'pg.Pool') expect(misplaced().length).toBeGreaterThanOrEqual(100);
    else expect(misplaced()).toEqual([]);
  });
});

describe.each(implementations)('Callbacks of 200 requests on 4 connections: %s', (name, make) => {
  test('callbacks are called in the context of their own request, as are the queries', async () => {
    const pool = make();
    const callers: (readonly [number, number | undefined])[] = [];
    await requests(200, async (id) => {
      const one = await called((done) => pool.query(`select 1 -- request ${id}`, done));
      const two = await new Promise<number | undefined>((resolve, reject) => {
        pool.connect((error, client, release) => {
          if (error || client === undefined) {
            reject(error);
            return;
          }
          callers.push([id, here()]);
          client.query(`select $1::int -- request ${id}`, [id], () => {
            release();
            resolve(here());
          });
        });
      });
      callers.push([id, one.by], [id, two]);
    });
    expect(asked).toHaveLength(400);
    expect(callers).toHaveLength(600);
    const foreign = callers.filter(([id, by]) => id !== by);
    if (name === 'pg.Pool') {
      expect(misplaced().length).toBeGreaterThanOrEqual(200);
      expect(foreign.length).toBeGreaterThanOrEqual(200);
    } else expect([misplaced(), foreign]).toEqual([[], []]);
  });
});

describe.each(ours)('Every query belongs to its own request: %s', (_name, make) => {
  test('where a failed query, a lost connection or a query that leaves a transaction open is the answer', async () => {
    const pool = make({ max: 1 });
    await requests(3, async (id) => {
      const failed = await called((done) => pool.query(`select nothing -- request ${id}`, done));
      expect([failed.error instanceof Error, failed.by]).toEqual([true, id]);
      const lost = await called((done) =>
        pool.query(`select pg_terminate_backend(pg_backend_pid()) -- request ${id}`, done),
      );
      expect([lost.error instanceof Error, lost.by]).toEqual([true, id]);
    });
    const begun = await current.run({ id: 9 }, () =>
      called((done) => pool.query('begin -- request 9', done)),
    );
    expect(begun.by).toBe(9);
    if (begun.error == null) await pool.query('rollback -- request 0');
  });
});

test('What is done for a caller runs in its context a dial, its hooks and the events of opening and checking out, even when begun by the release of another', async () => {
  const seen: [string, number | undefined][] = [];
  const pool = open(Pool, {
    max: 1,
    maxUses: 1,
    onConnect: () => void seen.push(['onConnect', here()]),
    verify: (_client: unknown, done: (error?: Error) => void) => {
      seen.push(['verify', here()]);
      done();
    },
  } as Options);
  pool.on('connect', () => seen.push(['connect', here()]));
  pool.on('acquire', () => seen.push(['acquire', here()]));
  await requests(3, async (id) => {
    await pool.query(`select 1 -- request ${id}`);
  });
  expect(dialedBy).toEqual([1, 2, 3]);
  expect(seen).toEqual(
    [1, 2, 3].flatMap((id) => ['onConnect', 'connect', 'acquire', 'verify'].map((what) => [what, id])),
  );
});

test('What is done for a caller runs in its context a dial in the mode that tries again', async () => {
  const pool = open(Pool, { max: 1, maxUses: 1, onDialFailure: 'retry' });
  await requests(3, async (id) => {
    await pool.query(`select 1 -- request ${id}`);
  });
  expect(dialedBy).toEqual([1, 2, 3]);
});

test('What is done for a caller runs in its context a timeout, an abort and the end of the pool', async () => {
  const pool = open(Pool, { max: 1 });
  const held = await current.run({ id: 1 }, () => pool.connect());
  const late = await current.run({ id: 2 }, () => connectCalled(pool, { timeout: 1 }));
  expect([late.error instanceof Error, late.by]).toEqual([true, 2]);
  const abort = new AbortController();
  const aborted = current.run({ id: 3 }, () => connectCalled(pool, { signal: abort.signal }));
  current.run({ id: 4 }, () => abort.abort());
  expect((await aborted).by).toBe(3);
  const ended = current.run({ id: 5 }, () => called((done) => pool.end(() => done(undefined))));
  current.run({ id: 6 }, () => held.release());
  expect((await ended).by).toBe(5);
});

test('Work for a caller runs in its context: the events and cursors of a client while it is checked out, by whatever caller it was opened', async () => {
  const pool = open(Pool, { max: 1 });
  const seen: [string, number | undefined][] = [];
  await requests(4, async (id) => {
    const client = await pool.connect();
    const noticed = (): void => void seen.push(['notice', here()]);
    client.on('notice', noticed);
    await client.query(`do $$ begin raise notice 'request ${id}'; end $$`);
    client.removeListener('notice', noticed);
    const cursor = client.query(new Cursor(`select generate_series(1, 3) -- request ${id}`));
    const { by } = await called((done) => cursor.read(2, done));
    seen.push(['cursor', by]);
    await new Promise<void>((resolve) => void cursor.close(() => resolve()));
    client.release();
  });
  expect(seen).toEqual(
    [1, 2, 3, 4].flatMap((id) => [
      ['notice', id],
      ['cursor', id],
    ]),
  );
});

test('What is done for a caller runs in its context the events of a query object that is given to pool.query()', async () => {
  const seenBy = async (pool: pg.Pool): Promise<[string, number | undefined][]> => {
    const seen: [string, number | undefined][] = [];
    await requests(3, async (id) => {
      const query = new pg.Query(`select 1 -- request ${id}`);
      query.on('row', () => seen.push([`row ${id}`, here()]));
      const ended = new Promise<void>((resolve) => {
        query.on('end', () => {
          seen.push([`end ${id}`, here()]);
          resolve();
        });
      });
      pool.query(query);
      await ended;
    });
    return seen;
  };
  const right = [1, 2, 3].flatMap((id) => [
    [`row ${id}`, id],
    [`end ${id}`, id],
  ]);
  expect(await seenBy(open(Pool, { max: 1 }))).toEqual(right);
  // pg.Pool runs them in the context in which the connection was opened.
  expect(await seenBy(open(pg.Pool as never, { max: 1 }))).not.toEqual(right);
});

test('What is done for a caller runs in its context the messages about it on diagnostics channels', async () => {
  const told: Record<string, (number | undefined)[]> = {};
  const names = ['acquired', 'released', 'timeout'];
  const listeners = names.map((name) => {
    const heard: (number | undefined)[] = [];
    told[name] = heard;
    const note = (): void => void heard.push(here());
    subscribe(`headgate:pool:${name}`, note);
    return (): void => void unsubscribe(`headgate:pool:${name}`, note);
  });
  const pool = open(Pool, { max: 1 });
  const engine = new PromisePool({ connect: () => ({}), max: 1, acquireTimeout: 1 });
  try {
    await requests(5, async (id) => {
      await pool.query(`select 1 -- request ${id}`);
    });
    await requests(5, async (id) => {
      const client = await pool.connect();
      await client.query(`select 1 -- request ${id}`);
      client.release();
    });
    const everyone = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5];
    expect(told).toEqual({ acquired: everyone, released: everyone, timeout: [] });
    const held = await current.run({ id: 6 }, () => engine.acquire());
    const next = current.run({ id: 7 }, () => engine.acquire({ timeout: 0 }));
    await current.run({ id: 8 }, () => engine.acquire().catch(() => {}));
    current.run({ id: 6 }, () => held.release());
    await current.run({ id: 7 }, async () => (await next).release());
    expect(told).toEqual({ acquired: [...everyone, 6, 7], released: [...everyone, 6, 7], timeout: [8] });
  } finally {
    for (const stop of listeners) stop();
    await engine.drain();
  }
});

test('Work of the pool itself runs in no context: keepalive, refill, the events of idle clients, the budget and the rate limiter', async () => {
  const seen: [string, number | undefined][] = [];
  const bucket = new TokenBucket({ rate: 1_000, burst: 100 });
  let checks = 0;
  const checked = new Promise<void>((resolve) => {
    const look = setInterval(() => {
      checks = asked.filter(({ text }) => text === 'SELECT 1').length;
      if (checks < 12) return;
      clearInterval(look);
      resolve();
    }, 5);
  });
  const pool = open(Pool, {
    minIdle: 2,
    keepaliveMillis: 2,
    maxUses: 3,
    rateLimiter: {
      take: (now: number) => {
        seen.push(['take', here()]);
        return bucket.take(now);
      },
    },
    leases: {
      acquire: (_count: number, _holder: LeaseHolder) => {
        seen.push(['acquire', here()]);
        return 'granted' as const;
      },
      release: () => void seen.push(['release', here()]),
    },
  });
  pool.on('remove', () => seen.push(['remove', here()]));
  await requests(30, async (id) => {
    await pool.query(`select 1 -- request ${id}`);
  });
  await checked;
  await pool.ready(4);
  let isLost = false;
  pool.on('error', () => {
    seen.push(['error', here()]);
    isLost = true;
  });
  const killer = new pg.Client({ connectionString: db.url });
  await killer.connect();
  // A connection that is lost while keepalive checks it has no event: the next round may find an idle one.
  while (!isLost) {
    await current.run({ id: 99 }, () => killer.query(killOthers));
    await sleep(5);
  }
  await killer.end();
  expect(new Set(seen.map(([what]) => what))).toEqual(
    new Set(['take', 'acquire', 'release', 'remove', 'error']),
  );
  expect(seen.filter(([, by]) => by !== undefined)).toEqual([]);
  expect(asked.filter(({ text, by }) => text === 'SELECT 1' && by !== undefined)).toEqual([]);
});

test('Work of the pool itself runs in no context, also in a pool that was made inside a request, with a reservoir', async () => {
  const seen: [string, number | undefined][] = [];
  const pool = current.run({ id: 77 }, () =>
    open(Pool, {
      max: 3,
      keepaliveMillis: 2,
      reservoir: { targetReady: 2 },
      // Longer than the reservoir's own limit of a wait, which a busy machine exceeds.
      connectionTimeoutMillis: 60_000,
      leases: {
        acquire: () => {
          seen.push(['acquire', here()]);
          return 'granted' as const;
        },
        release: () => void seen.push(['release', here()]),
      },
    }),
  );
  pool.on('connect', () => seen.push(['connect', here()]));
  const isReady = current.run({ id: 78 }, () => pool.ready());
  await isReady;
  expect(new Set(dialedBy)).toEqual(new Set([undefined]));
  expect(seen.filter(([, by]) => by !== undefined)).toEqual([]);
  await requests(30, async (id) => {
    const client = await pool.connect();
    await client.query(`select 1 -- request ${id}`);
    client.release(id % 7 === 0);
    await current.exit(() => pool.query('select 2 -- request NaN'));
    expect(here()).toBe(id);
  });
  const queries = asked.filter(({ text }) => text.startsWith('select'));
  const expected = (text: string): number | undefined => Number(/request (\d+)/.exec(text)?.[1]) || undefined;
  expect(queries.filter(({ text, by }) => by !== expected(text))).toEqual([]);
  const others = asked.filter(({ text }) => !text.startsWith('select'));
  expect(others.filter(({ by }) => by !== undefined)).toEqual([]);
  await current.run({ id: 79 }, () => pool.end());
  expect(seen.filter(([what, by]) => what !== 'connect' && by !== undefined)).toEqual([]);
});

test('Work of the pool itself runs in no context, and no finished request is kept alive by a connection that it opened, used or gave back', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const pool = open(Pool, { keepaliveMillis: 5, connectionTimeoutMillis: 60_000 });
  const kept: WeakRef<Request>[] = [];
  await Promise.all(
    Array.from({ length: 20 }, (_, id) => {
      const request = { id };
      kept.push(new WeakRef(request));
      return current.run(request, async () => {
        await pool.query(`select 1 -- request ${id}`);
        const client = await pool.connect();
        client.on('notification', () => {});
        await client.query(`select 2 -- request ${id}`);
        client.removeAllListeners('notification');
        client.release();
      });
    }),
  );
  await pool.ready(4);
  for (let round = 0; round < 20 && kept.some((each) => each.deref() !== undefined); round++) {
    await nextTurn();
    collect();
  }
  expect(kept.filter((each) => each.deref() !== undefined)).toHaveLength(0);
});

test('a checkout that finds a ready client makes no async resource, inside a request or outside', async () => {
  const pool = open(Pool, { max: 2 });
  (await pool.connect()).release();
  const made: string[] = [];
  const hook = createHook({ init: (_id, type) => void made.push(type) }).enable();
  const checkOut = async (): Promise<void> => {
    for (let n = 0; n < 100; n++) (await pool.connect()).release();
    for (let n = 0; n < 100; n++) pool.tryConnect()?.release();
  };
  try {
    await checkOut();
    await current.run({ id: 1 }, checkOut);
    expect(made.filter((type) => type !== 'PROMISE')).toEqual([]);
    // The second waits for a dial, and the third for a client.
    const all = await Promise.all([1, 2, 3].map(() => pool.connect().then((client) => client.release())));
    expect(all).toHaveLength(3);
    expect(made.filter((type) => type === 'headgate.caller')).toHaveLength(2);
  } finally {
    hook.disable();
  }
});

// What other libraries look at: what the pool is an instance of, what it is called, and its untyped properties.
import { EventEmitter } from 'node:events';
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { clientsThatWait } from '../../support/fake-client.js';
import { eventOf } from '../../support/outcomes.js';
import { type AnyPool, everyPool } from './every-pool.js';

everyPool(({ Pool, newPool }) => {
  test('a pool is an instance of pg.Pool, of the class that pg.Pool extends, and of EventEmitter', () => {
    const pool = newPool();
    expect(pool).toBeInstanceOf(pg.Pool);
    expect(pool).toBeInstanceOf(Object.getPrototypeOf(pg.Pool));
    expect(pool).toBeInstanceOf(EventEmitter);
  });

  test('a pool has "Pool" in the name of its class, by which Drizzle tells a pool from a client', () => {
    expect(Pool.name).toContain('Pool');
    expect(Object.getPrototypeOf(newPool()).constructor.name).toContain('Pool');
    expect(newPool().constructor).toBe(Pool);
  });

  test('a pool has methods on its prototype, where tracing libraries wrap them', () => {
    for (const method of ['connect', 'query', 'end'] as const) {
      expect(Pool.prototype[method]).toBeInstanceOf(Function);
      expect(Object.keys(newPool())).not.toContain(method);
    }
  });

  test('a pool goes through connect() in query(), so that one wrapped on the prototype sees every checkout', async () => {
    const wrapped = vi.spyOn(Pool.prototype, 'connect');
    try {
      const pool = newPool();
      await pool.query('select 1');
      await new Promise((resolve) => pool.query('select 1', resolve));
      expect(wrapped).toHaveBeenCalledTimes(2);
      await pool.end();
    } finally {
      wrapped.mockRestore();
    }
  });

  test('a pool goes through connect() in query(), so that one wrapped on the pool sees every checkout', async () => {
    const pool = newPool();
    const original = pool.connect;
    let seen = 0;
    pool.connect = function wrapped(this: pg.Pool, ...args: unknown[]) {
      seen += 1;
      return Reflect.apply(original, this, args);
    } as typeof pool.connect;
    await pool.query('select 1');
    await pool.query('select 1');
    expect(seen).toBe(2);
    await pool.end();
  });
});

everyPool(({ newPool }) => {
  const wrappers: [name: string, wrap: (pool: AnyPool) => AnyPool][] = [
    [
      'a proxy that is made before it',
      (pool) =>
        new Proxy(
          {} as AnyPool,
          lazily(() => pool),
        ),
    ],
    ['a proxy of it', (pool) => new Proxy(pool, {})],
    ['an object that inherits from it', (pool) => Object.create(pool)],
  ];
  /** As modules export a pool that is made on first use. */
  const lazily = (make: () => AnyPool): ProxyHandler<AnyPool> => ({
    get: (_, key) => Reflect.get(make(), key),
    set: (_, key, value) => Reflect.set(make(), key, value),
  });

  test.each(wrappers)('a pool works through %s', async (_name, wrap) => {
    const pool = newPool({ max: 1 });
    const wrapped = wrap(pool);
    await expect(wrapped.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    const client = await wrapped.connect();
    const next = new Promise((resolve) => wrapped.query('select 2 as two', (_, result) => resolve(result)));
    expect([wrapped.totalCount, wrapped.idleCount, wrapped.waitingCount]).toEqual([1, 0, 1]);
    client.release();
    expect(await next).toMatchObject({ rows: [{ two: 2 }] });
    const removed = eventOf(pool, 'remove');
    await pool.end();
    await removed;
    expect(wrapped.totalCount).toBe(0);
  });
});

everyPool(({ newPool }) => {
  test('_clients holds every client that is counted, from the tick in which it is created', async () => {
    const { Client, pending } = clientsThatWait();
    const pool = newPool({ Client, max: 2 });
    const connecting = [pool.connect(), pool.connect()];
    expect(Array.isArray(pool._clients)).toBe(true);
    expect(pool._clients).toHaveLength(2);
    for (const client of pool._clients) expect(client).toBeInstanceOf(Client);
    for (const connected of pending) connected();
    const [first, second] = await Promise.all(connecting);
    expect(new Set(pool._clients)).toEqual(new Set([first, second]));
    first?.release();
    expect(pool._clients).toHaveLength(2);
    second?.release(true);
    expect(pool._clients).toEqual([first]);
    await pool.end();
    expect(pool._clients).toHaveLength(0);
  });

  test('_idle and _pendingQueue hold as many as are idle and wait, for programs older than the counts', async () => {
    const pool = newPool({ max: 2 });
    const lengths = () => [pool._clients.length, pool._idle.length, pool._pendingQueue.length];
    expect(lengths()).toEqual([0, 0, 0]);
    const [first, second] = await Promise.all([pool.connect(), pool.connect()]);
    const third = pool.connect();
    expect(lengths()).toEqual([2, 0, 1]);
    first.release();
    expect(lengths()).toEqual([2, 0, 0]);
    second.release();
    (await third).release();
    expect(lengths()).toEqual([2, 2, 0]);
    expect(new Set(pool._idle.map(({ client }) => client))).toEqual(new Set([first, second]));
    const next = await pool.connect();
    expect(pool._idle.map(({ client }) => client)).toEqual([next === first ? second : first]);
    next.release();
    await pool.end();
    expect(lengths()).toEqual([0, 0, 0]);
  });

  test('Client and options are enough to open one more connection to the same place, as Kysely does', async () => {
    const pool = newPool();
    expect(pool.Client).toBe(pg.Client);
    const client = new (pool.Client as typeof pg.Client)(pool.options);
    await client.connect();
    const { rows } = await client.query('show application_name');
    expect(rows).toEqual([{ application_name: pool.options.application_name }]);
    await client.end();
  });

  test('Promise is the promise class in use, and log is a function', () => {
    const pool = newPool();
    expect(pool.Promise).toBe(Promise);
    expect(pool.log).toBeInstanceOf(Function);
    expect(pool.log('anything')).toBeUndefined();
    const log = () => {};
    expect(newPool({ log }).log).toBe(log);
  });

  test('ending and ended say where the pool is', async () => {
    const pool = newPool();
    expect([pool.ending, pool.ended]).toEqual([false, false]);
    await pool.end();
    expect([pool.ending, pool.ended]).toEqual([true, true]);
  });

  test('clients carry the number of their uses', async () => {
    const pool = newPool({ max: 1 });
    await pool.query('select 1');
    const client = await pool.connect();
    expect(client).toMatchObject({ _poolUseCount: 1 });
    client.release();
    expect(client).toMatchObject({ _poolUseCount: 2 });
    await pool.end();
  });
});

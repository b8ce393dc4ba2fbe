// Who gets a connection, and when, while others are shared: nobody waits for ever, and what steers the pool (limits, pauses,
// lifetimes, its end) holds for shared connections too.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { expect, test } from 'vitest';
import { AcquireAbortedError, AcquireTimeoutError, type Pool, PoolClosedError } from '../../src/index.js';
import { nextTurn, rejectionOf, watch } from '../support/outcomes.js';
import { EndlessLoad, type PoolOptions, usePipelinedPools } from '../support/pipelined-pools.js';

const { newPool, newWatchedPool, ask, sessionsOf, newGate } = usePipelinedPools(
  'create table item (id int primary key)',
);

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_nothing, index) => make(index));
}

test('under queries without end a caller of connect() waits for those ahead of it and for no more', async () => {
  const callers = 20;
  const depth = 4;
  const pool = newPool({ max: 1, pipeline: { depth } });
  const load = new EndlessLoad(callers, () => pool.query('select 1'));
  await load.goesOn(100);
  for (const _turn of times(30, () => 0)) {
    const before = load.answered;
    const client = await pool.connect();
    expect(load.answered - before).toBeLessThanOrEqual(callers + 2 * depth);
    client.release();
    await load.goesOn(7);
  }
  await load.stop();
});

test('under queries without end many callers of connect() are served on many connections', async () => {
  const pool = newPool({ max: 3 });
  const load = new EndlessLoad(40, () => pool.query('select 1'));
  const transactions = times(100, async (id) => {
    const client = await pool.connect();
    await client.query('begin');
    const { rows } = await client.query('select $1::int as id', [id]);
    await client.query('commit');
    client.release();
    return rows[0].id;
  });
  expect(await Promise.all(transactions)).toEqual(times(100, (id) => id));
  await load.goesOn(100);
  await load.stop();
});

test('under queries without end a query that needs a connection to itself is served', async () => {
  const pool = newPool({ max: 2 });
  const load = new EndlessLoad(40, () => pool.query('select 1'));
  for (const id of times(10, (at) => at)) {
    await pool.query(`create table table_${id} (a int)`);
    await pool.query(`insert into table_${id} values (1); drop table table_${id}`);
  }
  await load.stop();
});

test('under queries without end callers of connect() who lose patience leave all to the queries again', async () => {
  const { pool, clients } = newWatchedPool({ max: 2 });
  await pool.ready(2);
  const load = new EndlessLoad(40, () => pool.query('select 1'));
  await load.goesOn(100);
  for (const _turn of times(20, () => 0)) {
    const patience = new AbortController();
    const caller = watch(pool.connect({ signal: patience.signal }));
    patience.abort();
    expect(await rejectionOf(caller.promise)).toBeInstanceOf(AcquireAbortedError);
  }
  await load.goesOn(500);
  for (const client of clients) client.peak = client.underWay;
  await load.goesOn(100);
  expect(clients.map(({ peak }) => peak)).toEqual([4, 4]);
  await load.stop();
  expect(pool.stats()).toMatchObject({ inUse: 0, idle: 2, waiting: 0 });
});

test('under callers of connect() without end a query waits for those ahead of it and for no more', async () => {
  const callers = 10;
  const pool = newPool({ max: 1 });
  const load = new EndlessLoad(callers, async () => {
    const client = await pool.connect();
    await client.query('select 1');
    client.release();
  });
  await load.goesOn(20);
  for (const id of times(30, (at) => at)) {
    const before = load.answered;
    const { rows } = await pool.query('select $1::int as id', [id]);
    expect(rows).toEqual([{ id }]);
    expect(load.answered - before).toBeLessThanOrEqual(2 * callers);
  }
  await load.stop();
});

test('under callers of connect() without end queries share what they get', async () => {
  const pool = newPool({ max: 2 });
  const load = new EndlessLoad(10, async () => {
    const client = await pool.connect();
    await client.query('select 1');
    client.release();
  });
  await load.goesOn(20);
  const before = load.answered;
  const answers = await Promise.all(times(400, (id) => pool.query('select $1::int as id', [id])));
  expect(answers.map(({ rows }) => rows[0].id)).toEqual(times(400, (id) => id));
  // Without sharing, each of them would have stood in the queue behind a caller of connect().
  expect(load.answered - before).toBeLessThan(400);
  await load.stop();
});

/** Callers have no patience, but a connection may take its time to be opened. */
function newImpatientPool(options: PoolOptions): Pool {
  class PatientClient extends pg.Client {
    constructor(given: object) {
      super(Object.create(given, { connectionTimeoutMillis: { value: 0 } }));
    }
  }
  const Client = PatientClient as typeof pg.Client;
  return newPool({ ...options, Client, connectionTimeoutMillis: 20, dialTimeoutMillis: '20s' });
}

test('queries in the queue time out, and are not executed afterwards', async () => {
  const gate = newGate();
  await gate.close();
  const pool = newImpatientPool({ max: 1, pipeline: { depth: 2 } });
  await pool.ready(1);
  const sent = [pool.query(gate.text, gate.values), pool.query('select 7 as seven')];
  const queued = times(5, (id) => rejectionOf(pool.query('insert into item values ($1)', [id])));
  for (const error of await Promise.all(queued)) {
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ code: 'HG_ACQUIRE_TIMEOUT' });
    expect(error.message).toContain('timeout exceeded when trying to connect');
  }
  expect(pool.waitingCount).toBe(0);
  await gate.open();
  const [, second] = await Promise.all(sent);
  expect(second?.rows).toEqual([{ seven: 7 }]);
  await pool.query('select 1');
  expect(await ask('select * from item')).toEqual([]);
});

test('queries in the queue leave nothing behind when they time out behind a checked-out client', async () => {
  const pool = newImpatientPool({ max: 1 });
  await pool.ready(1);
  const client = await pool.connect();
  const errors = await Promise.all(times(50, () => rejectionOf(pool.query('select 1'))));
  for (const error of errors) expect(error).toBeInstanceOf(AcquireTimeoutError);
  client.release();
  const answers = await Promise.all(times(4, (id) => pool.query('select $1::int as id', [id])));
  expect(answers.map(({ rows }) => rows[0].id)).toEqual([0, 1, 2, 3]);
  expect(pool.stats()).toMatchObject({ inUse: 0, waiting: 0, totals: { timedOut: 50 } });
});

test('queries in the queue are forgotten once they are answered', async () => {
  const pool = newPool({ max: 1 });
  const collectGarbage = garbageCollector();
  const answered: WeakRef<object>[] = [];
  for (const _turn of times(50, () => 0)) {
    const client = await pool.connect();
    const query = askWithWitness(pool, answered);
    client.release();
    await query;
  }
  await nextTurn();
  collectGarbage();
  const kept = answered.filter((witness) => witness.deref() !== undefined);
  expect(kept.length).toBeLessThanOrEqual(2);
});

/** A query with a value that nobody but the pool knows of. */
function askWithWitness(pool: Pool, witnesses: WeakRef<object>[]): Promise<unknown> {
  const value = { toPostgres: () => 'x' };
  witnesses.push(new WeakRef(value));
  return pool.query('select $1::text', [value]).then(() => undefined);
}

function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}

test('pause() and resume() hold back every query that is not yet under way', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 2 });
  await pool.ready(2);
  const sent = times(2, () => pool.query(gate.text, gate.values));
  pool.pause();
  const held = times(10, (id) => watch(pool.query('select $1::int as id', [id])));
  expect(clients.map(({ underWay }) => underWay)).toEqual([1, 1]);
  expect(pool.stats()).toMatchObject({ state: 'paused', waiting: 10 });
  await gate.open();
  await Promise.all(sent);
  await nextTurn();
  expect(held.filter(({ settled }) => settled)).toEqual([]);
  expect(clients.map(({ underWay }) => underWay)).toEqual([0, 0]);
  pool.resume();
  const answers = await Promise.all(held.map(({ promise }) => promise));
  expect(answers.map(({ rows }) => rows[0].id)).toEqual(times(10, (id) => id));
});

test('pause() and resume() take effect under queries without end', async () => {
  const pool = newPool({ max: 2 });
  await pool.ready(2);
  const load = new EndlessLoad(40, () => pool.query('select 1'));
  for (const _turn of times(5, () => 0)) {
    await load.goesOn(100);
    pool.pause();
    const { answered } = load;
    // Queries under way may still be answered; no others are sent.
    while (pool.stats().inUse > 0 && load.answered <= answered + 2 * 4) await nextTurn();
    expect(pool.stats()).toMatchObject({ inUse: 0, idle: 2 });
    expect(load.answered - answered).toBeLessThanOrEqual(2 * 4);
    pool.resume();
  }
  await load.stop();
});

test('resize() upwards gives queries in the queue new connections', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 1, pipeline: { depth: 2 } });
  const queries = times(12, () => pool.query(gate.text, gate.values));
  await gate.isReachedBy(1);
  expect(clients).toHaveLength(1);
  pool.resize(3);
  await gate.isReachedBy(3);
  expect(clients.map(({ underWay }) => underWay)).toEqual([2, 2, 2]);
  await gate.open();
  await Promise.all(queries);
});

test('resize() downwards takes effect under queries without end', async () => {
  const { pool, clients } = newWatchedPool({ max: 4 });
  await pool.ready(4);
  const load = new EndlessLoad(60, () => pool.query('select 1'));
  await load.goesOn(200);
  expect(await sessionsOf(pool)).toBe(4);
  pool.resize(1);
  await load.goesOn(1_000);
  expect(pool.stats()).toMatchObject({ live: 1, limit: 1 });
  while ((await sessionsOf(pool)) > 1);
  expect(clients).toHaveLength(4);
  await load.stop();
});

test('the life of a connection ends after `maxUses` stretches of use', async () => {
  const { pool, clients } = newWatchedPool({ max: 1, maxUses: 3 });
  for (const _turn of times(9, () => 0)) await pool.query('select 1');
  await pool.query('select 1');
  expect(clients.map(({ asked }) => asked.length)).toEqual([3, 3, 3, 1]);
});

test('the life of a connection ends at its end, though queries without end share it', async () => {
  const { pool, clients } = newWatchedPool({ max: 2, maxLifetimeSeconds: 0.05 });
  const load = new EndlessLoad(40, () => pool.query('select 1'));
  // Each of the first two has been replaced, while nobody waited in vain.
  while (clients.length < 4 && load.answered < 50_000) await load.goesOn(20);
  expect(clients.length).toBeGreaterThanOrEqual(4);
  expect(await sessionsOf(pool)).toBeLessThanOrEqual(2);
  await load.stop();
  expect(pool.stats().peak).toBe(2);
});

test('the life of a connection is no leak while queries without end share it', async () => {
  const leaks: unknown[] = [];
  const note = (message: unknown): void => {
    leaks.push((message as { pool: unknown }).pool);
  };
  subscribe('headgate:pool:leak', note);
  const pool = newPool({ max: 1, leakThresholdMillis: 20 });
  const load = new EndlessLoad(20, () => pool.query('select 1'));
  await load.goesOn(20);
  // A real leak that began later tells when the time has come.
  const leaking = newPool({ max: 1, leakThresholdMillis: 20 });
  const client = await leaking.connect();
  while (!leaks.includes(leaking)) await load.goesOn(20);
  client.release();
  await load.stop();
  unsubscribe('headgate:pool:leak', note);
  expect(leaks).toEqual([leaking]);
});

test('end() is done when everything under way and in the queue was answered, and all sessions are gone', async () => {
  const gate = newGate();
  await gate.close();
  const pool = newPool({ max: 2, pipeline: { depth: 2 } });
  await pool.ready(2);
  const order: string[] = [];
  const queries = times(20, (id) =>
    pool
      .query(`select $2::int as id from ${gate.text.slice('select '.length)} as gate`, [...gate.values, id])
      .then(({ rows }) => {
        order.push('answer');
        return rows[0].id;
      }),
  );
  const ending = watch(pool.end().then(() => order.push('end')));
  expect(await rejectionOf(pool.query('select 1'))).toBeInstanceOf(PoolClosedError);
  await gate.isReachedBy(2);
  expect(ending.settled).toBe(false);
  await gate.open();
  expect(await Promise.all(queries)).toEqual(times(20, (id) => id));
  await ending.promise;
  expect(order).toEqual([...times(20, () => 'answer'), 'end']);
  expect(await sessionsOf(pool)).toBe(0);
});

test('end() serves those in the queue whose connection has yet to be opened', async () => {
  const pool = newPool({ max: 2 });
  const queries = times(100, (id) => pool.query('select $1::int as id', [id]));
  const ending = pool.end();
  const answers = await Promise.all(queries);
  expect(answers.map(({ rows }) => rows[0].id)).toEqual(times(100, (id) => id));
  await ending;
  while ((await sessionsOf(pool)) > 0);
});

test('end() tells those it had taken on why a statement could not be prepared', async () => {
  const pool = newPool({ max: 1 });
  await pool.ready(1);
  const queries = times(2, () =>
    rejectionOf(pool.query({ name: 'broken', text: 'select 1 from no_such_table' })),
  );
  const ending = pool.end();
  for (const error of await Promise.all(queries)) expect(error).toMatchObject({ code: '42P01' });
  await ending;
});

test('end() settles everything at its deadline', async () => {
  const gate = newGate();
  await gate.close();
  const pool = newPool({ max: 2, pipeline: { depth: 2 } });
  await pool.ready(2);
  const queries = times(10, () => watch(pool.query(gate.text, gate.values)));
  await gate.isReachedBy(2);
  await pool.end({ deadline: 10 });
  const errors = await Promise.all(queries.map(({ promise }) => rejectionOf(promise)));
  expect(errors.filter((error) => error instanceof PoolClosedError)).toHaveLength(6);
  await gate.open();
  while ((await sessionsOf(pool)) > 0);
});

test('end() waits for the queries of a stopped load, and for nothing else', async () => {
  const pool = newPool({ max: 3 });
  const load = new EndlessLoad(30, () => pool.query('select 1'));
  await load.goesOn(100);
  const stopped = load.stop();
  await Promise.all([stopped.catch((error) => expect(error).toBeInstanceOf(PoolClosedError)), pool.end()]);
  while ((await sessionsOf(pool)) > 0);
});

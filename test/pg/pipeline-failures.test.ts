// Failures on a shared connection: the query that failed gets the error, and the neighbours notice nothing unless the
// connection itself is lost.
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Pool } from '../../src/index.js';
import { type FaultyServer, startFaultyServer } from '../support/faulty-server.js';
import { callbackOf, nextTurn, rejectionOf, watch } from '../support/outcomes.js';
import { EndlessLoad, usePipelinedPools } from '../support/pipelined-pools.js';
import { collectUncaught } from '../support/uncaught.js';

const { newPool, newWatchedPool, server, ask, sessionsOf, newGate } = usePipelinedPools(
  'create table item (id int primary key, label text); create table wide (a int)',
);

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_nothing, index) => make(index));
}

/** Queries whose answers are like no other's, and the check that each came to its caller. */
function neighboursOn(pool: Pool, count: number, first = 0): { areRight(): Promise<void> } {
  const ids = times(count, (index) => first + index);
  const queries = ids.map((id) => watch(pool.query('select $1::int as id', [id])).promise);
  return {
    async areRight() {
      const answers = await Promise.all(queries);
      expect(answers.map(({ rows }) => rows)).toEqual(ids.map((id) => [{ id }]));
    },
  };
}

describe('a lost connection', () => {
  test('a lost connection fails what was under way on it and nothing else, and is replaced', async () => {
    const gate = newGate();
    await gate.close();
    const { pool, clients } = newWatchedPool({ max: 2 });
    await pool.ready(2);
    const sent = times(8, () => watch(pool.query(gate.text, gate.values)));
    const queued = neighboursOn(pool, 20);
    await gate.isReachedBy(2);
    const [lost] = clients;
    await ask('select pg_terminate_backend($1)', [lost?.processID]);
    // Queued queries were not affected, and get another connection.
    await queued.areRight();
    expect(sent.filter(({ settled }) => settled)).toHaveLength(4);
    await gate.open();
    const outcomes = await Promise.allSettled(sent.map(({ promise }) => promise));
    expect(outcomes.map(({ status }) => status).sort()).toEqual([
      ...times(4, () => 'fulfilled'),
      ...times(4, () => 'rejected'),
    ]);
    expect(clients).toHaveLength(3);
    expect(pool.stats().peak).toBe(2);
    expect(await sessionsOf(pool)).toBe(2);
  });

  test('a lost connection is not handed out after the server has ended it', async () => {
    const gate = newGate();
    for (const _turn of times(20, () => 0)) {
      await gate.close();
      const { pool, clients } = newWatchedPool({ max: 1 });
      const query = watch(pool.query(gate.text, gate.values));
      await gate.isReachedBy(1);
      const next = watch(pool.connect());
      await ask('select pg_terminate_backend($1)', [clients[0]?.processID]);
      await rejectionOf(query.promise);
      const client = await next.promise;
      await expect(client.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
      client.release();
      await gate.open();
    }
  });

  test('connections that are lost again and again under load strand no caller and never break the limit', async () => {
    const pool = newPool({ max: 3 });
    // One that is idle when it is lost is the pool's own affair.
    pool.on('error', () => {});
    let answered = 0;
    let lost = 0;
    const load = new EndlessLoad(30, async () => {
      try {
        await pool.query('select 1');
        answered += 1;
      } catch (error) {
        expect((error as Error).message).toMatch(/terminat|not queryable|ECONNRESET|EPIPE/);
        lost += 1;
      }
    });
    for (const _turn of times(15, () => 0)) {
      const before = answered;
      const killed = await ask(
        'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 limit 2',
        [pool.options.application_name],
      );
      expect(killed.length).toBeLessThanOrEqual(2);
      expect(await sessionsOf(pool)).toBeLessThanOrEqual(3);
      while (answered < before + 50) await nextTurn();
    }
    await load.stop();
    expect(lost).toBeGreaterThan(0);
    expect(pool.stats()).toMatchObject({ inUse: 0, waiting: 0, peak: 3 });
  });

  test('a lost idle connection fails no query of the pipeline', async () => {
    const pool = newPool({ max: 2 });
    const errors: Error[] = [];
    pool.on('error', (error) => errors.push(error));
    await pool.ready(2);
    await neighboursOn(pool, 20).areRight();
    await ask('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
      pool.options.application_name,
    ]);
    while (errors.length < 2) await nextTurn();
    await neighboursOn(pool, 20).areRight();
  });

  describe('behind a network that fails', () => {
    let front: FaultyServer;
    beforeEach(async () => {
      front = await startFaultyServer(server());
    });
    afterEach(() => front.stop());

    test('a pool behind a network that fails settles every query, and starts again', async () => {
      const gate = newGate();
      await gate.close();
      const pool = newPool({ max: 2, port: front.port });
      const sent = times(8, () => watch(pool.query(gate.text, gate.values)));
      await gate.isReachedBy(2);
      while (pool.stats().waiting > 0) await nextTurn();
      front.resetAll();
      for (const { promise } of sent) await rejectionOf(promise);
      await gate.open();
      await neighboursOn(pool, 50).areRight();
      expect(front.peak).toBe(2);
      await pool.end();
    });

    test('the error of a failed dial reaches one caller, and the others are served by open connections', async () => {
      const pool = newPool({ max: 2, port: front.port });
      const client = await pool.connect();
      front.resetNew();
      const query = watch(pool.query('select 1'));
      await rejectionOf(query.promise);
      client.release();
      front.behave();
      await neighboursOn(pool, 20).areRight();
      await pool.end();
    });
  });
});

test('a query that is stopped by a cancel fails alone', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 1, pipeline: { depth: 50 } });
  const query = watch(pool.query(gate.text, gate.values));
  const neighbours = neighboursOn(pool, 20);
  await gate.isReachedBy(1);
  await ask('select pg_cancel_backend($1)', [clients[0]?.processID]);
  expect(await rejectionOf(query.promise)).toMatchObject({ code: '57014' });
  await neighbours.areRight();
  expect(clients).toHaveLength(1);
});

test('a query that is stopped by the server’s own timeout fails alone', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 1, pipeline: { depth: 50 }, lock_timeout: 20 });
  const query = watch(pool.query(gate.text, gate.values));
  const neighbours = neighboursOn(pool, 20);
  expect(await rejectionOf(query.promise)).toMatchObject({ code: '55P03' });
  await neighbours.areRight();
  expect(clients).toHaveLength(1);
});

test.each<[string, { ofQuery?: number; ofPool?: number; ofUrl?: string }]>([
  ['of its own', { ofQuery: 20 }],
  ['of the pool', { ofPool: 300 }],
  ['of the connection string', { ofUrl: '?query_timeout=300' }],
])(
  'a query that is stopped by a query_timeout %s takes no neighbour with it',
  async (_whose, { ofQuery, ofPool, ofUrl }) => {
    const gate = newGate();
    await gate.close();
    const { pool, clients } = newWatchedPool({
      ...(ofUrl === undefined ? {} : { connectionString: `${server().url}${ofUrl}` }),
      ...(ofPool === undefined ? {} : { query_timeout: ofPool }),
      max: 1,
      pipeline: { depth: 50 },
    });
    await pool.ready(1);
    const { text, values } = gate;
    const query = watch(pool.query({ text, values, query_timeout: ofQuery } as pg.QueryConfig));
    // The queries are in the queue, or on the same connection if that is shared.
    const neighbours = times(5, (id) => watch(pool.query('select $1::int as id', [id])));
    expect((await rejectionOf(query.promise)).message).toBe('Query read timeout');
    // The query still runs: no caller waits for its end.
    const answers = await Promise.all(neighbours.map(({ promise }) => promise));
    expect(answers.map(({ rows }) => rows[0].id)).toEqual([0, 1, 2, 3, 4]);
    expect(clients[0]?.peak).toBe(1);
    expect(clients).toHaveLength(2);
  },
);

const unsendable = {
  toPostgres(): never {
    throw new Error('not to be sent');
  },
};

test('a value that can’t be sent fails its own query, once, and harms no neighbour', async () => {
  const { pool, clients } = newWatchedPool({ max: 1, pipeline: { depth: 8 } });
  let calls = 0;
  const before = neighboursOn(pool, 20);
  const failed = times(10, () => rejectionOf(pool.query('select $1::text', [unsendable])));
  const byCallback = callbackOf((callback) =>
    pool.query('select $1::text', [unsendable], (error, result) => {
      calls += 1;
      callback(error, result);
    }),
  );
  const after = neighboursOn(pool, 20, 100);
  for (const { message } of await Promise.all(failed)) expect(message).toBe('not to be sent');
  expect(await byCallback).toMatchObject([{ message: 'not to be sent' }, undefined]);
  await before.areRight();
  await after.areRight();
  expect(calls).toBe(1);
  expect(clients).toHaveLength(1);
  expect(pool.stats()).toMatchObject({ inUse: 0, idle: 1, waiting: 0 });
});

test('a value that can’t be sent leaves a prepared statement of that name usable', async () => {
  const pool = newPool({ max: 1, pipeline: { depth: 8 } });
  const named = (value: unknown): Promise<unknown> =>
    pool.query({ name: 'echo', text: 'select $1::text as value', values: [value] });
  const queries = [unsendable, 'a', 'b', unsendable, 'c'].map((value) => watch(named(value)));
  const outcomes = await Promise.allSettled(queries.map(({ promise }) => promise));
  expect(outcomes.map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
  await expect(named('d')).resolves.toMatchObject({ rows: [{ value: 'd' }] });
});

test('prepared statements are prepared once on each connection, however many queries of that name are under way', async () => {
  const { pool } = newWatchedPool({ max: 2, pipeline: { depth: 8 } });
  const answers = await Promise.all(
    times(500, (id) => pool.query({ name: 'double', text: 'select $1::int * 2 as twice', values: [id] })),
  );
  expect(answers.map(({ rows }) => rows[0].twice)).toEqual(times(500, (id) => id * 2));
  for (const client of await Promise.all([pool.connect(), pool.connect()])) {
    const { rows } = await client.query('select name from pg_prepared_statements');
    expect(rows).toEqual([{ name: 'double' }]);
    client.release();
  }
});

test('prepared statements fail each on its own when one of many violates a constraint', async () => {
  const { pool, clients } = newWatchedPool({ max: 1, pipeline: { depth: 8 } });
  const insert = { name: 'insert', text: 'insert into item values ($1, $2) returning id' };
  const outcomes = await Promise.allSettled(
    times(60, (index) => pool.query({ ...insert, values: [index % 20, `label ${index}`] })),
  );
  expect(outcomes.map(({ status }) => status)).toEqual([
    ...times(20, () => 'fulfilled'),
    ...times(40, () => 'rejected'),
  ]);
  for (const outcome of outcomes.slice(20)) expect(outcome).toMatchObject({ reason: { code: '23505' } });
  expect(clients).toHaveLength(1);
  await ask('truncate item');
});

test('prepared statements that can’t be prepared tell each caller why', async () => {
  const pool = newPool({ max: 1, pipeline: { depth: 16 } });
  const neighbours = neighboursOn(pool, 10);
  const failed = times(30, (id) =>
    rejectionOf(pool.query({ name: 'broken', text: 'select $1::int from no_such_table', values: [id] })),
  );
  const after = neighboursOn(pool, 10, 100);
  for (const error of await Promise.all(failed)) expect(error).toMatchObject({ code: '42P01' });
  await neighbours.areRight();
  await after.areRight();
});

test('prepared statements whose preparation was stopped are prepared for those behind it', async () => {
  const { pool, clients } = newWatchedPool({ max: 1, pipeline: { depth: 16 } });
  await pool.ready(1);
  await ask('begin');
  await ask('lock table item in access exclusive mode');
  const queries = times(8, (id) =>
    watch(
      pool.query({
        name: 'late',
        text: 'select $1::int as id from item right join (values (1)) v on true',
        values: [id],
      }),
    ),
  );
  const pid = clients[0]?.processID;
  for (;;) {
    const [row] = await ask<{ waits: boolean }>(
      'select exists (select from pg_locks where pid = $1 and not granted) as waits',
      [pid],
    );
    if (row?.waits) break;
  }
  await ask('select pg_cancel_backend($1)', [pid]);
  expect(await rejectionOf(queries[0]?.promise as Promise<never>)).toMatchObject({ code: '57014' });
  await ask('rollback');
  const answers = await Promise.allSettled(queries.slice(1).map(({ promise }) => promise));
  expect(answers.map((answer) => (answer.status === 'rejected' ? answer.reason.code : 'answered'))).toEqual(
    times(7, () => 'answered'),
  );
});

test('prepared statements of the same name and another text are refused, and those of the first text are not', async () => {
  const pool = newPool({ max: 1, pipeline: { depth: 16 } });
  const outcomes = await Promise.allSettled(
    times(40, (id) =>
      pool.query({ name: 'one-name', text: `select $1::int + ${id % 2} as sum`, values: [id] }),
    ),
  );
  for (const [id, outcome] of outcomes.entries()) {
    if (id % 2 === 0) expect(outcome).toMatchObject({ value: { rows: [{ sum: id }] } });
    else expect(outcome).toMatchObject({ reason: { message: expect.stringContaining('must be unique') } });
  }
});

test('prepared statements recover from a change of the table', async () => {
  const { pool, clients } = newWatchedPool({ max: 1 });
  const read = (): Promise<unknown> => pool.query({ name: 'all of wide', text: 'select * from wide' });
  await read();
  await ask('alter table wide add column b int');
  // With pg.Pool the first query after it fails. Here it is answered; either way the stale connection is replaced.
  await expect(read()).resolves.toMatchObject({ fields: [{ name: 'a' }, { name: 'b' }] });
  await expect(read()).resolves.toMatchObject({ fields: [{ name: 'a' }, { name: 'b' }] });
  expect(clients).toHaveLength(2);
});

test('a callback that throws after an answer is the program’s concern, and no neighbour’s', async () => {
  await using uncaught = collectUncaught();
  const pool = newPool({ max: 1, pipeline: { depth: 16 } });
  const before = neighboursOn(pool, 10);
  pool.query('select 1', () => {
    throw new Error('thrown after an answer');
  });
  const after = neighboursOn(pool, 10, 100);
  await before.areRight();
  await after.areRight();
  expect(await uncaught.next()).toBe('thrown after an answer');
});

test('a callback that throws after an error is the program’s concern, and no neighbour’s', async () => {
  await using uncaught = collectUncaught();
  const pool = newPool({ max: 1, pipeline: { depth: 16 } });
  const before = neighboursOn(pool, 10);
  pool.query('select 1 / 0', () => {
    throw new Error('thrown after an error');
  });
  const after = neighboursOn(pool, 10, 100);
  expect(await uncaught.next()).toBe('thrown after an error');
  await neighboursOn(pool, 10, 200).areRight();
  await before.areRight();
  await after.areRight();
});

test('a callback that throws after a value that can’t be sent is the program’s concern, and no neighbour’s', async () => {
  await using uncaught = collectUncaught();
  const pool = newPool({ max: 1, pipeline: { depth: 16 } });
  await pool.ready(1);
  const value = {
    toPostgres(): never {
      throw new Error('not to be sent');
    },
  };
  const before = neighboursOn(pool, 10);
  pool.query('select $1::text', [value], () => {
    throw new Error('thrown at once');
  });
  const after = neighboursOn(pool, 10, 100);
  expect(await uncaught.next()).toBe('thrown at once');
  await before.areRight();
  await after.areRight();
});

test('answers that can’t be read fail their own query alone', async () => {
  const { pool, clients } = newWatchedPool({ max: 1, pipeline: { depth: 16 } });
  const parser = () => (): never => {
    throw new Error('not to be read');
  };
  const before = neighboursOn(pool, 10);
  const failed = rejectionOf(pool.query({ text: 'select 1', types: { getTypeParser: parser } as never }));
  const after = neighboursOn(pool, 10, 100);
  expect((await failed).message).toBe('not to be read');
  await before.areRight();
  await after.areRight();
  expect(clients).toHaveLength(1);
});

test('COPY from or to the client, without a stream for it, harms no neighbour', async () => {
  const pool = newPool({ max: 2, pipeline: { depth: 16 } });
  const before = neighboursOn(pool, 50);
  const copies = await Promise.allSettled([
    pool.query('copy item from stdin'),
    pool.query("/* hidden */ copy item (id) from stdin with (format 'csv')"),
    pool.query('select 1; copy item from stdin'),
    pool.query('copy item to stdout'),
  ]);
  const after = neighboursOn(pool, 50, 100);
  expect(copies.slice(0, 3)).toMatchObject(times(3, () => ({ reason: { code: '57014' } })));
  expect(copies[3]).toMatchObject({ value: { command: 'COPY' } });
  await before.areRight();
  await after.areRight();
  expect(await ask('select * from item')).toEqual([]);
});

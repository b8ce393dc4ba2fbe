// Pipelining in large amounts: many queries at once, large values in both directions, and nothing lost on the way.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { usePipelinedPools } from '../support/pipelined-pools.js';

const { newPool, newWatchedPool, sessionsOf } = usePipelinedPools();

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_nothing, index) => make(index));
}

test('10,000 queries at once are all answered, each by its own', async () => {
  const { pool, clients } = newWatchedPool({ max: 4, pipeline: { depth: 16 } });
  await pool.ready(4);
  const answers = await Promise.all(times(10_000, (id) => pool.query(`select ${id} as id`)));
  expect(answers.every(({ rows }, id) => rows[0].id === id)).toBe(true);
  expect(clients.map(({ peak }) => peak)).toEqual([16, 16, 16, 16]);
  expect(pool.stats()).toMatchObject({ inUse: 0, idle: 4, waiting: 0, peak: 4 });
});

test('50 results of 1 MB each come through two connections whole', async () => {
  const pool = newPool({ max: 2, pipeline: { depth: 16 } });
  await pool.ready(2);
  const size = 2 ** 20;
  const answers = await Promise.all(
    times(50, (id) => pool.query('select repeat(chr(65 + $1::int), $2::int) as text', [id % 26, size])),
  );
  const wrong = answers.filter(
    ({ rows }, id) => rows[0].text !== String.fromCharCode(65 + (id % 26)).repeat(size),
  );
  expect(wrong).toHaveLength(0);
  expect(await sessionsOf(pool)).toBe(2);
});

test('values of several MB are sent in between small ones', async () => {
  const pool = newPool({ max: 2, pipeline: { depth: 16 } });
  const answers = await Promise.all(
    times(60, async (id) => {
      const value = Buffer.alloc(id % 5 === 0 ? 3_000_000 : id, id);
      const { rows } = await pool.query('select $1::int as id, md5($2::bytea) as hash', [id, value]);
      return rows[0].id === id && rows[0].hash === createHash('md5').update(value).digest('hex');
    }),
  );
  expect(answers).toEqual(times(60, () => true));
});

test('large results, large values and failures in turn keep every answer with its query', async () => {
  const pool = newPool({ max: 2, pipeline: { depth: 8 } });
  const outcomes = await Promise.allSettled(
    times(300, (id) => {
      if (id % 3 === 0) return pool.query('select $1::text as echo', [`${id}:${'x'.repeat(100_000)}`]);
      if (id % 3 === 1)
        return pool.query(`select ${id} || ':' || n as echo from generate_series(1, 1000) as n`);
      return pool.query(`select ${id} / 0`);
    }),
  );
  for (const [id, outcome] of outcomes.entries()) {
    if (outcome.status === 'rejected') expect([id % 3, outcome.reason.code]).toEqual([2, '22012']);
    else {
      expect(outcome.value.rows).toHaveLength(id % 3 === 0 ? 1 : 1_000);
      expect(outcome.value.rows.every(({ echo }) => echo.startsWith(`${id}:`))).toBe(true);
    }
  }
});

// Totals of all workers never fall, whatever becomes of a worker.
import { expect, test } from 'vitest';
import { averagesOf, noCounters, sumOf } from '../../../src/pooler/console/counters.js';
import type { StatsRecord } from '../../../src/pooler/console/pooler-view.js';
import { WorkerCounts } from '../../../src/pooler/supervisor/worker-counts.js';

function counted(queries: number, database = 'app'): StatsRecord {
  const before = { ...noCounters, queries: queries / 2 };
  return { windowMs: 1_000, databases: [{ database, total: { ...noCounters, queries }, before }] };
}

/** Counts that are shown while these workers are asked and answer. */
function absentQueries(counts: WorkerCounts<string>, ...present: string[]): Record<string, number> {
  const queries: Record<string, number> = {};
  for (const { database, total } of counts.besides(new Map(present.map((name) => [name, true]))))
    queries[database] = (queries[database] ?? 0) + total.queries;
  return queries;
}

test('a worker that has answered is not counted twice', () => {
  const counts = new WorkerCounts<string>();
  counts.told('one', counted(10));
  expect(absentQueries(counts, 'one')).toEqual({});
});

test('a worker that does not answer counts as it did last', () => {
  const counts = new WorkerCounts<string>();
  counts.told('one', counted(10));
  counts.told('two', counted(5));
  counts.told('one', counted(20));
  expect(absentQueries(counts, 'two')).toEqual({ app: 20 });
  expect(absentQueries(counts)).toEqual({ app: 25 });
});

test('counts of ended workers stay, by database, however many there have been', () => {
  const counts = new WorkerCounts<string>();
  for (let life = 1; life <= 3; life++) {
    counts.told(`one, life ${life}`, counted(life));
    counts.told('two', counted(100, 'other'));
    counts.forgetAllBut(['two']);
  }
  expect(absentQueries(counts, 'two')).toEqual({ app: 6 });
  expect(absentQueries(counts)).toEqual({ app: 6, other: 100 });
});

test('a worker that died during a reading counts once in that reading, and in the next', () => {
  const counts = new WorkerCounts<string>();
  counts.told('one', counted(10));
  // The worker has answered, and is gone when the other answers.
  expect(absentQueries(counts, 'one', 'two')).toEqual({});
  counts.forgetAllBut(['two']);
  expect(absentQueries(counts, 'two')).toEqual({ app: 10 });
});

test('averages are of those that live', () => {
  const counts = new WorkerCounts<string>();
  counts.told('one', counted(1_000));
  const [living] = counted(10).databases;
  const all = [...(living ? [living] : []), ...counts.besides(new Map())];
  const total = sumOf(all.map((one) => one.total));
  const before = sumOf(all.map((one) => one.before));
  expect(total.queries).toBe(1_010);
  expect(averagesOf(total, before, 1_000).queries).toBe(5);
});

/** Many writers on few rows: every committed increment is there, every loser hears of it, and nothing is left behind. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, conflict, World } from '../conflicts/world.js';

const writerCount = 64;
const rowCount = 8;
const incrementsEach = Number(process.env['HEADGATE_INCREMENTS'] ?? 3);

let world: World;
let setup: Client;

beforeAll(async () => {
  world = await World.start();
  setup = await world.connect();
  await setup.must('CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)');
  await setup.must(`INSERT INTO counters SELECT g, 0 FROM generate_series(1, ${rowCount}) g`);
});

afterAll(async () => {
  await world?.stop();
});

/** Autocommitted, or in a transaction that reads before it writes. Answers how often it lost. */
async function increment(client: Client, id: number, isExplicit: boolean): Promise<number> {
  for (let losses = 0; ; losses += 1) {
    let outcome = isExplicit ? await client.run('BEGIN') : undefined;
    if (isExplicit) {
      const [row] = await client.must('SELECT n FROM counters WHERE id = $1', [id]);
      await client.must('UPDATE counters SET n = $2 WHERE id = $1', [id, Number(row?.['n']) + 1]);
      outcome = await client.run('COMMIT');
    } else outcome = await client.run('UPDATE counters SET n = n + 1 WHERE id = $1', [id]);
    if (outcome.ok) return losses;
    expect(outcome).toMatchObject(conflict);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(200, 10 * 2 ** losses)));
  }
}

test(`commits each of ${writerCount * incrementsEach} increments exactly once, in reasonable time`, async () => {
  const writers = await Promise.all(Array.from({ length: writerCount }, () => world.connect()));
  const start = performance.now();
  const losses = await Promise.all(
    writers.map(async (client, writer) => {
      let lost = 0;
      for (let n = 0; n < incrementsEach; n += 1)
        lost += await increment(client, 1 + ((writer + n) % rowCount), (writer + n) % 2 === 0);
      return lost;
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  const increments = writerCount * incrementsEach;
  const lost = losses.reduce((sum, one) => sum + one, 0);
  const rate = increments / seconds;
  if (process.env['HEADGATE_INCREMENTS']) console.log(`${rate.toFixed(0)} increments/s, ${lost} lost`);
  const [total] = await setup.must('SELECT sum(n)::int AS n FROM counters');
  expect(total).toEqual({ n: increments });
  expect(lost).toBeGreaterThan(0);
  expect(world.troubles).toEqual([]);

  await Promise.all(writers.map((client) => client.pg.end()));
  await expect
    .poll(
      async () => (await setup.must(`SELECT count(*)::int AS n FROM pg_class WHERE relpersistence = 't'`))[0],
      { timeout: 5_000 },
    )
    .toEqual({ n: 0 });
  await expect.poll(() => world.dsql.connections).toBe(1);
  await expect
    .poll(
      async () =>
        (
          await setup.must('SELECT count(*)::int AS n FROM pg_locks WHERE relation = $1::regclass', [
            'counters',
          ])
        )[0],
    )
    .toEqual({ n: 0 });
});

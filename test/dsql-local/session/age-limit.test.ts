/** The age that a transaction may have. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, World } from '../conflicts/world.js';

let world: World;
let client: Client;

beforeAll(async () => {
  world = await World.start({ transactionMs: 1_000 });
  client = await world.connect();
  await client.must('CREATE TABLE child (id int PRIMARY KEY, parent int)');
  await client.must('INSERT INTO child VALUES (1, 1)');
});

afterAll(async () => {
  await world?.stop();
  expect(world.troubles).toEqual([]);
});

const tooOld = {
  code: '54000',
  message: 'transaction age limit of 1s exceeded',
  detail: 'Current transaction age 1s exceeds 1s',
};
const failureOf = (sql: string): Promise<unknown> => client.pg.query(sql).catch((error: unknown) => error);

test('the limit of age fails the next statement and COMMIT', async () => {
  for (const sql of ['SELECT 1', 'COMMIT']) {
    await client.must('BEGIN');
    await delay(1_050);
    expect(await failureOf(sql)).toMatchObject(tooOld);
    await client.must('ROLLBACK');
  }
});

test.each(['SELECT pg_sleep(20)', 'DELETE FROM child WHERE pg_sleep(20) IS NULL'])(
  'the limit of age ends a statement that runs longer: %s',
  async (sql) => {
    const start = performance.now();
    expect(await failureOf(sql)).toMatchObject(tooOld);
    expect(performance.now() - start).toBeLessThan(8_000);
    expect(await client.run('SELECT 1 AS x')).toMatchObject({ rows: [{ x: 1 }] });
  },
);

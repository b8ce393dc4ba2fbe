// Statements of several clients on one connection, in a pooler that is several processes.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { SessionWatch } from '../../support/session-watch.js';
import { serve } from './served.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

async function askTagged(clients: readonly pg.Client[], times: number): Promise<void> {
  await Promise.all(
    clients.map(async (client, index) => {
      for (let time = 0; time < times; time++) {
        const tag = `${index}-${time}`;
        const { rows } = await client.query('select $1::text as tag', [tag]);
        expect(rows).toEqual([{ tag }]);
      }
    }),
  );
}

test('clients of two workers share connections, get their own answers, and never use more than the pool has', async () => {
  const watch = await SessionWatch.start(db);
  const served = await serve(db, {
    pooling: { poolSize: 4, multiplexDepth: 4, multiplexLongest: '10s' },
  });
  const clients = await served.spread(24);
  await askTagged(clients, 60);
  const admin = await served.console();
  const { rows } = await admin.query('SHOW STATS');
  const row = rows.find(({ database }) => database === db.database);
  expect(Number(row.total_multiplexed_count)).toBeGreaterThan(50);
  await served.end();
  await watch.stop();
  watch.expectAtMost(4);
});

test('a worker that is killed takes the statements of its own clients only', async () => {
  const served = await serve(db, {
    pooling: { poolSize: 2, multiplexDepth: 4, multiplexLongest: '10s' },
  });
  const clients = await served.spread(12);
  await askTagged(clients, 10);
  const [worker] = await served.workers();
  const outcomes = Promise.allSettled(clients.map((client) => askTagged([client], 200)));
  process.kill(worker?.pid as number, 'SIGKILL');
  const survived = (await outcomes).filter(({ status }) => status === 'fulfilled').length;
  expect(survived).toBe(6);
  // The place of the worker's connections is free again.
  await askTagged(await Promise.all(Array.from({ length: 6 }, () => served.connect())), 10);
});

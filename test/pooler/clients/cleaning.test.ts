/** What drivers send to clean a session before they use it again: it must not keep the client on its server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

const texts: Readonly<Record<string, string>> = {
  asyncpg: 'SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;',
  Npgsql:
    'SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP',
  'Npgsql without prepared statements': 'DISCARD ALL',
};

let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, { pooling: { poolSize: 2, serverRoundRobin: true } });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

describe.each(Object.entries(texts))('%s', (_name, text) => {
  test('cleaning sessions lets six clients go on with two servers, each with the settings that it has begun with', async () => {
    const clients = await Promise.all(
      Array.from({ length: 6 }, (_, mine) =>
        pooler.connect({ options: `-c statement_timeout=${mine + 10}s` }),
      ),
    );
    await Promise.all(
      clients.map(async (client, mine) => {
        for (let round = 0; round < 4; round++) {
          await client.query("set work_mem = '5MB'");
          await client.query("set timezone = 'Asia/Tokyo'");
          await client.query(text);
          const shown = `select current_setting('statement_timeout') as timeout, current_setting('work_mem') <> '5MB' as memory,
            current_setting('timezone') <> 'Asia/Tokyo' as zone`;
          const { rows } = await client.query(shown);
          expect(rows).toEqual([{ timeout: `${mine + 10}s`, memory: true, zone: true }]);
        }
      }),
    );
    expect(pooler.pooler.stats().pinned).toBe(0);
  });

  test('cleaning a session keeps its settings when it fails', async () => {
    const client = await pooler.connect();
    await client.query("set work_mem = '6MB'");
    await expect(client.query(`${text}; select 1 / 0`)).rejects.toBeDefined();
    // Then nothing of it has happened, or DISCARD ALL was not even begun.
    const { rows } = await client.query("select current_setting('work_mem') as memory");
    expect(rows).toEqual([{ memory: '6MB' }]);
  });
});

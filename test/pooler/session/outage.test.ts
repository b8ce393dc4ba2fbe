// A server that goes away and comes back: who is in waits for it, who comes meanwhile is told.
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type FaultyServer, startFaultyServer } from '../../support/faulty-server.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 20 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

interface Scene extends TestPooler {
  readonly front: FaultyServer;
  /** Someone who was in before the server went away. */
  readonly client: pg.Client;
  /** All connections are reset, and new ones are, too. */
  leave(): Promise<void>;
  /** Many attempts have failed, so that the next one is far away. */
  keepsFailing(): Promise<void>;
}

async function start(tree: ConfigTree = {}): Promise<Scene> {
  const front = await startFaultyServer(db);
  onTestFinished(() => front.stop());
  const { host, port } = front;
  const databases = { [db.database]: { host, port, password: db.password } };
  const pooler = await startTestPooler(db, { databases, serverTls: { mode: 'disable' }, ...tree });
  const client = await pooler.connect();
  await client.query('select 1');
  const pool = () => pooler.pooler.stats().pools[0];
  return {
    ...pooler,
    front,
    client,
    async leave() {
      front.resetNew();
      front.resetAll();
      await vi.waitFor(() => expect(pool()?.live).toBe(0), soon);
    },
    async keepsFailing() {
      await vi.waitFor(() => expect(pool()?.breaker).not.toBe('closed'), soon);
    },
  };
}

test('while a server is away a client that is in waits, and has its answer when the server is back', async () => {
  const { client, leave, keepsFailing, front, pooler } = await start();
  await leave();
  const answer = client.query('select 7 as n');
  await keepsFailing();
  expect(pooler.stats().waiting).toBe(1);
  front.behave();
  expect((await answer).rows).toEqual([{ n: 7 }]);
});

test('while a server is away it waits no longer than query_wait_timeout, is told why then, and can go on later', async () => {
  const { client, leave, front } = await start({ timeouts: { queryWaitTimeout: '2s' } });
  await leave();
  await expect(client.query('select 1')).rejects.toMatchObject({
    severity: 'ERROR',
    code: '08001',
    message: expect.stringMatching(/^no server connection for /),
    hint: expect.stringContaining('query_wait_timeout'),
  });
  front.behave();
  expect((await client.query('select 8 as n')).rows).toEqual([{ n: 8 }]);
});

test('while a server is away a new client is refused, although it is known what servers say at the beginning', async () => {
  const { client, leave, keepsFailing, connect, front } = await start();
  await leave();
  const answer = client.query('select 7 as n');
  await keepsFailing();
  await expect(connect()).rejects.toMatchObject({ severity: 'FATAL', code: '08001' });
  front.behave();
  await answer;
  expect((await (await connect()).query('select 8 as n')).rows).toEqual([{ n: 8 }]);
});

test('while a server is away a new client does not wait for an attempt that hangs', async () => {
  const { client, leave, keepsFailing, connect, front, pooler } = await start({
    pooling: { serverConnectTimeout: '1h' },
  });
  await leave();
  const answer = client.query('select 7 as n');
  await keepsFailing();
  front.stall();
  await vi.waitFor(() => expect(pooler.stats().pools[0]).toMatchObject({ pending: 1, waiting: 1 }), soon);
  await expect(connect()).rejects.toMatchObject({ severity: 'FATAL', code: '08001' });
  front.behave();
  expect((await answer).rows).toEqual([{ n: 7 }]);
});

test('while a server is away a new client makes the next attempt where no client waits', async () => {
  const { client, leave, connect, front, pooler } = await start({ timeouts: { queryWaitTimeout: '2s' } });
  await leave();
  await expect(client.query('select 1')).rejects.toMatchObject({ code: '08001' });
  expect(pooler.stats().waiting).toBe(0);
  await expect(connect()).rejects.toMatchObject({ severity: 'FATAL', code: '08001' });
  front.behave();
  await vi.waitFor(() => connect(), soon);
});

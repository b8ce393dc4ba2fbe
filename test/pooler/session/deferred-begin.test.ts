// BEGIN is answered before there is a server, unless the configuration says otherwise.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { poolerConfig, startTestPooler, treeFor } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

/** The machine may be busy. */
const soon = { timeout: 10_000, interval: 20 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const oneServer = (deferBegin: boolean) => ({ pooling: { poolSize: 1, deferBegin } });

test('a client that says BEGIN needs no server until it asks something', async () => {
  const { connect, pooler } = await startTestPooler(db, oneServer(true));
  const [holder, other] = [await connect(), await connect()];
  await holder.query('begin; select 1');
  await other.query('begin');
  expect(pooler.stats().waiting).toBe(0);
  const asks = other.query('select 1 as one');
  await vi.waitFor(() => expect(pooler.stats().waiting).toBe(1), soon);
  await holder.query('commit');
  expect((await asks).rows).toEqual([{ one: 1 }]);
  await other.query('commit');
});

test('with pooling.deferBegin off, BEGIN takes a server as any statement does', async () => {
  const { connect, pooler } = await startTestPooler(db, oneServer(false));
  const [holder, other] = [await connect(), await connect()];
  await holder.query('begin; select 1');
  const begins = other.query('begin');
  await vi.waitFor(() => expect(pooler.stats().waiting).toBe(1), soon);
  await holder.query('commit');
  await begins;
  await other.query('commit');
});

test('a reload changes it for clients that are there', async () => {
  const { connect, pooler } = await startTestPooler(db, oneServer(true));
  const [holder, other] = [await connect(), await connect()];
  await pooler.reload(poolerConfig(treeFor(db, oneServer(false))));
  await holder.query('begin; select 1');
  const begins = other.query('begin');
  await vi.waitFor(() => expect(pooler.stats().waiting).toBe(1), soon);
  await holder.query('commit');
  await begins;
});

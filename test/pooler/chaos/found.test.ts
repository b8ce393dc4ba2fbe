// Defects that the chaos has found, each alone and without chance.
import { once } from 'node:events';
import { connect } from 'node:net';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { readBackendKeyData } from '../../../src/wire/session-messages.js';
import { writeCancelRequest } from '../../../src/wire/startup-packet.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { FaultProxy } from './fault-proxy.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const admin = { admin: { adminUsers: ['operator'] } };

async function startConsole(pooler: TestPooler): Promise<pg.Client> {
  return pooler.connect({ user: 'operator', database: 'headgate' });
}

/** A client that has a server until it says so. */
async function startHolder(pooler: TestPooler): Promise<pg.Client> {
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  return holder;
}

test('clients that wait while all connections are replaced are served by the new ones as soon as there is room', async () => {
  const pooler = await startTestPooler(db, { ...admin, pooling: { poolSize: 2 } });
  const console = await startConsole(pooler);
  const holders = [await startHolder(pooler), await startHolder(pooler)];
  const waiting = await pooler.connect();
  const answer = waiting.query('select 1 as one');
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await console.query('RECONNECT');
  expect(pooler.pooler.stats().waiting).toBe(1);
  // Its place is free, and not for a connection of the old kind.
  await holders[0]?.query('commit');
  expect((await answer).rows).toEqual([{ one: 1 }]);
  expect(pooler.pooler.stats().pools[0]?.live).toBe(1);
  await holders[1]?.query('commit');
});

test('clients that wait while all connections are replaced can leave, and no other client has to wait for it', async () => {
  const pooler = await startTestPooler(db, { ...admin, pooling: { poolSize: 1 } });
  const console = await startConsole(pooler);
  const holder = await startHolder(pooler);
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'select 1');
  session.send();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await console.query('RECONNECT');
  session.socket.destroy();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(0);
  const next = await pooler.connect();
  const answer = next.query('select 2 as two');
  await holder.query('commit');
  expect((await answer).rows).toEqual([{ two: 2 }]);
  expect(pooler.pooler.stats().pools[0]).toMatchObject({ waiting: 0, peak: 1 });
});

test('clients that wait while all connections are replaced wait for RESUME, when they are paused as well', async () => {
  const pooler = await startTestPooler(db, { ...admin, pooling: { poolSize: 1 } });
  const holder = await startHolder(pooler);
  const waiting = await pooler.connect();
  let isServed = false;
  const answer = waiting.query('select 1 as one').finally(() => {
    isServed = true;
  });
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  const paused = (await startConsole(pooler)).query('PAUSE');
  await expect.poll(() => pooler.pooler.stats().pools[0]?.state).toBe('paused');
  await holder.query('commit');
  await paused;
  expect(isServed).toBe(false);
  await (await startConsole(pooler)).query('RESUME');
  expect((await answer).rows).toEqual([{ one: 1 }]);
});

test('a server that is given up while it is busy counts until it is gone', async () => {
  const proxy = await FaultProxy.start(db);
  const { host, port } = proxy;
  const pooler = await startTestPooler(db, {
    databases: { [db.database]: { host, port, password: db.password } },
    pooling: { poolSize: 1, serverCleaningTimeout: '50ms' },
    timeouts: { cancelWaitTimeout: '50ms' },
  });
  const watcher = await pooler.connect({ host: db.host, port: db.port });
  const session = await RawSession.start(pooler, StartupCode.version30);
  // The server does not hear of it.
  proxy.stallsCancelsMs = 60_000;
  writeQuery(session.writer, 'select pg_sleep(1.5)');
  session.send();
  const sleeping = `select count(*)::int as n from pg_stat_activity where datname = current_database()
    and query like 'select pg_sleep(1.5)%' and state = 'active'`;
  await expect.poll(async () => (await watcher.query(sleeping)).rows[0].n).toBe(1);
  session.socket.destroy();
  const next = await pooler.connect();
  const { rows } = await next.query(sleeping);
  expect(rows).toEqual([{ n: 0 }]);
  expect(pooler.pooler.stats().pools[0]?.peak).toBe(1);
  await pooler.stop();
  await proxy.stop();
});

test('a cancel request that the server gets late, when the pooler has given it up, hits no other client', async () => {
  const proxy = await FaultProxy.start(db);
  const { host, port } = proxy;
  const pooler = await startTestPooler(db, {
    databases: { [db.database]: { host, port, password: db.password } },
    pooling: { poolSize: 1 },
    timeouts: { cancelWaitTimeout: '50ms' },
  });
  const session = await RawSession.start(pooler, StartupCode.version30);
  const keyData = session.received.find(({ type }) => type === Backend.backendKeyData)?.bytes as Buffer;
  const key = readBackendKeyData(keyData, 0, keyData.length);
  proxy.stallsCancelsMs = 500;
  writeQuery(session.writer, 'select pg_sleep(0.2)');
  session.send();
  const cancel = connect(pooler.port, '127.0.0.1').resume();
  const writer = new MessageWriter();
  writeCancelRequest(writer, key.processId, key.secretKey);
  cancel.end(writer.take());
  await once(cancel, 'close');
  await session.until(Backend.readyForQuery);
  const next = await pooler.connect();
  expect((await next.query('select 7 as seven, pg_sleep(0.8)')).rows).toMatchObject([{ seven: 7 }]);
  session.socket.destroy();
  await pooler.stop();
  await proxy.stop();
});

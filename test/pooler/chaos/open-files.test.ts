// A pooler that may have few files open, and clients that take all of them.
import { connect, type Socket } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { type PoolerProcess, startPoolerProcess } from './pooler-process.js';

/** Node opens many modules at once while it starts. */
const openFiles = 160;
const clients: pg.Client[] = [];
const silent: Socket[] = [];

let db: TestDatabase;
let pooler: PoolerProcess;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startPoolerProcess(
    db,
    { pooling: { poolSize: 3 }, admin: { adminUsers: ['boss'] }, logging: { connections: false } },
    { openFiles },
  );
});
afterAll(async () => {
  for (const socket of silent) socket.destroy();
  await Promise.all(clients.map((client) => client.end().catch(() => {})));
  await pooler.stop();
  await db.drop();
});

async function enter(options: pg.ClientConfig = {}): Promise<pg.Client> {
  const { host, port, user, password, database } = pooler;
  const client = new pg.Client({ host, port, user, password, database, ...options });
  client.on('error', () => {});
  await client.connect();
  clients.push(client);
  return client;
}

async function enters(options: pg.ClientConfig = {}): Promise<boolean> {
  try {
    await enter(options);
    return true;
  } catch {
    return false;
  }
}

/** All at once: servers have to be opened for them. */
async function work(some: readonly pg.Client[]): Promise<void> {
  for (const text of ['begin', 'select 1', 'commit'])
    await Promise.all(some.map((client) => client.query(text)));
}

/** Somebody who says nothing, or is not even let in to say nothing. */
function knock(): Promise<void> {
  const socket = connect(pooler.port, pooler.host);
  silent.push(socket.resume());
  return new Promise((resolve) => {
    socket.once('connect', resolve).once('error', () => resolve());
  });
}

test.runIf(process.platform === 'linux')(
  'clients that take all files are refused in time: others are served on, and the console is open',
  async () => {
    const first = await enter();
    await first.query('select 1');
    const refusal = await (async () => {
      try {
        for (let n = 0; n < openFiles; n++) await enter();
        return undefined;
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toMatchObject({ severity: 'FATAL', code: '53300' });
    expect((refusal as Error).message).toContain('no files left');

    await work(clients.slice(0, 3));
    const boss = await enter({ user: 'boss', database: 'headgate' });
    expect((await boss.query('show clients')).rows.length).toBeGreaterThan(3);

    // Now the last files go, too: nobody can be told anything any more.
    await Promise.all(Array.from({ length: openFiles }, knock));
    for (let n = 0; n < 20; n++) await work(clients.slice(0, 3));
    expect((await boss.query('show servers')).rows).toHaveLength(3);

    // A silent client does not keep its place for long.
    await expect.poll(() => enters({ user: 'boss', database: 'headgate' }), { timeout: 15_000 }).toBe(true);

    for (const socket of silent) socket.destroy();
    await Promise.all(clients.splice(3, 10).map((client) => client.end()));
    await expect.poll(() => enters(), { timeout: 15_000 }).toBe(true);
  },
);

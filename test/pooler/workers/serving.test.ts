// Clients of a pooler that is several processes: any of them can land on any worker, and none can tell.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SessionCounter } from '../../support/counting.js';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { SessionWatch } from '../../support/session-watch.js';
import { scrape } from '../metrics/scrape.js';
import { type Served, serve, workerOf } from './served.js';

let db: TestDatabase;
/** For tests that need nothing special; in a database of its own, since others count connections. */
let usual: Served;
let usualDb: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
  usualDb = await withDatabase();
  usual = await serve(usualDb, { pooling: { poolSize: 4 }, observability: { metricsListen: '127.0.0.1:0' } });
});
afterAll(async () => {
  await usual.end();
  await usualDb.drop();
  await db.drop();
});

test('clients are spread over the workers, and all are served', async () => {
  const clients = await usual.spread(12);
  const answers = await Promise.all(clients.map((client, n) => client.query('select $1::int as n', [n])));
  expect(answers.map(({ rows }) => rows[0].n)).toEqual(clients.map((_, n) => n));
  const workers = await usual.workers();
  expect(workers.map(({ worker, state }) => [worker, state])).toEqual([
    [1, 'ready'],
    [2, 'ready'],
  ]);
  // The console is one of 13.
  expect(workers.map(({ clients: count }) => count).sort()).toEqual([6, 7]);
  for (const client of clients) await client.end();
});

test('a pooler with several workers says once where it listens, and its number is in the pid file', async () => {
  const served = await serve(db, { admin: { pidFile: 'pid', adminUsers: [] } });
  expect(served.out.match(/listening on/g)).toHaveLength(1);
  expect(readFileSync(join(served.folder, 'pid'), 'utf8')).toBe(`${served.child.pid}\n`);
});

test('a Unix socket leads to the workers, too', async () => {
  const probe = await serve(db);
  const { port } = probe;
  await probe.end();
  const served = await serve(db, {
    listen: { port },
    unixSocket: { dir: probe.folder.replace(/[^/]*$/, '') },
  });
  const host = probe.folder.replace(/\/[^/]*$/, '');
  const clients = await served.spread(4, { host });
  for (const client of clients) expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect((await served.workers()).every(({ clients: count }) => count >= 2)).toBe(true);
});

test('a cancel request reaches its client, whichever worker it comes to', async () => {
  const clients = await usual.spread(2);
  for (const client of clients) {
    const query = new pg.Query('select pg_sleep(60)');
    const failure = new Promise<Error>((resolve) => query.on('error', resolve));
    client.query(query);
    await untilActive();
    // Both workers are tried: connections go to them by turns.
    const requests = Array.from({ length: 2 }, () => cancel(client, query, usual.port));
    await Promise.all(requests);
    expect((await failure).message).toBe('canceling statement due to user request');
    await client.end();
  }
});

test('prepared statements follow a client to whatever server its worker has', async () => {
  const clients = await usual.spread(8);
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(
      clients.map((client, n) =>
        client.query({ name: 'same name', text: `select $1::int + ${n} as sum`, values: [round] }),
      ),
    );
    expect(answers.map(({ rows }) => rows[0].sum)).toEqual(clients.map((_, n) => n + round));
  }
  for (const client of clients) await client.end();
});

test('ids of clients and servers are different in all workers', async () => {
  const admin = await usual.console();
  const clients = await usual.clientOfEach(admin);
  await Promise.all([...clients.values()].map((client) => client.query('select 1')));
  const { rows: clientRows } = await admin.query('SHOW CLIENTS');
  const { rows: serverRows } = await admin.query('SHOW SERVERS');
  for (const rows of [clientRows, serverRows]) {
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    expect(new Set(rows.map(({ id }) => workerOf(id)))).toEqual(new Set([1, 2]));
  }
  for (const client of [...clients.values(), admin]) await client.end();
});

test('metrics have the series of every worker', async () => {
  const clients = await Promise.all(Array.from({ length: 4 }, () => usual.connect()));
  await Promise.all(clients.map((client) => client.query('select 1')));
  const [, port] = /metrics at http:\/\/127\.0\.0\.1:(\d+)\/metrics/.exec(usual.out) ?? [];
  const { lines, types } = await scrape(Number(port));
  expect(types.get('headgate_pooler_connected_clients')).toBe('gauge');
  const of = lines.filter(({ name }) => name === 'headgate_pooler_connected_clients');
  expect(of.map(({ labels }) => labels['worker'])).toEqual(['1', '2']);
  expect(of.reduce((sum, { value }) => sum + value, 0)).toBe(clients.length);
  for (const client of clients) await client.end();
});

test('max_client_conn holds over all workers, and a client that leaves makes room in any', async () => {
  const served = await serve(db, { limits: { maxClientConn: 3 } });
  const clients = await served.spread(3);
  for (let attempt = 0; attempt < 4; attempt++) {
    const { message } = await rejectionOf(served.connect());
    expect(message).toBe('too many clients: all clients together may have 3 connections');
  }
  await clients[0]?.end();
  await expect.poll(() => served.connect().then(() => 'in', String), { timeout: 5_000 }).toBe('in');
});

test.each([
  ['maxUserClientConnections', 'user'],
  ['maxDbClientConnections', 'database'],
])('%s holds over all workers', async (limit, whose) => {
  const served = await serve(db, { limits: { [limit]: 2 } });
  await served.spread(2);
  for (let attempt = 0; attempt < 2; attempt++) {
    const { message } = await rejectionOf(served.connect());
    expect(message).toContain(`too many clients: ${whose}`);
  }
});

test('pool_size holds over all workers, and all of them get their part of it', async () => {
  await noSessionIsLeft();
  const served = await serve(db, { pooling: { poolSize: 3 } });
  const clients = await served.spread(10);
  const watch = await SessionWatch.start(db);
  const done = clients.map(() => 0);
  const work = clients.map(async (client, index) => {
    for (let n = 0; n < 30; n++) {
      await client.query('select pg_sleep(0.005)');
      done[index] = n + 1;
    }
  });
  await Promise.race(work);
  const leastByThen = Math.min(...done);
  await Promise.all(work);
  await watch.stop();
  watch.expectAtMost(3);
  expect(watch.most).toBe(3);
  expect(leastByThen).toBeGreaterThan(0);
});

test('min_pool_size is kept by all workers together, each its part, and by one where others have no clients', async () => {
  await noSessionIsLeft();
  const served = await serve(db, {
    pooling: { poolSize: 10, minPoolSize: 3, serverIdleTimeout: '100ms' },
  });
  const admin = await served.console();
  const serversOfWorkers = async (): Promise<number[]> =>
    (await served.workers()).map(({ servers }) => servers);
  const clients = await served.clientOfEach(admin);
  for (const client of clients.values()) await client.query('select 1');
  await expect.poll(async () => (await serversOfWorkers()).toSorted(), { timeout: 10_000 }).toEqual([1, 2]);
  const watch = await SessionWatch.start(db);
  await expect.poll(() => watch.looks, { timeout: 10_000 }).toBeGreaterThan(200);
  await watch.stop();
  expect(watch.most).toBe(3);
  await clients.get(1)?.end();
  await expect.poll(serversOfWorkers, { timeout: 10_000 }).toEqual([0, 3]);
});

test.each(['maxServerConnections', 'maxDbConnections', 'maxUserConnections'])(
  'min_pool_size above %s settles at the limit over all workers, and nothing is opened and closed',
  async (limit) => {
    await noSessionIsLeft();
    const served = await serve(db, { pooling: { poolSize: 10, minPoolSize: 6 }, limits: { [limit]: 3 } });
    const admin = await served.console();
    for (const client of (await served.clientOfEach(admin)).values()) await client.query('select 1');
    const servers = async (): Promise<number> =>
      (await served.workers()).reduce((sum, worker) => sum + worker.servers, 0);
    const closed = async (): Promise<number> =>
      (await admin.query('SHOW DISCARDS')).rows.reduce((sum, { count }) => sum + Number(count), 0);
    // Missing connections are looked for every second: three looks without a change are rest. The first may be before it.
    const moved = async (): Promise<readonly number[]> => {
      await expect.poll(servers, { timeout: 20_000 }).toBe(3);
      const before = await closed();
      await sleep(3_000);
      return [(await servers()) - 3, (await closed()) - before];
    };
    const first = await moved();
    if (first.some((count) => count !== 0)) expect(await moved()).toEqual([0, 0]);
  },
  90_000,
);

test.each(['maxServerConnections', 'maxDbConnections', 'maxUserConnections'])(
  '%s holds over all workers, and clients of all are served',
  async (limit) => {
    await noSessionIsLeft();
    const served = await serve(db, { pooling: { poolSize: 5 }, limits: { [limit]: 2 } });
    const clients = await served.spread(6);
    const watch = await SessionWatch.start(db);
    const work = clients.map(async (client) => {
      for (let n = 0; n < 20; n++) await client.query('select pg_sleep(0.005)');
    });
    await Promise.all(work);
    await watch.stop();
    watch.expectAtMost(2);
    expect(watch.most).toBe(2);
  },
);

/** Sessions of the test before may take a moment to end. */
async function noSessionIsLeft(): Promise<void> {
  await using counter = await SessionCounter.open(db.url);
  await counter.until({ database: db.database }, (sessions) => sessions === 0);
}

async function untilActive(): Promise<void> {
  const watcher = new pg.Client(usualDb.url);
  await watcher.connect();
  const text = `select count(*)::int as count from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active' and datname = current_database()`;
  while ((await watcher.query(text)).rows[0].count === 0);
  await watcher.end();
}

/** node-postgres keeps the key to itself, but for this. */
function cancel(client: pg.Client, query: pg.Query, port: number): Promise<void> {
  const request = new pg.Client({ host: '127.0.0.1', port });
  const { connection } = request as unknown as { connection: NodeJS.EventEmitter };
  return new Promise((resolve) => {
    connection.once('end', () => resolve());
    (request as unknown as { cancel(client: pg.Client, query: pg.Query): void }).cancel(client, query);
  });
}

// Clients of one pool are brought together on one worker, as long as the pool has not enough connections for more.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { transportKind } from '../../../src/net/native-streams.js';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { type Served, serve, workerOf } from './served.js';

const certificates = join(import.meta.dirname, '../../net/certificates');

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** One database under several names: each is a pool of its own. */
function databases(count: number): Record<string, Record<string, unknown>> {
  const { host, port, password, database: dbname } = db;
  const names = Array.from({ length: count }, (_, index) => `pool_${index}`);
  return Object.fromEntries(names.map((name) => [name, { host, port, password, dbname }]));
}

/** By database: the workers that its clients are on, one number for each client. */
async function workersByDatabase(served: Served): Promise<Map<string, number[]>> {
  const admin = await served.console();
  const { rows } = await admin.query('SHOW CLIENTS');
  await admin.end();
  const found = new Map<string, number[]>();
  for (const { database, id } of rows.filter(({ database }) => database !== 'headgate'))
    found.set(database, [...(found.get(database) ?? []), workerOf(id)]);
  return found;
}

function connectAll(served: Served, count: number, options: pg.ClientConfig = {}): Promise<pg.Client[]> {
  return Promise.all(Array.from({ length: count }, () => served.connect(options)));
}

/** The process of the worker that has the client. */
async function pidOfHome(served: Served, client: pg.Client): Promise<number> {
  const home = await served.workerOf(client, await served.console());
  return (await served.workers()).find(({ worker }) => worker === home)?.pid as number;
}

/** How many clients each worker has, the fewest first. */
function counts(workers: readonly number[] = []): number[] {
  return [1, 2].map((number) => workers.filter((worker) => worker === number).length).sort((a, b) => a - b);
}

/** Through Node's streams, all clients are placed by number, as those whose startup packet is late. */
const testByPool = test.skipIf(transportKind() === 'streams');

testByPool(
  'clients of each pool are on one worker while all arrive at once on fewer connections than pools',
  async () => {
    const names = databases(8);
    const served = await serve(db, { databases: names, limits: { maxServerConnections: 4 } });
    const clients = await Promise.all(
      Object.keys(names).map((database) => connectAll(served, 4, { database })),
    );
    await Promise.all(clients.flat().map((client) => client.query('select pg_sleep(0.01)')));
    const found = await workersByDatabase(served);
    expect([...found.values()].map(counts)).toEqual(Array.from(found, () => [0, 4]));
    expect(counts([...found.values()].flat())).toEqual([16, 16]);
  },
);

testByPool(
  'a pool with many clients stays on one worker while other pools need the connections',
  async () => {
    const names = databases(6);
    const served = await serve(db, {
      databases: names,
      pooling: { poolSize: 20 },
      limits: { maxServerConnections: 6 },
    });
    for (const database of Object.keys(names)) {
      const client = await served.connect({ database });
      // The client has a connection of its own until the end of the test.
      await client.query('begin; select 1');
    }
    await connectAll(served, 20, { database: 'pool_0' });
    expect(counts((await workersByDatabase(served)).get('pool_0'))).toEqual([0, 21]);
  },
);

test('a busy user that is alone uses all workers', async () => {
  const served = await serve(db, { pooling: { poolSize: 20 } });
  const clients = await connectAll(served, 20);
  await Promise.all(clients.map((client) => client.query('select pg_sleep(0.05)')));
  expect(counts((await workersByDatabase(served)).get(db.database))).toEqual([10, 10]);
  expect((await served.workers()).every(({ servers }) => servers > 0)).toBe(true);
});

test('a client goes to the worker whose clients have left, where its pool has enough connections', async () => {
  const served = await serve(db, { pooling: { poolSize: 20 } });
  const admin = await served.console();
  for (const client of await connectAll(served, 12))
    if ((await served.workerOf(client, admin)) === 1) await client.end();
  const nextFive = async (): Promise<number[]> => {
    const seen: number[] = [];
    for (let n = 0; n < 5; n++) {
      const client = await served.connect();
      seen.push(await served.workerOf(client, admin));
      await client.end();
    }
    return seen;
  };
  await expect.poll(nextFive, { timeout: 5_000 }).toEqual([1, 1, 1, 1, 1]);
});

test('a busy user uses all workers although others that have been idle for long are connected', async () => {
  const names = databases(8);
  const served = await serve(db, {
    databases: names,
    pooling: { poolSize: 20 },
    limits: { maxServerConnections: 8 },
    fairShares: { demandWindow: '1s', rebalanceInterval: '100ms' },
  });
  for (const database of Object.keys(names).slice(1)) await served.connect({ database });
  const workersOfBusy = async (): Promise<number[]> => {
    const clients = await connectAll(served, 12, { database: 'pool_0' });
    const found = counts((await workersByDatabase(served)).get('pool_0'));
    await Promise.all(clients.map((client) => client.end()));
    return found;
  };
  await expect.poll(workersOfBusy, { timeout: 20_000 }).toEqual([6, 6]);
});

testByPool(
  'a pool whose size is raised by a reload gets another worker, and returns when it is lowered',
  async () => {
    const served = await serve(db, { pooling: { poolSize: 3 } });
    const admin = await served.console();
    const first = await connectAll(served, 8);
    expect(counts((await workersByDatabase(served)).get(db.database))).toEqual([0, 8]);
    served.write({ pooling: { poolSize: 20 } });
    await admin.query('RELOAD');
    const more = await connectAll(served, 8);
    expect(counts((await workersByDatabase(served)).get(db.database))).toEqual([8, 8]);
    served.write({ pooling: { poolSize: 3 } });
    await admin.query('RELOAD');
    await Promise.all(more.slice(1).map((client) => client.end()));
    const home = await served.workerOf(first[0] as pg.Client, admin);
    const workerOfNext = async (): Promise<number> => {
      const client = await served.connect();
      const worker = await served.workerOf(client, admin);
      await client.end();
      return worker;
    };
    await expect.poll(workerOfNext, { timeout: 10_000 }).toBe(home);
  },
);

testByPool('clients of a worker that is killed come back together on another one', async () => {
  const served = await serve(db);
  const clients = await connectAll(served, 4);
  const pid = await pidOfHome(served, clients[0] as pg.Client);
  const gone = clients.map((client) => new Promise((resolve) => client.once('error', resolve)));
  process.kill(pid, 'SIGKILL');
  await Promise.all(gone);
  const back = await connectAll(served, 4);
  for (const client of back) expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(counts((await workersByDatabase(served)).get(db.database))).toEqual([0, 4]);
});

test('no client is lost that comes while the home of its pool is being killed', async () => {
  const served = await serve(db);
  const pid = await pidOfHome(served, await served.connect());
  // A stopped worker takes no clients, which wait for it or are under way to it.
  process.kill(pid, 'SIGSTOP');
  const coming = connectAll(served, 6);
  await served.connect({ database: 'headgate' });
  process.kill(pid, 'SIGKILL');
  const clients = await coming;
  for (const client of clients) expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

testByPool(
  'a worker that does not take clients is not waited for by the pools that it is the home of',
  async () => {
    const served = await serve(db);
    const pid = await pidOfHome(served, await served.connect());
    process.kill(pid, 'SIGSTOP');
    // The first is under way to the stopped worker until that is killed.
    const stuck = served.connect();
    const other = await served.connect();
    expect((await other.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    process.kill(pid, 'SIGKILL');
    expect((await (await stuck).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  },
);

test('the limits on clients hold, and count a client once', async () => {
  const served = await serve(db, { limits: { maxUserClientConnections: 6 } });
  const clients = await connectAll(served, 6);
  const { message } = await rejectionOf(served.connect());
  expect(message).toContain('too many clients: user');
  await clients[0]?.end();
  await expect.poll(() => served.connect().then(() => 'in', String), { timeout: 5_000 }).toBe('in');
});

testByPool('clients of one pool are on one worker by a Unix socket, too', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'headgate-socket-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const probe = await serve(db);
  const { port } = probe;
  await probe.end();
  const served = await serve(db, { listen: { port }, unixSocket: { dir } });
  const clients = await connectAll(served, 6, { host: dir });
  for (const client of clients) expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(counts((await workersByDatabase(served)).get(db.database))).toEqual([0, 6]);
});

testByPool('clients with TLS are placed by number, and those without by their pool', async () => {
  const clientTls = {
    mode: 'allow',
    keyFile: join(certificates, 'server.key'),
    certFile: join(certificates, 'server.pem'),
  };
  const served = await serve(db, { clientTls });
  const encrypted = await connectAll(served, 6, { ssl: { rejectUnauthorized: false } });
  for (const client of encrypted) expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(counts((await workersByDatabase(served)).get(db.database))).toEqual([3, 3]);
  await Promise.all(encrypted.map((client) => client.end()));
  await connectAll(served, 6);
  expect(counts((await workersByDatabase(served)).get(db.database))).toEqual([0, 6]);
});

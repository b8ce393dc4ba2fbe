// The console of a pooler that is several processes: wherever one logs in, it is the console of all.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { type Served, serve, workerOf } from './served.js';

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

describe('The console of two workers', () => {
  let served: Served;

  beforeAll(async () => {
    served = await serve(db, { pooling: { poolSize: 4 } });
  });
  afterAll(() => served.end());

  test('The console of two workers shows the clients, servers and numbers of all, whichever worker one logs in to', async () => {
    const consoles = [await served.console(), await served.console()];
    const [admin] = consoles as [(typeof consoles)[0]];
    const clients = [...(await served.clientOfEach(admin)).values()];
    const before = await queryCount(admin);
    for (const client of clients) for (let n = 0; n < 5; n++) await client.query('select 1');
    for (const one of consoles) {
      const { rows: pools } = await one.query('SHOW POOLS');
      expect(pools).toHaveLength(1);
      expect(pools[0]).toMatchObject({ database: db.database, user: db.user, cl_active: clients.length });
      const { rows: databases } = await one.query('SHOW DATABASES');
      expect(databases[0]).toMatchObject({ current_client_connections: clients.length, pool_size: 4 });
      expect(await queryCount(one)).toBe(before + 5 * clients.length);
      const { rows: all } = await one.query('SHOW CLIENTS');
      expect(all).toHaveLength(clients.length + consoles.length);
      const { rows: ledger } = await one.query('SHOW LEDGER');
      expect(ledger[0].limit).toBe(4);
      expect(ledger[0].peak).toBeLessThanOrEqual(4);
    }
    for (const client of [...clients, ...consoles]) await client.end();
  });

  test('KILL_CLIENT ends a client of any worker, and says where there is none', async () => {
    const admin = await served.console();
    const clients = await served.clientOfEach(admin);
    for (const [worker, client] of clients) {
      const { rows } = await admin.query('SHOW CLIENTS');
      const { id } = rows.find((row) => workerOf(row.id) === worker && row.database === db.database);
      const ended = new Promise((resolve) => client.once('end', resolve));
      await admin.query(`KILL_CLIENT ${id}`);
      await ended;
      await expect
        .poll(() => rejectionOf(admin.query(`KILL_CLIENT ${id}`)).then(String))
        .toContain('no client');
    }
    await admin.end();
  });

  test('PAUSE stops the clients of all workers, until RESUME', async () => {
    const admin = await served.console();
    const clients = [...(await served.clientOfEach(admin)).values()];
    await Promise.all(clients.map((client) => client.query('select 1')));
    await admin.query('PAUSE');
    expect((await admin.query('SHOW SERVERS')).rows).toEqual([]);
    expect((await admin.query('SHOW STATE')).rows).toContainEqual({ key: 'paused', value: 'yes' });
    const answers = Promise.all(clients.map((client) => client.query('select 1 as one')));
    await expect.poll(async () => (await admin.query('SHOW POOLS')).rows[0].cl_waiting).toBe(clients.length);
    const other = await served.console();
    await other.query('RESUME');
    expect((await answers).map(({ rows }) => rows)).toEqual(clients.map(() => [{ one: 1 }]));
    for (const client of [...clients, admin, other]) await client.end();
  });

  test('DISABLE and ENABLE hold in all workers', async () => {
    const admin = await served.console();
    await admin.query(`DISABLE ${db.database}`);
    for (let n = 0; n < 4; n++)
      expect((await rejectionOf(served.connect())).message).toContain('is disabled at the moment');
    await admin.query(`ENABLE ${db.database}`);
    for (let n = 0; n < 4; n++) await (await served.connect()).end();
    await admin.end();
  });

  test('RECONNECT replaces the servers of all workers, and WAIT_CLOSE waits for that', async () => {
    const admin = await served.console();
    const clients = [...(await served.clientOfEach(admin)).values()];
    await Promise.all(clients.map((client) => client.query('select 1')));
    const before = new Set((await admin.query('SHOW SERVERS')).rows.map(({ remote_pid: pid }) => pid));
    await admin.query('RECONNECT');
    await admin.query('WAIT_CLOSE');
    await Promise.all(clients.map((client) => client.query('select 1')));
    const after = (await admin.query('SHOW SERVERS')).rows.map(({ remote_pid: pid }) => pid);
    expect(after.filter((pid) => before.has(pid))).toEqual([]);
    for (const client of [...clients, admin]) await client.end();
  });

  test('SUSPEND holds in all workers until RESUME', async () => {
    const admin = await served.console();
    const clients = [...(await served.clientOfEach(admin)).values()];
    await admin.query('SUSPEND');
    const answers = Promise.all(clients.map((client) => client.query('select 1 as one')));
    await admin.query('RESUME');
    expect((await answers).map(({ rows }) => rows)).toEqual(clients.map(() => [{ one: 1 }]));
    for (const client of [...clients, admin]) await client.end();
  });

  test('SUSPEND holds for clients that come meanwhile, whichever worker they come to', async () => {
    const admin = await served.console();
    // Each worker knows what a session begins with.
    for (const client of (await served.clientOfEach(admin)).values()) {
      await client.query('select 1');
      await client.end();
    }
    const before = await queryCount(admin);
    await admin.query('SUSPEND');
    const clients = await Promise.all(Array.from({ length: 4 }, () => served.connect()));
    const answers = Promise.all(clients.map((client) => client.query('select 1 as one')));
    await (await served.console()).end();
    expect(await queryCount(admin)).toBe(before);
    await admin.query('RESUME');
    expect((await answers).map(({ rows }) => rows)).toEqual(clients.map(() => [{ one: 1 }]));
    for (const client of [...clients, admin]) await client.end();
  });

  test('RELOAD takes the new configuration to all workers, and a bad one to none', async () => {
    served.write({ pooling: { poolSize: 7 } });
    const admin = await served.console();
    await admin.query('RELOAD');
    expect(await poolSizes(served)).toEqual(['7', '7', '7', '7']);
    served.write({ pooling: { poolSize: -1 } });
    expect((await rejectionOf(admin.query('RELOAD'))).message).toContain('the configuration stays as it is');
    expect(await poolSizes(served)).toEqual(['7', '7', '7', '7']);
    served.write({ pooling: { poolSize: 4 } });
    await admin.query('RELOAD');
    await admin.end();
  });

  test('a worker that replaces another learns what was said before', async () => {
    const admin = await served.console();
    await admin.query('SET default_pool_size = 9');
    await admin.query(`DISABLE ${db.database}`);
    await admin.query('PAUSE');
    for (const { pid, worker, restarts } of await served.workers()) {
      process.kill(pid, 'SIGKILL');
      await expect
        .poll(
          () =>
            served.workers().then(
              (all) => all[worker - 1],
              () => undefined,
            ),
          { timeout: 15_000 },
        )
        .toMatchObject({ state: 'ready', restarts: restarts + 1 });
    }
    expect(await poolSizes(served)).toEqual(['9', '9', '9', '9']);
    const again = await served.console();
    expect((await again.query('SHOW STATE')).rows).toContainEqual({ key: 'paused', value: 'yes' });
    for (let n = 0; n < 4; n++)
      expect((await rejectionOf(served.connect())).message).toContain('is disabled at the moment');
    await again.query(`ENABLE ${db.database}`);
    // A worker that has seen no server yet can't tell clients what their session begins with.
    const coming = Array.from({ length: 4 }, () => served.connect());
    await expect.poll(() => waitingClients(again)).toBe(4);
    await again.query('RESUME');
    for (const client of await Promise.all(coming)) await client.query('select 1');
    await again.end();
  });
});

test('a database that only * serves can be paused and resumed on the consoles of all workers, before anyone has used it', async () => {
  const { host, port, password } = db;
  const served = await serve(db, { databases: { [db.database]: undefined, '*': { host, port, password } } });
  const consoles = await Promise.all(Array.from({ length: 4 }, () => served.console()));
  const [first, ...others] = consoles as [pg.Client, ...pg.Client[]];
  await first.query('PAUSE unused');
  await first.query('DISABLE unused');
  for (const one of others)
    expect((await one.query('SHOW DATABASES')).rows).toMatchObject([
      { name: 'unused', paused: 1, disabled: 1 },
    ]);
  await (others[0] as pg.Client).query('RESUME unused');
  await (others[0] as pg.Client).query('ENABLE unused');
  for (const one of consoles) expect((await one.query('SHOW DATABASES')).rows).toEqual([]);
});

test('server connections that a worker is opening are shown on the consoles of all', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const served = await serve(db, {
    databases: { [db.database]: { host: '127.0.0.1', port } },
    pooling: { serverConnectLimit: 1 },
  });
  const consoles = await Promise.all(Array.from({ length: 4 }, () => served.console()));
  served.connect().catch(() => {});
  for (const one of consoles) {
    await expect
      .poll(async () => (await one.query('SHOW SERVERS')).rows)
      .toMatchObject([{ state: 'new', database: db.database, user: db.user, addr: '127.0.0.1', port }]);
    expect((await one.query('SHOW LISTS')).rows).toContainEqual({ list: 'used_servers', items: 1 });
  }
  await served.end();
  silent.close();
});

test('SHUTDOWN on the console ends all workers, and the command ends well', async () => {
  const served = await serve(db);
  const admin = await served.console();
  await served.connect();
  await admin.query('SHUTDOWN').catch(() => {});
  expect(await served.ended()).toBe(0);
});

async function waitingClients(admin: pg.Client): Promise<number> {
  const { rows } = await admin.query('SHOW CLIENTS');
  return rows.filter(({ state }) => state === 'waiting').length;
}

async function queryCount(admin: pg.Client): Promise<number> {
  const { rows } = await admin.query('SHOW STATS_TOTALS');
  return Number(rows[0]?.query_count ?? 0);
}

/** As four consoles one after the other show it, which are two on each worker. */
async function poolSizes(served: Served): Promise<string[]> {
  const sizes: string[] = [];
  for (let n = 0; n < 4; n++) {
    const admin = await served.console();
    const { rows } = await admin.query('SHOW CONFIG');
    sizes.push(rows.find(({ key }) => key === 'default_pool_size')?.value);
    await admin.end();
  }
  return sizes;
}

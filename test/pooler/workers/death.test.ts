// Workers that die: only their own clients notice, and the server never has more connections than the budget.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { SessionWatch } from '../../support/session-watch.js';
import { type Served, serve } from './served.js';

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** A client that comes back whenever it is thrown out, and counts its answers. */
class Returning {
  readonly #served: Served;
  readonly #query: string;
  readonly #working: Promise<void>;
  #isOver = false;
  answers = 0;
  losses = 0;

  constructor(served: Served, query: string) {
    this.#served = served;
    this.#query = query;
    this.#working = this.#work();
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      try {
        const client = await this.#served.connect();
        while (!this.#isOver) {
          await client.query(this.#query);
          this.answers++;
        }
        await client.end();
      } catch {
        this.losses++;
      }
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }
}

async function readyWorkers(served: Served): Promise<{ worker: number; pid: number; restarts: number }[]> {
  return expect
    .poll(
      async () => {
        const workers = await served.workers().catch(() => []);
        return workers.length === 2 && workers.every(({ state }) => state === 'ready') ? workers : undefined;
      },
      { timeout: 20_000 },
    )
    .toBeDefined()
    .then(() => served.workers());
}

test('a worker that is killed loses its own clients only, and another takes its place', async () => {
  const served = await serve(db);
  const admin = await served.console();
  const clients = await served.clientOfEach(admin);
  const [first] = await served.workers();
  const gone = new Promise((resolve) => clients.get(1)?.once('error', resolve));
  process.kill(first?.pid as number, 'SIGKILL');
  await gone;
  expect((await clients.get(2)?.query('select 2 as two'))?.rows).toEqual([{ two: 2 }]);
  await served.says(/worker ended {2}worker=1 pid=\d+ reason=SIGKILL .* restart_in_ms=\d+/);
  const workers = await readyWorkers(served);
  expect(workers.map(({ worker, restarts }) => [worker, restarts])).toEqual([
    [1, 1],
    [2, 0],
  ]);
  expect(workers[0]?.pid).not.toBe(first?.pid);
});

test('the counts of a dead worker stay in the totals', async () => {
  const served = await serve(db);
  const admin = await served.console();
  const clients = await served.clientOfEach(admin);
  for (let n = 0; n < 20; n++) await clients.get(1)?.query('select 1');
  const queries = async (): Promise<number> => {
    const console = await served.console();
    const { rows } = await console.query('SHOW STATS');
    return Number(rows.find(({ database }) => database === db.database)?.total_query_count);
  };
  const before = await queries();
  expect(before).toBeGreaterThanOrEqual(20);
  const [first] = await readyWorkers(served);
  const gone = new Promise((resolve) => clients.get(1)?.once('error', resolve));
  process.kill(first?.pid as number, 'SIGKILL');
  await gone;
  expect(await queries()).toBe(before);
  await readyWorkers(served);
  await clients.get(2)?.query('select 1');
  expect(await queries()).toBe(before + 1);
});

test('its clients no longer count, and its slots are free, although a query of it was running', async () => {
  const served = await serve(db, { pooling: { poolSize: 1 }, limits: { maxClientConn: 3 } });
  const admin = await served.console();
  const clients = await served.clientOfEach(admin);
  const busy = clients.get(1)?.query('select pg_sleep(3600)');
  await expect
    .poll(async () => (await admin.query('SHOW POOLS')).rows[0]?.sv_active, { timeout: 10_000 })
    .toBe(1);
  const [first] = await served.workers();
  const watch = await SessionWatch.start(db);
  process.kill(first?.pid as number, 'SIGKILL');
  await busy?.catch(() => {});
  // The only slot there is was the dead worker's; its query would have run for an hour.
  expect((await clients.get(2)?.query('select 2 as two'))?.rows).toEqual([{ two: 2 }]);
  await watch.stop();
  watch.expectAtMost(1);
  expect(watch.most).toBe(1);
  expect(await served.connect().then((client) => client.query('select 1'))).toBeDefined();
});

test('while workers are killed again and again under load, the budget is never exceeded', async () => {
  const budget = 6;
  const served = await serve(db, {
    pooling: { poolSize: 20 },
    limits: { maxServerConnections: budget },
    logging: { connections: false, disconnections: false, poolerErrors: false },
  });
  const watch = await SessionWatch.start(db);
  const clients = [
    ...Array.from({ length: 12 }, () => new Returning(served, 'select pg_sleep(0.002)')),
    ...Array.from({ length: 4 }, () => new Returning(served, 'select pg_sleep(0.5)')),
  ];
  await expect.poll(() => clients.every(({ answers }) => answers > 0), { timeout: 15_000 }).toBe(true);
  for (let kills = 0; kills < 6; ) {
    const workers = await served.workers().catch(() => []);
    const alive = workers.filter(({ state }) => state === 'ready');
    const chosen = alive[kills % 2];
    if (chosen === undefined) continue;
    process.kill(chosen.pid, 'SIGKILL');
    kills++;
    const before = clients.map(({ answers }) => answers);
    // Clients on the other worker, or that came back, go on.
    await expect
      .poll(() => clients.some(({ answers }, n) => answers > (before[n] ?? 0) + 5), { timeout: 15_000 })
      .toBe(true);
  }
  const before = clients.map(({ answers }) => answers);
  await expect
    .poll(() => clients.every(({ answers }, n) => answers > (before[n] ?? 0)), { timeout: 20_000 })
    .toBe(true);
  await Promise.all(clients.map((client) => client.stop()));
  await watch.stop();
  expect(watch.looks).toBeGreaterThan(100);
  watch.expectAtMost(budget);
  expect(watch.most).toBe(budget);
}, 60_000);

test('when the supervisor is killed, no worker is left', async () => {
  const served = await serve(db);
  const workers = await served.workers();
  served.child.kill('SIGKILL');
  await expect.poll(() => workers.filter(({ pid }) => isAlive(pid)), { timeout: 10_000 }).toEqual([]);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

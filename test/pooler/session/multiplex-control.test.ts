// Console commands, reloads and timeouts while statements of several clients share connections.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ConfigTree,
  poolerConfig,
  startTestPooler,
  type TestPooler,
  treeFor,
} from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await client.query('create table notes (tag text)');
  await client.query("insert into notes values ('x')");
  await client.query('create table others (tag text)');
  await client.end();
});
afterAll(() => db.drop());

function tree(pooling: ConfigTree[string] = {}, timeouts: ConfigTree[string] = {}): ConfigTree {
  return {
    pooling: { poolSize: 2, multiplexDepth: 4, multiplexLongest: '10s', ...pooling },
    timeouts,
    admin: { adminUsers: [db.user] },
  };
}

function multiplexed({ pooler }: TestPooler): number {
  return pooler.stats().pools[0]?.tally.multiplexed ?? 0;
}

/** Clients that ask, and check what they are answered, until they are stopped. */
class Load {
  readonly outcomes: Promise<PromiseSettledResult<void>[]>;
  #answers = 0;
  #isOver = false;

  constructor(clients: readonly pg.Client[]) {
    this.outcomes = Promise.allSettled(clients.map((client, index) => this.#go(client, index)));
  }

  static async on(pooler: TestPooler, count: number): Promise<Load> {
    return new Load(await Promise.all(Array.from({ length: count }, () => pooler.connect())));
  }

  async #go(client: pg.Client, index: number): Promise<void> {
    for (let time = 0; !this.#isOver; time++) {
      const tag = `${index}-${time}`;
      const { rows } = await client.query('select $1::text as tag', [tag]);
      expect(rows).toEqual([{ tag }]);
      this.#answers++;
    }
  }

  async more(count: number): Promise<void> {
    const until = this.#answers + count;
    await expect.poll(() => this.#answers, { timeout: 20_000 }).toBeGreaterThanOrEqual(until);
  }

  /** Messages of the clients that failed. */
  async stop(): Promise<string[]> {
    this.#isOver = true;
    const failed = (await this.outcomes).filter((outcome) => outcome.status === 'rejected');
    return failed.map(({ reason }) => (reason as Error).message);
  }
}

test('while statements share connections PAUSE ends when all are answered, and RESUME goes on with those that wait', async () => {
  const pooler = await startTestPooler(db, tree());
  const admin = await pooler.connect({ database: 'headgate' });
  const load = await Load.on(pooler, 16);
  for (let time = 0; time < 10; time++) {
    await load.more(50);
    await admin.query('PAUSE');
    const { inUse } = pooler.pooler.stats().pools[0] as { inUse: number };
    expect(inUse).toBe(0);
    await admin.query('RESUME');
  }
  await load.more(50);
  expect(await load.stop()).toEqual([]);
  expect(multiplexed(pooler)).toBeGreaterThan(50);
});

test('while statements share connections RECONNECT and another depth lose no answer', async () => {
  const pooler = await startTestPooler(db, tree());
  const admin = await pooler.connect({ database: 'headgate' });
  const load = await Load.on(pooler, 16);
  for (const multiplexDepth of [1, 8, 2, 1, 4]) {
    await load.more(50);
    await admin.query('RECONNECT');
    await load.more(50);
    await pooler.pooler.reload(poolerConfig({ ...treeFor(db, tree({ multiplexDepth })) }));
  }
  const before = multiplexed(pooler);
  await load.more(200);
  expect(await load.stop()).toEqual([]);
  expect(multiplexed(pooler)).toBeGreaterThan(before);
});

test('while statements share connections a pool that grows and shrinks loses no answer', async () => {
  const pooler = await startTestPooler(db, tree());
  const load = await Load.on(pooler, 16);
  for (const poolSize of [6, 1, 3, 2]) {
    await load.more(100);
    await pooler.pooler.reload(poolerConfig({ ...treeFor(db, tree({ poolSize })) }));
    await expect.poll(() => pooler.pooler.stats().pools[0]?.live).toBe(poolSize);
  }
  await load.more(100);
  expect(await load.stop()).toEqual([]);
});

test('while statements share connections KILL_CLIENT ends that client, and no other loses its answer', async () => {
  const pooler = await startTestPooler(db, tree());
  const admin = await pooler.connect({ database: 'headgate' });
  const load = await Load.on(pooler, 12);
  const { rows } = await admin.query('SHOW CLIENTS');
  const victims = rows.filter(({ database }) => database === db.database).slice(0, 5);
  for (const { id } of victims) {
    await load.more(50);
    await admin.query(`KILL_CLIENT ${id}`);
  }
  await load.more(100);
  expect(await load.stop()).toHaveLength(victims.length);
  await expect.poll(() => pooler.pooler.stats().pools[0]?.inUse).toBe(0);
});

test('query_timeout ends the client whose statement runs, and those behind it are answered', async () => {
  const pooler = await startTestPooler(db, tree({ poolSize: 1 }, { queryTimeout: '1s' }));
  const clients = await Promise.all(Array.from({ length: 4 }, () => pooler.connect()));
  const [holder, slow, ...behind] = clients as [pg.Client, pg.Client, pg.Client, pg.Client];
  const read = (client: pg.Client): Promise<pg.QueryResult> => client.query('select tag from notes');
  const other = (client: pg.Client): Promise<pg.QueryResult> => client.query('select 2 as two');
  const outsider = new pg.Client({ connectionString: db.url });
  await outsider.connect();
  // Both are known to be short once they have waited.
  while (multiplexed(pooler) < 10) {
    await Promise.all(clients.map(read));
    await Promise.all(clients.map(other));
  }
  await holder.query('begin');
  await holder.query('select 1');
  const blocked = read(slow);
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  const before = multiplexed(pooler);
  const others = behind.map(other);
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(3);
  await outsider.query('begin');
  await outsider.query('lock table notes in access exclusive mode');
  await holder.query('commit');
  await expect(blocked).rejects.toThrow('query_timeout');
  for (const { rows } of await Promise.all(others)) expect(rows).toEqual([{ two: 2 }]);
  expect(multiplexed(pooler)).toBeGreaterThan(before);
  await outsider.query('rollback');
  await outsider.end();
});

test('query_timeout limits a write whose client has left, for the write behind it', async () => {
  const pooler = await startTestPooler(
    db,
    tree({ poolSize: 1, multiplexStatements: 'all' }, { queryTimeout: '1s' }),
  );
  const clients = await Promise.all(Array.from({ length: 3 }, () => pooler.connect()));
  const [holder, leaving, behind] = clients as [pg.Client, pg.Client, pg.Client];
  const write = (client: pg.Client): Promise<pg.QueryResult> =>
    client.query("insert into notes values ('y')");
  const other = (client: pg.Client): Promise<pg.QueryResult> =>
    client.query("insert into others values ('z')");
  const outsider = new pg.Client({ connectionString: db.url });
  await outsider.connect();
  while (multiplexed(pooler) < 10) {
    await Promise.all(clients.map(write));
    await Promise.all(clients.map(other));
  }
  await outsider.query('begin');
  await outsider.query('lock table notes in access exclusive mode');
  await holder.query('begin');
  await holder.query('select 1');
  const before = multiplexed(pooler);
  const blocked = write(leaving);
  blocked.catch(() => {});
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  const placed = other(behind);
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(2);
  await holder.query('commit');
  expect(multiplexed(pooler) - before).toBe(1);
  (leaving as unknown as { connection: { end(): void } }).connection.end();
  expect((await placed).rowCount).toBe(1);
  await outsider.query('rollback');
  await outsider.end();
});

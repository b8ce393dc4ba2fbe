// Long statements beside short ones that share connections: some connections are left to the short ones.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { sendCancelRequest } from '../../support/cancel-request.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

const long = 'select count(*)::int as n from busy';
const poolSize = 4;
const patience = { timeout: 20_000 };

let db: TestDatabase;
/** Holds the lock that makes a statement long. */
let outsider: pg.Client;
/** In a transaction the server shows the same sessions again and again. */
let observer: pg.Client;
beforeAll(async () => {
  db = await withDatabase();
  [outsider, observer] = [new pg.Client(db.url), new pg.Client(db.url)];
  await Promise.all([outsider.connect(), observer.connect()]);
  await outsider.query('create table busy (n int)');
});
afterAll(async () => {
  await Promise.all([outsider.end(), observer.end()]);
  await db.drop();
});

let pooler: TestPooler;
let clients: readonly pg.Client[];
beforeEach(async () => {
  pooler = await startTestPooler(db, {
    pooling: { poolSize, multiplexDepth: 4, multiplexLongest: '500ms' },
  });
  clients = await Promise.all(Array.from({ length: 12 }, () => pooler.connect()));
  // The pool opens all its connections.
  await Promise.all(
    clients.map((client) =>
      client
        .query('begin')
        .then(() => client.query('select 1'))
        .then(() => client.query('commit')),
    ),
  );
  await lock();
  const first = ask(long);
  await outsider.query('select pg_sleep(0.6)');
  await outsider.query('commit');
  await first;
});

async function lock(): Promise<void> {
  await outsider.query('begin');
  await outsider.query('lock table busy in access exclusive mode');
}

async function ask(text: string, client = clients[0] as pg.Client): Promise<unknown> {
  return (await client.query(text)).rows[0];
}

/** The second time, it is known to be short. */
async function shortComes(client: pg.Client): Promise<void> {
  for (let time = 0; time < 2; time++) await ask("select 'short' as text", client);
}

function poolStats() {
  const [stats] = pooler.pooler.stats().pools;
  if (stats === undefined) throw new Error('The pooler has no pool.');
  return stats;
}

async function blocked(): Promise<number> {
  const { rows } = await observer.query(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and query = $1 and wait_event_type = 'Lock'`,
    [long],
  );
  return rows[0].n;
}

test('short statements are answered while more long ones wait than the pool has connections', async () => {
  const [asker, ...others] = clients as [pg.Client, ...pg.Client[]];
  await shortComes(asker);
  await lock();
  const waiting = others.map((client) => ask(long, client));
  await expect.poll(blocked, patience).toBe(poolSize - 1);
  for (let time = 0; time < 20; time++)
    expect(await ask("select 'short' as text", asker)).toEqual({ text: 'short' });
  expect(await blocked()).toBe(poolSize - 1);
  expect(pooler.pooler.stats().waiting).toBe(others.length - poolSize + 1);
  expect(poolStats().tally.longWaits).toBe(others.length - poolSize + 1);
  await outsider.query('commit');
  expect(await Promise.all(waiting)).toEqual(others.map(() => ({ n: 0 })));
});

test('a long statement has a connection to itself, and is not placed behind a short one', async () => {
  const holders = clients.slice(0, poolSize);
  const [asker, other] = clients.slice(poolSize) as [pg.Client, pg.Client];
  await shortComes(asker);
  for (const holder of holders) await holder.query('begin');
  for (const holder of holders) await holder.query('select 1');
  const { tally } = poolStats();
  const before = tally.multiplexed;
  const short = ask("select 'short' as text", asker);
  await expect.poll(() => pooler.pooler.stats().waiting, patience).toBe(1);
  const slow = ask(long, other);
  await expect.poll(() => pooler.pooler.stats().waiting, patience).toBe(2);
  await holders[0]?.query('commit');
  expect(await Promise.all([short, slow])).toEqual([{ text: 'short' }, { n: 0 }]);
  expect(poolStats().tally.multiplexed).toBe(before);
  for (const holder of holders.slice(1)) await holder.query('commit');
});

test('long statements have all connections while no short ones come', async () => {
  await lock();
  const waiting = clients.map((client) => ask(long, client));
  await expect.poll(blocked, patience).toBe(poolSize);
  await outsider.query('commit');
  expect(await Promise.all(waiting)).toEqual(clients.map(() => ({ n: 0 })));
});

test('a long statement that waits apart is cancelled and disconnects as any other', async () => {
  const [asker, cancelled, gone, ...others] = clients as [pg.Client, pg.Client, pg.Client, ...pg.Client[]];
  await shortComes(asker);
  await lock();
  const waiting = others.map((client) => ask(long, client));
  await expect.poll(blocked, patience).toBe(poolSize - 1);
  const behind = others.length - poolSize + 1;
  const refused = expect(ask(long, cancelled)).rejects.toMatchObject({ code: '57014' });
  await expect.poll(() => pooler.pooler.stats().waiting, patience).toBe(behind + 1);
  await sendCancelRequest(cancelled, pooler);
  await refused;
  void ask(long, gone).catch(() => {});
  await expect.poll(() => pooler.pooler.stats().waiting, patience).toBe(behind + 1);
  await gone.end();
  await expect.poll(() => pooler.pooler.stats().waiting, patience).toBe(behind);
  await outsider.query('commit');
  expect(await Promise.all(waiting)).toEqual(others.map(() => ({ n: 0 })));
});

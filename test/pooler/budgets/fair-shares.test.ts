// Users who share one budget, end to end. `pg_stat_activity` is looked at from outside all the while: see tenants.ts.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { soon, startTenants, type Work } from './tenants.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const short = 'select 1';
const long = 'select pg_sleep(0.01)';

/** From now on a connection is this client's. */
async function keep(client: pg.Client): Promise<void> {
  await client.query('begin');
  await client.query(short);
}

test('different workloads side by side all get on: one with many clients, one with transactions, one with a query now and then', async () => {
  const { work, show } = await startTenants(db, ['noisy', 'orders', 'quiet'], 6);
  const noisy = work('noisy', 30, long);
  const orders = work('orders', 3, async (client) => {
    await client.query('begin');
    await client.query(long);
    await client.query('commit');
  });
  const quiet = work('quiet', 1, short);
  await Promise.all([noisy.more(300), orders.more(50), quiet.more(100)]);
  expect([...noisy.errors, ...orders.errors, ...quiet.errors]).toEqual([]);
  const shares = await show('SHARES');
  const total = shares.filter(({ budget }) => budget === 'total');
  expect(total.reduce((sum, { share }) => sum + Number(share), 0)).toBe(6);
  expect(Math.min(...total.map(({ share }) => Number(share)))).toBeGreaterThan(0);
});

test('users who come and go under load have their part when they come, and it goes back to the others when they leave', async () => {
  const { work, settled } = await startTenants(db, ['first', 'second', 'third'], 6);
  const first = work('first', 20, long);
  await settled({ first: 6 });
  const second = work('second', 20, long);
  await settled({ first: 3, second: 3 });
  const third = work('third', 20, long);
  await settled({ first: 2, second: 2, third: 2 });
  await Promise.all([first.more(20), second.more(20), third.more(20)]);
  await second.stop();
  await third.stop();
  await settled({ first: 6 });
});

test('new users are answered under load while another user wants everything', async () => {
  const names = Array.from({ length: 10 }, (_, n) => `new${n}`);
  const { work, client } = await startTenants(db, ['noisy', ...names], 4);
  const noisy = work('noisy', 40, long);
  await noisy.more(100);
  const meanwhile: number[] = [];
  for (const name of names) {
    const newcomer = await client(name);
    const before = noisy.answers;
    await newcomer.query(short);
    meanwhile.push(noisy.answers - before);
    await newcomer.end();
  }
  // In one line with the 40 clients it would be all of them, each time.
  const inOrder = meanwhile.toSorted((a, b) => a - b);
  expect(inOrder[5]).toBeLessThan(40);
});

test('a budget that is exhausted is waited for, and there again when it is given back', async () => {
  const { client, work, settled, connectionsOf } = await startTenants(db, ['keeper', 'other'], 3);
  const keepers = await Promise.all([1, 2, 3].map(() => client('keeper')));
  for (const keeper of keepers) await keep(keeper);
  await settled({ keeper: 3 });
  const other = work('other', 2, short);
  let isAnswered = false;
  void other.more(1).then(() => {
    isAnswered = true;
  });
  // A client that keeps its connection is not interrupted, however long others wait.
  for (const keeper of keepers) await keeper.query('select pg_sleep(0.2)');
  expect([isAnswered, connectionsOf('keeper', 'other')]).toEqual([false, [3, 0]]);
  await keepers[0]?.query('commit');
  await other.more(10);
  for (const keeper of keepers.slice(1)) await keeper.query('commit');
  await other.more(100);
  expect(other.errors).toEqual([]);
});

test('a client that gives up gets the numbers of the exhausted budget, and no other client notices', async () => {
  const { client, nameOf } = await startTenants(db, ['keeper', 'hasty'], 2, {
    users: { [`${db.database}_hasty`]: { queryWaitTimeout: '300ms' } },
  });
  const keepers = await Promise.all([client('keeper'), client('keeper')]);
  for (const keeper of keepers) await keep(keeper);
  const gaveUp = client('hasty').then((hasty) => hasty.query(short));
  await expect(gaveUp).rejects.toThrow(/waited \d+ms; limit 100: \d+ in use, \d+ idle, \d+ being opened/);
  for (const keeper of keepers) await keeper.query('commit');
  const again = await client('hasty');
  expect((await again.query('select current_user as name')).rows).toEqual([{ name: nameOf('hasty') }]);
});

test('far more users than connections all get on, at about the same pace, and connections are worth what they cost', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `user${n}`);
  const { work, pooler } = await startTenants(db, names, 4);
  const works = names.map((name) => work(name, 3, short));
  await Promise.all(works.map((one: Work) => one.more(300)));
  const answers = works.map((one) => one.answers);
  expect(works.flatMap(({ errors }) => errors)).toEqual([]);
  const total = answers.reduce((sum, count) => sum + count, 0);
  const jain = total ** 2 / (answers.length * answers.reduce((sum, count) => sum + count ** 2, 0));
  expect(jain).toBeGreaterThan(0.5);
  const opened = pooler.stats().pools.reduce((sum, { totals }) => sum + totals.opened, 0);
  // A connection is not opened for a handful of queries.
  expect(total / opened).toBeGreaterThan(20);
});

test('the operator changes weights while everything goes on, and sees shares, changes and classes', async () => {
  const { work, settled, admin, show, nameOf } = await startTenants(db, ['a', 'b'], 8);
  work('a', 20, long);
  work('b', 20, long);
  await settled({ a: 4, b: 4 });
  await admin.query(`SET connpool_user_weights = '${nameOf('a')}=3'`);
  await settled({ a: 6, b: 2 });
  const shares = (await show('SHARES')).filter(({ budget }) => budget === 'total');
  const byUser = new Map(shares.map(({ user, share, weight }) => [user, [Number(share), Number(weight)]]));
  expect([byUser.get(nameOf('a')), byUser.get(nameOf('b'))]).toEqual([
    [6, 3],
    [2, 1],
  ]);
  const changes = (await show('REBALANCES')).filter(({ cause }) => cause === 'configuration');
  expect(changes.map(({ user, from, to }) => [user, Number(from), Number(to)])).toEqual(
    expect.arrayContaining([[nameOf('a'), expect.any(Number), 6]]),
  );
  const classes = await show('CLASSES');
  expect(new Set(classes.map(({ user }) => user))).toEqual(new Set([nameOf('a'), nameOf('b')]));
});

test('the operator raises and lowers the capacity under load', async () => {
  const { work, settled, admin } = await startTenants(db, ['a', 'b'], 8, { fairShares: { capacity: 4 } });
  const works = [work('a', 20, long), work('b', 20, long)];
  await settled({ a: 2, b: 2 });
  await admin.query('SET connpool_global_capacity = 8');
  await settled({ a: 4, b: 4 });
  await admin.query('SET connpool_global_capacity = 2');
  await settled({ a: 1, b: 1 });
  await Promise.all(works.map((one) => one.more(20)));
});

test('the limit of a database is shared fairly between its users', async () => {
  const { work, settled } = await startTenants(db, ['a', 'b'], 4, {
    limits: { maxDbConnections: 4 },
    fairShares: { capacity: 'none' },
  });
  const a = work('a', 20, long);
  await settled({ a: 4 });
  const b = work('b', 20, long);
  await settled({ a: 2, b: 2 });
  await Promise.all([a.more(20), b.more(20)]);
});

test('the limit of a database and the budget above it hold together', async () => {
  const { work, settled, client } = await startTenants(db, ['a', 'b', 'c'], 4, {
    limits: { maxDbConnections: 3 },
    fairShares: { capacity: 3 },
  });
  const works = ['a', 'b'].map((user) => work(user, 10, long));
  await Promise.all(works.map((one) => one.more(50)));
  for (let n = 0; n < 5; n++) {
    const newcomer = await client('c');
    await newcomer.query(short);
    await newcomer.end();
  }
  works.push(work('c', 10, long));
  await settled({ a: 1, b: 1, c: 1 });
  await Promise.all(works.map((one) => one.more(20)));
});

test('pools without clients are forgotten, and never one with a connection in use', async () => {
  const { client, show, nameOf } = await startTenants(db, ['gone', 'pinned', 'busy'], 6, {
    fairShares: { inactiveTimeout: '50ms' },
    pooling: { serverIdleTimeout: '50ms' },
  });
  const gone = await client('gone');
  await gone.query(short);
  await gone.end();
  const pinned = await client('pinned');
  await pinned.query('listen something');
  const busy = await client('busy');
  await keep(busy);
  await vi.waitFor(async () => {
    const users = (await show('POOLS')).map(({ user }) => user);
    expect(users).not.toContain(nameOf('gone'));
  }, soon);
  const users = (await show('POOLS')).map(({ user }) => user);
  expect(users).toEqual(expect.arrayContaining([nameOf('pinned'), nameOf('busy')]));
  // Both have their connections still.
  await busy.query('commit');
  await pinned.query('notify something');
  const shares = (await show('SHARES')).filter(({ budget }) => budget === 'total');
  expect(shares.map(({ user }) => user)).not.toContain(nameOf('gone'));
});

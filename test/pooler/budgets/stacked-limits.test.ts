// Several limits on the same connections of a real PostgreSQL, which counts them itself.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { serve } from '../workers/served.js';
import { startTenants, type Work } from './tenants.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const capacity = 4;
const users = Array.from({ length: 8 }, (_, n) => `u${n}`);
const query = 'select pg_sleep(0.005)';

/** Each user has had its turn more than once. */
async function allGetOn(works: readonly Work[]): Promise<void> {
  await Promise.all(works.map((work) => work.more(20)));
  await Promise.all(works.map((work) => work.more(100)));
  expect(works.flatMap(({ errors }) => errors)).toEqual([]);
}

test.each([
  ['the same for the database as for all', { maxDbConnections: capacity }],
  ['less for the database', { maxDbConnections: capacity - 1 }],
  ['one for each user', { maxDbConnections: capacity, maxUserConnections: 1 }],
])('limits on top of each other %s: all users get on', async (_, limits) => {
  const { work } = await startTenants(db, users, capacity, { limits });
  await allGetOn(users.map((user) => work(user, 3, query)));
});

test('limits on top of each other databases whose limits add up to the limit for all: all users of both get on', async () => {
  const { host, port, password, database: dbname } = db;
  const place = { host, port, password, dbname, maxDbConnections: capacity / 2 };
  const { work } = await startTenants(db, users, capacity, {
    databases: { [dbname]: place, other: place },
  });
  await allGetOn(users.map((user, n) => work(user, 3, query, n % 2 === 0 ? dbname : 'other')));
});

test('connections that are promised to a user are there beside many others', async () => {
  const { work, settled, nameOf, show } = await startTenants(db, [...users, 'promised'], capacity, {
    users: { [`${db.database}_promised`]: { minUserConnections: 3 } },
  });
  const works = users.map((user) => work(user, 3, query));
  await Promise.all(works.map((one) => one.more(10)));
  const promised = work('promised', 6, query);
  await promised.more(10);
  await settled({ promised: 3 });
  await allGetOn([...works, promised]);
  const rows = await show('SHARES');
  expect(rows.find(({ user }) => user === nameOf('promised'))).toMatchObject({ share: 3, held: 3 });
});

test('users that come with one query each take nothing from a user that works', async () => {
  const { work, client, connectionsOf } = await startTenants(db, [...users, 'busy'], capacity);
  const busy = work('busy', 3, query);
  await busy.more(50);
  const seen: number[] = [];
  for (let n = 0; n < 40; n++) {
    const passing = await client(users[n % users.length] as string);
    await passing.query('select 1');
    await passing.end();
    seen.push(...connectionsOf('busy'));
  }
  // The connections that they have left are enough for the users that come.
  expect(seen.filter((connections) => connections < 2)).toEqual([]);
});

test('users of a server that accepts and never answers take nothing from others', async () => {
  const deaf = createServer();
  const sockets = new Set<Socket>();
  let most = 0;
  deaf.on('connection', (socket) => {
    sockets.add(socket);
    most = Math.max(most, sockets.size);
    socket
      .on('error', () => {})
      .on('close', () => sockets.delete(socket))
      .resume();
  });
  deaf.listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    deaf.close();
  });
  const { host, port, password, database } = db;
  const { work, connect, nameOf } = await startTenants(db, [...users, 'healthy'], capacity, {
    databases: {
      [database]: { host, port, password },
      dead: { host: '127.0.0.1', port: (deaf.address() as AddressInfo).port, password },
    },
  });
  for (const user of users)
    void connect({ user: nameOf(user), database: 'dead' }).then(
      (client) => client.query('select 1'),
      () => {},
    );
  await expect.poll(() => sockets.size, { timeout: 20_000 }).toBe(capacity);
  const healthy = work('healthy', 4, query);
  await healthy.more(500);
  // While it wants them, one attempt at a time is made there.
  await expect.poll(() => sockets.size, { timeout: 20_000 }).toBeLessThanOrEqual(1);
  await healthy.more(100);
  expect(most).toBe(capacity);
  expect(healthy.errors).toEqual([]);
});

test('with workers, a client that waits in vain is told which budget is exhausted', async () => {
  const served = await serve(db, {
    pooling: { poolSize: 5 },
    limits: { maxDbConnections: 1 },
    timeouts: { queryWaitTimeout: '2s' },
  });
  const holder = await served.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const refusal = rejectionOf(
    Promise.all([served.connect(), served.connect()]).then((clients) =>
      Promise.all(clients.map((client) => client.query('select 1'))),
    ),
  );
  const console = await served.console();
  await expect
    .poll(async () => (await console.query('SHOW POOLS')).rows.map(({ waits_for }) => waits_for))
    .toContainEqual(expect.stringMatching(/^1 of 1 connections \(database \S+\) are held/u));
  const refused = await refusal;
  expect(refused).toMatchObject({ code: '53300' });
  expect(String((refused as { detail?: string }).detail)).toMatch(
    /^1 of 1 connections \(database \S+\) are held, [01] of them here\.$/u,
  );
  await holder.query('commit');
});

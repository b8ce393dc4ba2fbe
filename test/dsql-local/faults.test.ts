// Each fault of the stand-in as an application's driver sees it on the wire.
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';
import { eventOf, nextTurn, rejectionOf } from '../support/outcomes.js';

let dsql: TestDsql;
const clients: pg.Client[] = [];

beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run('CREATE TABLE entries (n int PRIMARY KEY)');
});
afterAll(() => dsql.stop());
afterEach(async () => {
  dsql.setFaults({});
  await Promise.all(clients.splice(0).map((client) => client.end()));
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

async function connect(user?: string): Promise<pg.Client> {
  const client = await dsql.connect(user);
  clients.push(client);
  return client;
}

async function entries(client: pg.Client): Promise<number[]> {
  const { rows } = await client.query<{ n: number }>('SELECT n FROM entries ORDER BY n');
  return rows.map(({ n }) => n);
}

test('connections all connections are dropped without a word, also in the middle of a statement and of a transaction', async () => {
  const [idle, busy, open] = [await connect(), await connect(), await connect()];
  await open.query('BEGIN');
  await open.query('INSERT INTO entries VALUES (1)');
  const { statements } = dsql.report();
  const running = rejectionOf(busy.query('SELECT pg_sleep(60)'));
  while (dsql.report().statements === statements) await nextTurn();
  clients.length = 0;
  const ends = [idle, busy, open].map((client) => eventOf(client, 'end'));
  expect(dsql.dropConnections()).toBe(3);
  expect((await running).message).toBe('Connection terminated unexpectedly');
  await Promise.all(ends);
  while (dsql.connections > 0) await nextTurn();
  expect(await entries(await connect())).toEqual([]);
});

test('connections all new connections are refused as if the rate were exceeded, and open ones go on', async () => {
  const before = await connect();
  dsql.setFaults({ refuseConnections: true });
  expect(await rejectionOf(dsql.connect())).toMatchObject({
    severity: 'FATAL',
    code: '53400',
    message: 'Unable to accept connection, rate exceeded.',
  });
  await before.query('SELECT 1');
  dsql.setFaults({});
  await connect();
  expect(dsql.connectionCounts()).toMatchObject({ accepted: 2, refused: { 53400: 1 } });
});

test('connections a share of new connections is refused', async () => {
  dsql.setFaults({ refuseShare: 0.5 });
  const attempts = Array.from({ length: 60 }, async () => {
    const client = await dsql.connect();
    clients.push(client);
  });
  const results = await Promise.allSettled(attempts);
  const refused = results.filter(({ status }) => status === 'rejected').length;
  expect(dsql.connectionCounts()).toMatchObject({ accepted: 60 - refused, refused: { 53400: refused } });
  // A share of one half misses this once in 10^17 runs.
  expect(refused).toBeGreaterThan(0);
  expect(refused).toBeLessThan(60);
});

test('connections new connections are told that the cluster is waking up, for as long as it does', async () => {
  dsql.setFaults({ wakingMs: 3_600_000 });
  expect(await rejectionOf(dsql.connect())).toMatchObject({
    severity: 'FATAL',
    code: '08006',
    message: 'unable to accept connection, waking up cluster, please retry later',
  });
  const start = performance.now();
  dsql.setFaults({ wakingMs: 50 });
  for (;;) {
    const client = await dsql.connect().catch(() => undefined);
    if (client === undefined) continue;
    clients.push(client);
    break;
  }
  expect(performance.now() - start).toBeGreaterThanOrEqual(50);
});

test('connections new connections find that their tokens have expired', async () => {
  dsql.setFaults({ expireTokens: true });
  const error = await rejectionOf(dsql.connect());
  expect(error).toMatchObject({
    severity: 'FATAL',
    code: '08006',
    message: 'unable to accept connection, access denied',
  });
  expect((error as pg.DatabaseError).hint).toMatch(
    /^Signature expired: \d{8}T\d{6}Z is now earlier than \d{8}T\d{6}Z \(\d{8}T\d{6}Z - 15 min\.\)$/,
  );
});

test('latency delays each request once, by the simple and the extended protocol', async () => {
  const client = await connect();
  await client.query('SELECT 1');
  dsql.setFaults({ latencyMs: 40 });
  for (const query of ['SELECT 1', { text: 'SELECT $1::int', values: [1] }, 'SELECT 1; SELECT 2']) {
    const start = performance.now();
    await client.query(query);
    // A timer of Node's may be a millisecond early.
    expect(performance.now() - start).toBeGreaterThanOrEqual(39);
  }
});

const unavailable = { severity: 'ERROR', code: 'XX000', message: 'server unavailable' };
const conflict = { code: '40001', message: 'change conflicts with another transaction (OC000)' };

/** The same write as a transaction, as one statement, as a text of two, and with parameters. */
const writes: [string, (client: pg.Client, n: number) => Promise<unknown>][] = [
  [
    'COMMIT',
    async (client, n) => {
      await client.query('BEGIN');
      await client.query(`INSERT INTO entries VALUES (${n})`);
      return client.query('COMMIT');
    },
  ],
  ['an autocommitted statement', (client, n) => client.query(`INSERT INTO entries VALUES (${n})`)],
  [
    'an autocommitted text of two statements',
    (client, n) => client.query(`SELECT 1; INSERT INTO entries VALUES (${n})`),
  ],
  [
    'an autocommitted statement with parameters',
    (client, n) => client.query('INSERT INTO entries VALUES ($1)', [n]),
  ],
];

describe.each(writes)('the commit of %s', (name, write) => {
  test.each([
    ['fails with XX000 before it took effect', { unavailableBeforeCommit: 1 }, unavailable, []],
    ['takes effect and is answered with XX000', { unavailableAfterCommit: 1 }, unavailable, [7]],
    ['fails with OC000', { conflictShare: 1 }, conflict, []],
  ])(`the commit of ${name} %s, and the connection stays usable`, async (_what, faults, error, left) => {
    const client = await connect();
    dsql.setFaults(faults);
    expect(await rejectionOf(write(client, 7))).toMatchObject(error);
    dsql.setFaults({});
    expect(await entries(client)).toEqual(left);
    expect(await entries(await connect())).toEqual(left);
    await client.query('DELETE FROM entries');
    await write(client, 8);
    expect(await entries(client)).toEqual([8]);
    await client.query('DELETE FROM entries');
  });
});

test('reads that commit by themselves are not hit by faults of COMMIT', async () => {
  const client = await connect();
  dsql.setFaults({ conflictShare: 1 });
  expect(await entries(client)).toEqual([]);
  expect((await client.query('SELECT $1::int AS n', [1])).rows).toEqual([{ n: 1 }]);
});

test('a share of commits fails with OC000, and exactly the others are there', async () => {
  const client = await connect();
  dsql.setFaults({ conflictShare: 0.5 });
  const kept: number[] = [];
  for (let n = 0; n < 60; n += 1) {
    await client.query(`INSERT INTO entries VALUES (${n})`).then(
      () => kept.push(n),
      (error: unknown) => expect(error).toMatchObject(conflict),
    );
  }
  dsql.setFaults({});
  expect(await entries(client)).toEqual(kept);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.length).toBeLessThan(60);
  await client.query('DELETE FROM entries');
});

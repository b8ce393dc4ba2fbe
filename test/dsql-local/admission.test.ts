// Connection admission end to end: a burst of TLS connections, the limit of connections, and the life of a connection.
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import type pg from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { Admission } from '../../src/dsql-local/front/admission.js';
import { startDsqlLocal } from '../../src/dsql-local.js';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';
import { eventOf, nextTurn, rejectionOf } from '../support/outcomes.js';
import { message, RawDialer } from '../support/raw-dsql-client.js';

let dsql: TestDsql;
afterEach(async () => {
  vi.restoreAllMocks();
  await dsql.stop();
});

const openFiles = (): number =>
  process.platform === 'linux' ? readdirSync('/proc/self/fd').length : Number.NaN;

/** Which of the calls a bucket has to admit, by the definition of one. */
function admittedBy(rate: number, burst: number, times: readonly number[]): boolean[] {
  let tokens = burst;
  let last = times[0] ?? 0;
  return times.map((at) => {
    tokens = Math.min(burst, tokens + (Math.max(0, at - last) * rate) / 1_000);
    last = Math.max(last, at);
    if (tokens < 1 - 1e-6) return false;
    tokens -= 1;
    return true;
  });
}

test('a burst of connections a burst of 1,200 connections is admitted exactly as a bucket of 600 with 2 a second admits it, and leaves nothing behind', async () => {
  const enter = vi.spyOn(Admission.prototype, 'enter');
  dsql = await startTestDsql({ connectionBurst: 600, connectionRate: 2 });
  const dialer = new RawDialer(dsql);
  const token = await dsql.token();
  const filesBefore = openFiles();
  const open: Socket[] = [];
  const refusals: string[] = [];
  let left = 1_200;
  const dial = async (): Promise<void> => {
    while (left-- > 0) {
      const { socket, answer } = await dialer.logIn(token);
      if (answer === 'ready') open.push(socket);
      else refusals.push(answer);
    }
  };
  // A slow machine needs long for them: with a fast bucket it would admit all.
  await Promise.all(Array.from({ length: 200 }, dial));

  const { calls, results } = enter.mock;
  const times = calls.map(([now]) => now);
  expect(times).toHaveLength(1_200);
  const wanted = admittedBy(2, 600, times);
  expect(results.map(({ value }) => value === undefined)).toEqual(wanted);
  const admitted = wanted.filter(Boolean).length;
  expect(admitted).toBeGreaterThanOrEqual(600);
  expect(open).toHaveLength(admitted);
  expect(refusals).toHaveLength(1_200 - admitted);
  expect(new Set(refusals)).toEqual(new Set(['53400 Unable to accept connection, rate exceeded.']));
  expect(dsql.connectionCounts()).toEqual({
    open: admitted,
    peak: admitted,
    accepted: admitted,
    refused: { 53400: 1_200 - admitted },
  });
  expect(dsql.connections).toBe(admitted);

  for (const socket of open) socket.end(message('X', ''));
  while (dsql.connectionCounts().open > 0) await nextTurn();
  // The sockets of both sides are closed some turns later.
  while (openFiles() > filesBefore) await nextTurn();
}, 120_000);

test('the number of connections is limited with 53300, a refused token takes no place, and a place that is left is free at once', async () => {
  dsql = await startTestDsql({ maxConnections: 3 });
  const clients = [await dsql.connect(), await dsql.connect(), await dsql.connect()];
  expect(await rejectionOf(dsql.connect())).toMatchObject({
    severity: 'FATAL',
    code: '53300',
    message: 'Unable to accept connection, too many open connections.',
  });
  await clients.pop()?.end();
  while (dsql.connectionCounts().open > 2) await nextTurn();
  for (let count = 0; count < 5; count += 1)
    expect(await rejectionOf(dsql.connect('admin', { password: 'no token' }))).toMatchObject({
      code: '08006',
    });
  clients.push(await dsql.connect());
  expect(dsql.connectionCounts()).toEqual({
    open: 3,
    peak: 3,
    accepted: 4,
    refused: { 53300: 1, '08006': 5 },
  });
  await Promise.all(clients.map((client) => client.end()));
});

test('the number of connections that run statements is limited by maxSessions, and the error says so', async () => {
  dsql = await startTestDsql({ maxSessions: 20 });
  const clients = await Promise.all(Array.from({ length: 30 }, () => dsql.connect()));
  const outcomes = await Promise.allSettled(clients.map((client) => client.query('SELECT 1')));
  const errors = outcomes.flatMap((one) =>
    one.status === 'rejected' ? [one.reason as pg.DatabaseError] : [],
  );
  expect(errors.length).toBeGreaterThan(0);
  for (const { code, hint } of errors) {
    expect(code).toBe('53300');
    expect(hint).toContain('maxSessions');
  }
  expect(outcomes.length - errors.length).toBeGreaterThanOrEqual(15);
  await Promise.all(clients.map((client) => client.end()));
});

test('the life of a connection ends without a word where nothing is open, and a transaction may finish first', async () => {
  dsql = await startTestDsql({ connectionLifeMs: 500 });
  await dsql.run('CREATE TABLE lives (n int)');
  const errors: Error[] = [];
  const connect = async (): Promise<pg.Client> =>
    (await dsql.connect()).on('error', (error) => errors.push(error));
  const inTransaction = await connect();
  await inTransaction.query('BEGIN');
  await inTransaction.query('INSERT INTO lives VALUES (1)');
  const unused = await connect();
  const unusedEnds = eventOf(unused, 'end');
  const used = await connect();
  const usedEnds = eventOf(used, 'end');
  await used.query('SELECT 1');
  await Promise.all([unusedEnds, usedEnds]);
  expect(errors.map(({ message }) => message)).toEqual([
    'Connection terminated unexpectedly',
    'Connection terminated unexpectedly',
  ]);

  // The life of the one in a transaction is over too: it is older than the two that have ended.
  await expect.poll(() => dsql.connections).toBe(1);
  await inTransaction.query('INSERT INTO lives VALUES (2)');
  const end = eventOf(inTransaction, 'end');
  await inTransaction.query('COMMIT');
  await end;
  const after = await dsql.connect();
  expect((await after.query('SELECT n FROM lives')).rows).toEqual([{ n: 1 }, { n: 2 }]);
  await after.end();
});

test('the life of a connection lasts for a statement that is running', async () => {
  dsql = await startTestDsql({ connectionLifeMs: 300 });
  const client = await dsql.connect();
  const end = eventOf(client, 'end');
  expect((await client.query('SELECT pg_sleep(0.6), 1 AS n')).rows).toMatchObject([{ n: 1 }]);
  await end;
});

test('the life of a connection does not last longer than the longest transaction where a client leaves one open', async () => {
  dsql = await startTestDsql({ connectionLifeMs: 100, transactionMs: 200 });
  const client = await dsql.connect();
  await client.query('BEGIN');
  await eventOf(client, 'end');
});

test('limits that make no sense are refused, all at once', async () => {
  dsql = await startTestDsql();
  const error = await rejectionOf(
    startDsqlLocal({
      connectionRate: 0,
      connectionBurst: -1,
      maxConnections: 0,
      connectionLifeMs: 0,
      loginTimeoutMs: 0,
      controlPort: 70_000,
    }),
  );
  expect(error.message.split('\n')).toHaveLength(7);
  expect(error.message).toContain('6 problems with the options of the stand-in');
});

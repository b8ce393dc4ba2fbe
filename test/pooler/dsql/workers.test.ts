// `headgate serve` with several workers in front of Aurora DSQL: one bucket for all of them.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { serve } from '../workers/served.js';
import { databaseOf, treeOf } from './dsql-pooler.js';
import { LoginTimes } from './login-times.js';

const bucket = { rate: 5, burst: 6 };
/** Between the permit and the login there is some time, in which a permit may come back to the server's own bucket. */
const ofServer = { rate: bucket.rate, burst: bucket.burst + 1 };
const times = new LoginTimes();
let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql({
    connectionRate: ofServer.rate,
    connectionBurst: ofServer.burst,
    onLogin: times.onLogin,
  });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await dsql.stop();
});

test('two workers share one bucket: all connections are opened, and none too early', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', dsql.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', dsql.secretAccessKey);
  vi.stubEnv('DSQL_CONNECTION_RATE_LIMIT', String(bucket.rate));
  vi.stubEnv('DSQL_CONNECTION_BURST_LIMIT', String(bucket.burst));
  const count = 12;
  const served = await serve(databaseOf(dsql, 'admin'), treeOf(dsql, { pooling: { poolSize: count } }));
  const clients = await served.spread(count);
  const begins = await Promise.all(clients.map((client) => client.query('BEGIN')));
  expect(begins).toHaveLength(count);
  // Each needs a server connection of its own.
  const answers = await Promise.all(clients.map((client) => client.query('SELECT 1 AS n')));
  expect(answers.map(({ rows }) => rows)).toEqual(Array.from({ length: count }, () => [{ n: 1 }]));
  const workers = await served.workers();
  expect(workers.every(({ servers }) => servers > 0)).toBe(true);
  expect(workers.reduce((sum, { servers }) => sum + servers, 0)).toBe(count);
  // The stand-in's own bucket refused nobody, and another one would not have either.
  expect(dsql.connectionCounts()).toMatchObject({ accepted: count, refused: {} });
  expect(times.logins.map(({ code }) => code)).toEqual(Array.from({ length: count }, () => undefined));
  expect(times.fewestLeft(ofServer)).toBeGreaterThanOrEqual(0);
  const [first, last] = [times.logins[0], times.logins.at(-1)];
  const seconds = ((last?.atMs ?? 0) - (first?.atMs ?? 0)) / 1_000;
  expect(count).toBeLessThanOrEqual(ofServer.burst + bucket.rate * seconds);
  await served.end();
  expect(dsql.troubles).toEqual([]);
});

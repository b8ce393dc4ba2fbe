// The page before poolers of other kinds: as PgBouncer says things, in a fleet, and in front of Aurora DSQL.
import { expect, onTestFinished, test, vi } from 'vitest';
import { hasJava, startDynamo } from '../../scripts/lib/dynamodb-local.mjs';
import type { LogDetails, PoolerLog } from '../../src/pooler/log.js';
import { FleetStage } from '../pooler/budgets/fleet-stage.js';
import { startDsqlPooler } from '../pooler/dsql/dsql-pooler.js';
import { startTestDsql } from '../support/dsql-local.js';
import { startTestPooler } from '../support/pooler.js';
import { withDatabase } from '../support/postgres.js';
import { lookAt } from './look-at.js';

const password = 'the-operator-password';
const observability = { metricsListen: '127.0.0.1:0', pagePassword: password };
/** The machine may be busy. */
const soon = { timeout: 30_000, interval: 50 };

async function database() {
  const db = await withDatabase();
  onTestFinished(() => db.drop());
  return db;
}

function act(port: number | undefined, action: object): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/api/act`, {
    method: 'POST',
    headers: { authorization: `Bearer ${password}`, 'content-type': 'application/json' },
    body: JSON.stringify({ action }),
  });
}

test('a pooler that speaks as PgBouncer has the page and its actions, and logs them', async () => {
  const db = await database();
  const events: LogDetails[] = [];
  const log: PoolerLog = (_level, message, details = {}) => {
    if (message === 'page action') events.push(details);
  };
  const settings = { admin: { compatibility: 'pgbouncer' }, observability };
  const { pooler, connect } = await startTestPooler(db, settings, { host: { log } });
  await (await connect()).query('select 1');
  const base = `http://127.0.0.1:${pooler.metricsPort}`;
  const paused = await act(pooler.metricsPort, { name: 'pause', database: db.database });
  expect(paused.status).toBe(200);
  await vi.waitFor(async () => {
    const { subject, pools } = await lookAt(base, password);
    expect(subject.pausedDatabases).toEqual([db.database]);
    expect(pools.rows).toMatchObject([{ user: db.user, isPaused: true }]);
  }, soon);
  expect((await act(pooler.metricsPort, { name: 'resume', database: db.database })).status).toBe(200);
  expect(events).toMatchObject([
    {
      who: 'operator (token)',
      from: '127.0.0.1',
      action: `pause ${db.database} (headgate)`,
      outcome: 'done',
    },
    {
      who: 'operator (token)',
      from: '127.0.0.1',
      action: `resume ${db.database} (headgate)`,
      outcome: 'done',
    },
  ]);
});

test('a pooler in front of Aurora DSQL shows the rate of opening, and what binds when it is used up', async () => {
  const dsql = await startTestDsql();
  onTestFinished(() => dsql.stop());
  const { pooler, connect } = await startDsqlPooler(dsql, {
    pooling: { poolSize: 10 },
    dsql: { connectionRate: 0.001, connectionBurst: 2 },
    observability,
  });
  const clients = await Promise.all([connect(), connect(), connect()]);
  for (const client of clients) await client.query('BEGIN');
  const [one, two, last] = clients.map((client) => client.query('SELECT 1'));
  last?.catch(() => {});
  await Promise.all([one, two]);
  await vi.waitFor(async () => {
    const { rates, verdict } = await lookAt(`http://127.0.0.1:${pooler.metricsPort}`, password);
    expect(rates).toMatchObject([{ rate: 0.001, burst: 2 }]);
    expect(rates[0]?.tokens).toBeLessThan(1);
    expect(verdict.sentence).toContain('The rate of opening connections binds');
  }, soon);
});

test.runIf(hasJava)('a pooler of a fleet shows what it shares with the others', async () => {
  process.env['AWS_ACCESS_KEY_ID'] = 'test';
  process.env['AWS_SECRET_ACCESS_KEY'] = 'test';
  const [db, dynamo] = await Promise.all([database(), startDynamo()]);
  onTestFinished(() => dynamo.stop());
  const fleet = new FleetStage(db, dynamo, { limit: 6, leaseFor: '2s', grace: '1s', block: 2 });
  await fleet.prepare();
  const { pooler, connect } = await fleet.startHere('one', { observability });
  await (await connect()).query('begin');
  await vi.waitFor(async () => {
    const snapshot = await lookAt(`http://127.0.0.1:${pooler.metricsPort}`, password);
    expect(snapshot.fleet).toMatchObject([{ instance: 'one', state: 'ok', limit: 6, instances: 1 }]);
    expect(snapshot.fleet[0]?.held).toBeGreaterThan(0);
  }, soon);
});

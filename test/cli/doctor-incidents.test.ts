// `headgate doctor` on metrics and consoles of pools and poolers that are in real trouble: each finding is caused.
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { hasJava, startDynamo } from '../../scripts/lib/dynamodb-local.mjs';
import { connectConsole, consoleUrl } from '../../src/cli/console-client.js';
import { consoleFindings } from '../../src/cli/doctor-console.js';
import { metricFindings } from '../../src/cli/doctor-metrics.js';
import { MetricLooks, type MetricSample } from '../../src/cli/metric-samples.js';
import * as poolers from '../observe/alerts/incidents-of-poolers.js';
import * as pools from '../observe/alerts/incidents-of-pools.js';
import * as workers from '../observe/alerts/incidents-of-workers.js';
import type { Recorded } from '../observe/alerts/promql.js';
import { FleetStage } from '../pooler/budgets/fleet-stage.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

/** The machine may be busy. */
const soon = { timeout: 30_000, interval: 50 };

let db: TestDatabase;
/** Pools of programs wait for their own retries, all at the same time. */
const underWay = new Map<unknown, Promise<Recorded>>();
beforeAll(async () => {
  db = await withDatabase();
  for (const cause of Object.values(pools)) {
    const recording = cause();
    recording.catch(() => {});
    underWay.set(cause, recording);
  }
});
afterAll(() => db.drop());

const idsOf = (findings: readonly { id: string }[]) => [...new Set(findings.map(({ id }) => id))].sort();

/** The last two moments of a recording, as two looks at the metrics. */
function looksAt({ series, intervalSeconds }: Recorded): MetricLooks {
  const at = (back: number): MetricSample[] =>
    series.flatMap(({ name, labels, values }) => {
      const value = values.at(-back) ?? Number.NaN;
      return Number.isNaN(value) ? [] : [{ name, labels, value }];
    });
  return new MetricLooks(at(2), at(1), intervalSeconds * 1_000);
}

test.each<readonly [string, (db: TestDatabase) => Promise<Recorded>, readonly string[]]>([
  ['a pool that works', pools.healthy, []],
  ['a fleet that works', pools.healthyFleet, []],
  ['a pool whose connections live too short for its rate', pools.shortLives, ['lifetime_exceeds_rate']],
  ['a pooler that works', poolers.healthy, []],
  ['a pooler of two workers that works', workers.healthy, []],
  [
    'a database that is down',
    pools.databaseDown,
    ['breaker_open', 'not_opened_connection_open', 'reservoir_empty', 'reservoir_low'],
  ],
  ['a token provider that fails', pools.noToken, ['not_opened_token_provider']],
  ['a rate of opening that is reached', pools.rateReached, ['not_opened_rate_limit', 'rate_too_slow']],
  ['connections that come back broken', pools.manyDiscards, ['many_discards']],
  ['a pool that is used up', pools.allInUse, ['pool_used_up']],
  ['connections that are not given back', pools.leaks, ['leaks']],
  ['a fleet at its limit', pools.fleetFull, ['fleet_limit_near']],
  ['a table that does not answer', pools.tableDown, ['coordinator_failing']],
  ['a pooler that is used up', poolers.exhausted, ['clients_wait']],
  ['a server that is down', poolers.serverDown, ['not_opened_connection_open']],
  ['a pooler without tokens', poolers.noToken, ['not_opened_token_provider']],
  ['a pooler without permits', poolers.noPermits, ['rate_too_slow']],
  ['clients that keep their servers', poolers.manyPinned, ['pins']],
  ['too many clients', poolers.tooManyClients, ['client_limit_near']],
  ['a pooler that is paused', poolers.paused, ['pooler_paused']],
])(
  'the doctor finds on metrics: %s',
  async (_, cause, expected) => {
    const recording = await (underWay.get(cause) ?? cause(db));
    const found = idsOf(metricFindings(looksAt(recording)));
    if (expected.length === 0) expect(found).toEqual([]);
    else expect(found).toEqual(expect.arrayContaining([...expected]));
  },
  60_000,
);

test('the doctor finds each fault of a pooler with two workers once, with the numbers of both', async () => {
  const found = metricFindings(looksAt(await workers.exhausted(db)));
  expect(found.map(({ id }) => id).sort()).toEqual(['client_limit_near', 'clients_wait', 'pins']);
  const evidence = (id: string) => found.find((one) => one.id === id)?.evidence;
  expect(evidence('client_limit_near')).toBe('24 of max_client_conn 25.');
  expect(evidence('pins')).toBe('2 of 2 are pinned: 2 listen.');
}, 60_000);

test('the doctor compares the leases of each server of a fleet with the limit of that server', () => {
  const ofServer = (server: string, active: number, limit: number): MetricSample[] => [
    { name: 'dsql_distributed_conn_lease_active', labels: { service: 'shop', server }, value: active },
    { name: 'dsql_distributed_conn_lease_limit', labels: { service: 'shop', server }, value: limit },
  ];
  const found = (...samples: MetricSample[]) => metricFindings(new MetricLooks([], samples, 1_000));
  expect(found(...ofServer('a', 5, 10), ...ofServer('b', 50, 100))).toEqual([]);
  expect(found(...ofServer('a', 5, 100), ...ofServer('b', 96, 100))).toEqual([
    expect.objectContaining({ id: 'fleet_limit_near', finding: expect.stringContaining('for b') }),
  ]);
});

async function start(tree: object): Promise<TestPooler & { find(laterMs?: number): Promise<string[]> }> {
  const pooler = await startTestPooler(db, {
    auth: { type: 'trust' },
    admin: { adminUsers: ['console'] },
    ...tree,
  });
  const find = async (laterMs = 0) => {
    const client = await connectConsole(consoleUrl(`postgres://console@127.0.0.1:${pooler.port}/headgate`));
    try {
      return idsOf(await consoleFindings(client, Date.now() + laterMs));
    } finally {
      await client.end();
    }
  };
  return { ...pooler, find };
}

test('The doctor on the console finds a transaction whose client does nothing, and not one that works', async () => {
  const { connect, find } = await start({ pooling: { poolSize: 2 } });
  const [idle, working] = [await connect(), await connect()];
  await working.query('begin');
  const lock = 'select pg_advisory_xact_lock(815)';
  await idle.query('begin');
  await idle.query(lock);
  expect(await find()).toEqual([]);
  expect(await find(60_000)).toEqual(['idle_in_transaction']);
  const waits = working.query(lock);
  await idle.query('commit');
  await waits;
  await working.query('commit');
  expect(await find(60_000)).toEqual([]);
});

test('The doctor on the console finds a database that is paused by itself', async () => {
  const { connect, find } = await start({});
  const admin = await connect({ user: 'console', database: 'headgate' });
  await admin.query(`pause "${db.database}"`);
  expect(await find()).toEqual(['database_paused']);
  await admin.query(`resume "${db.database}"`);
  expect(await find()).toEqual([]);
});

test('The doctor on the console finds statements that fail or are slow', async () => {
  const { connect, find } = await start({ pooling: { poolSize: 10 } });
  const clients = await Promise.all(Array.from({ length: 10 }, () => connect()));
  await Promise.all(clients.map((client) => client.query('select pg_sleep(1.2)')));
  await Promise.allSettled(clients.map((client) => client.query('select 1 / 0')));
  expect(await find()).toEqual(['failing_statement', 'slow_statement']);
});

test('The doctor on the console finds that places for clients run out', async () => {
  const { connect, find } = await start({ limits: { maxClientConn: 10 } });
  // The console is one of them.
  for (let n = 0; n < 8; n++) await connect();
  expect(await find()).toEqual([]);
  await connect();
  expect(await find()).toEqual(['client_limit_near']);
});

test('The doctor on the console finds that clients may wait for ever', async () => {
  const { find } = await start({ timeouts: { queryWaitTimeout: 0 } });
  expect(await find()).toEqual(['waits_for_ever']);
});

test.runIf(hasJava)(
  'The doctor on the console finds a fleet at its limit, and a table that does not answer',
  async () => {
    process.env['AWS_ACCESS_KEY_ID'] = 'test';
    process.env['AWS_SECRET_ACCESS_KEY'] = 'test';
    const dynamo = await startDynamo();
    let isRunning = true;
    onTestFinished(() => (isRunning ? dynamo.stop() : undefined));
    const fleet = new FleetStage(db, dynamo, { limit: 2, leaseFor: '2s', grace: '1s', block: 1 });
    await fleet.prepare();
    const { connect, port } = await fleet.startHere('one', {
      auth: { type: 'trust' },
      admin: { adminUsers: ['console'] },
    });
    const holders = [await connect(), await connect()];
    for (const holder of holders) await holder.query('begin');
    const console_ = await connectConsole(consoleUrl(`postgres://console@127.0.0.1:${port}/headgate`));
    onTestFinished(() => console_.end());
    await vi.waitFor(
      async () => expect(idsOf(await consoleFindings(console_))).toContain('fleet_limit_near'),
      soon,
    );
    isRunning = false;
    await dynamo.stop();
    await vi.waitFor(
      async () => expect(idsOf(await consoleFindings(console_))).toContain('coordinator_failing'),
      soon,
    );
  },
  60_000,
);

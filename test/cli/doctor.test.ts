// `headgate doctor` and `headgate serve --check --connect`: each finding is caused first, and a healthy pooler has none.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { runCommand } from '../../src/cli/commands.js';
import { consoleFindings } from '../../src/cli/doctor-console.js';
import { metricFindings } from '../../src/cli/doctor-metrics.js';
import { MetricLooks, readSamples } from '../../src/cli/metric-samples.js';
import type { Terminal } from '../../src/cli/terminal.js';
import { refillCauses } from '../../src/core/reasons.js';
import { PromisePool, TokenBucket } from '../../src/engine.js';
import { exposePool } from '../../src/prometheus.js';
import { startTestPooler, treeFor } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const root = join(import.meta.dirname, '../..');

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(...args: string[]): Promise<Run> {
  let [out, err] = ['', ''];
  const terminal: Terminal = {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    hasColours: false,
    showsProgress: false,
  };
  return { code: await runCommand(args, terminal), out, err };
}

function configFile(tree: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-doctor-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'headgate.json');
  writeFileSync(file, JSON.stringify(tree));
  return file;
}

const idsOf = (findings: readonly { id: string }[]) => [...new Set(findings.map(({ id }) => id))].sort();
const jsonIds = ({ out }: Run) => idsOf(JSON.parse(out) as { id: string }[]);

async function closedPort(): Promise<number> {
  const server = createTcp().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('headgate serve --check --connect logs in to every database, and says that it worked', async () => {
  const { database, host, port, user, password } = db;
  const file = configFile(treeFor(db, { databases: { [database]: { host, port, user, password } } }));
  const { code, out } = await run('serve', '--config', file, '--check', '--connect');
  expect(out).toMatch(new RegExp(`${database} as ${user} at ${host}:${port}: logged in, \\d+ ms`));
  expect(code).toBe(0);
});

test('headgate serve --check --connect names a port that is refused, a wrong password and a database that is not there, and fails', async () => {
  const { database, host, port, user, password } = db;
  const refused = await closedPort();
  const file = configFile(
    treeFor(db, {
      databases: {
        [database]: { host, port, user, password },
        closed: { host: '127.0.0.1', port: refused, user, password },
        nowhere: { host, port, user, password, dbname: 'not_there' },
      },
    }),
  );
  const { code, out, err } = await run('serve', '--config', file, '--check', '--connect');
  expect(code).toBe(1);
  expect(out).toContain('logged in');
  expect(err).toMatch(new RegExp(`closed as ${user} at 127.0.0.1:${refused}: .*No server listens there`));
  expect(err).toMatch(/nowhere as .*not_there.*There is no such database/);
  expect(out).not.toContain('the configuration is good');
});

test('headgate serve --check --connect is refused without --check', async () => {
  expect(await run('serve', '--config', 'x', '--connect')).toMatchObject({ code: 2 });
});

test('headgate doctor finds nothing but warnings that hold in a configuration that works', async () => {
  const { database, host, port, user, password } = db;
  const databases = { [database]: { host, port, user, password } };
  const timeouts = { queryWaitTimeout: '30s', idleTransactionTimeout: '5m' };
  const good = await run('doctor', '--config', configFile(treeFor(db, { databases, timeouts })));
  expect(good).toEqual({ code: 0, out: 'nothing wrong was found\n', err: '' });
});

test('headgate doctor finds waits for ever, limits above those of the server and databases that can not be reached', async () => {
  const { database, host, port, user, password } = db;
  const databases = {
    [database]: { host, port, user, password },
    closed: { host: '127.0.0.1', port: await closedPort(), user },
  };
  const bad = { databases, timeouts: { queryWaitTimeout: 0 }, pooling: { poolSize: 5_000 } };
  const file = configFile(treeFor(db, { ...bad, fairShares: { capacity: 'none' } }));
  const found = await run('doctor', '--config', file, '--json');
  expect(found.code).toBe(1);
  expect(jsonIds(found)).toEqual([
    'can_not_connect',
    'idle_transactions_for_ever',
    'limit_exceeds_server',
    'waits_for_ever',
  ]);
});

test('headgate doctor counts the limits of the pooler and of each database before it says that a server has too few connections', async () => {
  const { database, host, port, user, password } = db;
  const databases = { [database]: { host, port, user, password } };
  const timeouts = { queryWaitTimeout: '30s', idleTransactionTimeout: '5m' };
  const tree = { databases, timeouts, pooling: { poolSize: 5_000 }, fairShares: { capacity: 'none' } };
  const idsWith = async (limits: Record<string, number>) =>
    jsonIds(await run('doctor', '--config', configFile(treeFor(db, { ...tree, limits })), '--json'));
  expect(await idsWith({})).toEqual(['limit_exceeds_server']);
  expect(await idsWith({ maxServerConnections: 20 })).toEqual([]);
  expect(await idsWith({ maxDbConnections: 20 })).toEqual([]);
  expect(await idsWith({ maxDbConnections: 4_000 })).toEqual(['limit_exceeds_server']);
});

test('headgate doctor finds lifetimes that need more connections than the rate of the fleet allows, on any server', async () => {
  const { configFindings } = await import('../../src/cli/doctor-config.js');
  const { loadConfig } = await import('../../src/pooler/config/load-config.js');
  const idsAt = (rate: number, host = 'db.example') => {
    const tree = {
      auth: { type: 'trust' },
      databases: { app: { host, port: 5432, user: 'app' } },
      pooling: { poolSize: 600, serverLifetime: '60s' },
      fleet: { table: 'connections', region: 'eu-west-1', rate },
    };
    const { config } = loadConfig({ configFile: configFile(tree), folder: tmpdir() });
    return idsOf(configFindings(config));
  };
  expect(idsAt(9)).toContain('lifetime_exceeds_rate');
  expect(idsAt(11)).not.toContain('lifetime_exceeds_rate');
});

test('docs/troubleshooting.md explains every finding that headgate doctor can make, and no other', () => {
  const sources = readdirSync(join(root, 'src/cli')).filter((file) => /^doctor.*\.ts$/.test(file));
  const text = sources.map((file) => readFileSync(join(root, 'src/cli', file), 'utf8')).join('\n');
  const literal = Array.from(text.matchAll(/\b(?:problem|warning)\(\s*'(\w+)'/g), ([, id = '']) => id);
  const made = new Set([...literal, ...refillCauses.map((cause) => `not_opened_${cause}`)]);
  // Each finding is made by one of these two functions, with an id that this test sees.
  const calls = Array.from(text.matchAll(/\b(?:problem|warning)\(\s*(?=['`])/g));
  expect(calls.length).toBe(literal.length + text.split('`not_opened_${word}`').length - 1);
  const page = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8');
  const table = /## Findings of `headgate doctor`\n([\s\S]*?)\n## /.exec(page)?.[1] ?? '';
  const rows = Array.from(table.matchAll(/^\| (`.*?) \|/gm), ([, cell = '']) => cell);
  const documented = rows.flatMap((cell) => Array.from(cell.matchAll(/`(\w+)`/g), ([, id = '']) => id));
  expect(documented.sort()).toEqual([...made].sort());
});

test('headgate doctor finds lifetimes that need more connections than the rate allows', async () => {
  const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';
  const { configFindings } = await import('../../src/cli/doctor-config.js');
  const { loadConfig } = await import('../../src/pooler/config/load-config.js');
  const tree = {
    auth: { type: 'trust' },
    databases: { app: { host, iam: 'dsql', user: 'admin', tlsMode: 'verify-full' } },
    pooling: { poolSize: 1_000, serverLifetime: '60s' },
  };
  const { config } = loadConfig({ configFile: configFile(tree), folder: tmpdir() });
  expect(idsOf(configFindings(config))).toContain('lifetime_exceeds_rate');
});

test('headgate doctor finds pins, waiting clients and a pause on the console of a pooler, and nothing on one that is well', async () => {
  const pooler = await startTestPooler(db, {
    auth: { type: 'trust' },
    admin: { adminUsers: ['console'] },
    pooling: { poolSize: 1 },
  });
  const url = `postgres://console@127.0.0.1:${pooler.port}`;
  expect(await run('doctor', '--url', url)).toMatchObject({ code: 0, out: 'nothing wrong was found\n' });
  const [pinned, waiting] = [await pooler.connect(), await pooler.connect()];
  await pinned.query('listen something');
  const query = waiting.query('select 1');
  query.catch(() => {});
  await vi.waitFor(
    async () =>
      expect(jsonIds(await run('doctor', '--url', url, '--json'))).toEqual(['clients_wait', 'pins']),
    { timeout: 30_000, interval: 200 },
  );
  await pinned.end();
  await query;
  const admin = await pooler.connect({ user: 'console', database: 'pgbouncer' });
  await admin.query('pause');
  const found = await run('doctor', '--url', url, '--json');
  expect(found.code).toBe(1);
  expect(jsonIds(found)).toContain('pooler_paused');
  await admin.query('resume');
});

test('headgate doctor finds transactions whose clients do nothing, statements that fail or are slow, and limits that are near', async () => {
  const long = new Date(Date.now() - 60_000).toISOString().slice(0, 19).replace('T', ' ');
  const rows: Record<string, Record<string, string>[]> = {
    CLIENTS: [
      { id: '1', user: 'u', database: 'd', state: 'active', request_time: `${long} UTC` },
      { id: '2', user: 'u', database: 'd', state: 'active', request_time: `${long} UTC` },
    ],
    ACTIVE_QUERIES: [{ client: '2' }],
    PINS: [],
    QUERY_STATS: [
      { user: 'u', database: 'd', query: 'a', calls: '100', errors: '50', p99_time: '10' },
      { user: 'u', database: 'd', query: 'b', calls: '100', errors: '0', p99_time: '3000000' },
    ],
    CONFIG: [{ key: 'max_client_conn', value: '100' }],
    LISTS: [{ list: 'used_clients', items: '95' }],
    FLEET: [
      {
        server: 's',
        state: 'failing',
        rate_state: 'ok',
        active: '95',
        limit: '100',
        permit_wait_ms: '4000',
      },
    ],
  };
  const found = await consoleFindings({
    show: async (what) => rows[what],
    missing: new Set(),
    end: async () => {},
  });
  expect(idsOf(found)).toEqual([
    ...['client_limit_near', 'coordinator_failing', 'failing_statement', 'fleet_limit_near'],
    ...['idle_in_transaction', 'rate_too_slow', 'slow_statement'],
  ]);
});

test('headgate doctor walks the tree of troubleshooting on metrics of pools that are in trouble', async () => {
  const registry = new Registry();
  const pools = {
    failing: new PromisePool<object>({
      name: 'failing',
      connect: () => Promise.reject(new Error('no server')),
      reservoir: { targetReady: 4 },
      backoffBase: 1,
      backoffCap: 2,
    }),
    limited: new PromisePool<object>({
      name: 'limited',
      connect: async () => ({}),
      rateLimiter: new TokenBucket({ rate: 0.001, burst: 1 }),
      warnAfter: 0,
    }),
    crowded: new PromisePool<object>({ name: 'crowded', connect: async () => ({}), max: 1, warnAfter: 0 }),
    paused: new PromisePool<object>({ name: 'paused', connect: async () => ({}) }),
    well: new PromisePool<object>({ name: 'well', connect: async () => ({}) }),
  };
  for (const pool of Object.values(pools)) exposePool(pool, { registry });
  const before = readSamples(await registry.metrics());
  const held = [await pools.limited.acquire(), await pools.crowded.acquire()];
  const waiting = [pools.limited.acquire(), pools.crowded.acquire(), pools.failing.acquire()].map((one) =>
    one.catch(() => {}),
  );
  pools.paused.pause();
  (await pools.well.acquire()).release();
  await vi.waitFor(() => expect(pools.failing.stats().breaker).toBe('open'));
  const findings = metricFindings(new MetricLooks(before, readSamples(await registry.metrics()), 1_000));
  const idsBy = (name: string) => idsOf(findings.filter(({ finding }) => finding.includes(name)));
  expect(idsBy('failing')).toEqual([
    'breaker_open',
    'not_opened_connection_open',
    'reservoir_empty',
    'reservoir_low',
  ]);
  expect(idsBy('limited')).toEqual(['not_opened_rate_limit', 'rate_too_slow']);
  expect(idsBy('crowded')).toEqual(['pool_used_up']);
  expect(idsBy('paused')).toEqual(['paused']);
  expect(idsBy('well')).toEqual([]);
  for (const lease of held) lease.release();
  await Promise.all(Object.values(pools).map((pool) => pool.drain({ deadline: '10ms' })));
  await Promise.all(waiting);
});

test('headgate doctor reads metrics over HTTP, and says so where there are none', async () => {
  let text = 'headgate_pooler_state{state="paused"} 1\nheadgate_pooler_state{state="active"} 0\n';
  const server = createServer((_request, response) => response.end(text)).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
  const found = await run('doctor', '--url', url, '--for', '100ms');
  expect(found.code).toBe(1);
  expect(found.out).toContain('PROBLEM The pooler is paused. [pooler_paused]');
  text = 'up 1\n';
  expect(await run('doctor', '--url', url, '--for', '100ms')).toMatchObject({
    code: 1,
    err: expect.stringContaining('has no metrics of Headgate'),
  });
  expect(await run('doctor')).toMatchObject({ code: 2 });
});

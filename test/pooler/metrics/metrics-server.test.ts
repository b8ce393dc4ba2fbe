// What Prometheus gets from a real pooler in front of a real PostgreSQL, and what health checks are told.
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { hostname } from 'node:os';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { timeBounds } from '../../../src/observe/time-histogram.js';
import { ownErrorReasons } from '../../../src/pooler/clients/failure-words.js';
import { hostFamilies } from '../../../src/pooler/metrics/host-families.js';
import { poolFamilies, processFamilies } from '../../../src/pooler/metrics/pooler-families.js';
import { shareFamilies } from '../../../src/pooler/metrics/share-families.js';
import { startPooler } from '../../../src/pooler/process/pooler.js';
import { poolerConfig, startTestPooler, type TestPooler, treeFor } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { scrape } from './scrape.js';

/** The machine may be busy. */
const soon = { timeout: 10_000, interval: 20 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const metrics = { observability: { metricsListen: '127.0.0.1:0' } };

async function startMeasured(tree = {}): Promise<TestPooler & { port: number; metricsPort: number }> {
  const pooler = await startTestPooler(db, { ...metrics, ...tree });
  return { ...pooler, metricsPort: pooler.pooler.metricsPort as number };
}

const get = (port: number, path: string, method = 'GET'): Promise<Response> =>
  fetch(`http://127.0.0.1:${port}${path}`, { method });

/** The status, as `Host` says it. */
function statusFor(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/healthz', headers: { host }, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

test.each([
  ['localhost', 200],
  ['LOCALHOST:9127', 200],
  ['127.0.0.1', 200],
  ['127.0.0.1:9127', 200],
  ['[::1]:9127', 200],
  ['evil.example', 421],
  ['evil.example:9127', 421],
  [hostname(), 200],
  [`${hostname()}.evil.example`, 421],
  ['localhost.evil.example', 421],
  ['127.0.0.1.evil.example', 421],
  ['', 200],
  ['[evil]', 421],
])(
  'the port of metrics, asked under the name %j, answers with %i wherever it listens',
  async (host, status) => {
    const here = await startMeasured();
    expect(await statusFor(here.metricsPort, host)).toBe(status);
    const everywhere = await startMeasured({ observability: { metricsListen: '0.0.0.0:0' } });
    expect(await statusFor(everywhere.metricsPort, host)).toBe(status);
  },
);

test.each([
  [['pooler.example'], 'Pooler.Example:9127', 200],
  [['pooler.example'], 'other.pooler.example', 421],
  [['*.example'], 'pooler.example', 200],
  [['*.example'], 'a.pooler.example:80', 200],
  [['*.example'], 'example', 421],
  [['*.example'], 'evilexample', 421],
  [['*'], 'evil.example', 200],
  [['*evil'], 'evil', 421],
])(
  'the port of metrics with metricsAllowedHosts %j, asked under the name %j, answers with %i',
  async (metricsAllowedHosts, host, status) => {
    const { metricsPort } = await startMeasured({
      observability: { ...metrics.observability, metricsAllowedHosts },
    });
    expect(await statusFor(metricsPort, host)).toBe(status);
  },
);

test('on the loopback any number of half requests keeps no other request out', async () => {
  const { metricsPort } = await startMeasured();
  const half = await Promise.all(
    Array.from({ length: 150 }, async () => {
      const socket = connect(metricsPort, '127.0.0.1').on('error', () => {});
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
      return socket;
    }),
  );
  expect((await get(metricsPort, '/healthz')).status).toBe(200);
  expect((await get(metricsPort, '/metrics')).status).toBe(200);
  // The first connections are closed.
  await vi.waitFor(() => expect(half.filter(({ closed }) => !closed).length).toBeLessThan(100), soon);
  expect(half.slice(0, 50).every(({ closed }) => closed)).toBe(true);
});

test.each([
  [
    'logins at the page whose bodies are unfinished',
    'POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
  ],
  [
    'clients that ask for the metrics and read nothing',
    'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(12),
  ],
])('on the loopback GET /healthz and GET /metrics are answered beside 150 %s', async (_what, text) => {
  const { metricsPort } = await startMeasured();
  await Promise.all(
    Array.from({ length: 150 }, async () => {
      const socket = connect(metricsPort, '127.0.0.1').on('error', () => {});
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      socket.write(text);
    }),
  );
  expect((await get(metricsPort, '/healthz')).status).toBe(200);
  expect((await scrape(metricsPort)).value('headgate_pooler_connected_clients')).toBe(0);
});

test('GET /metrics has every metric that there is, each with its kind and a sentence, and labels of its pool', async () => {
  const { connect, metricsPort } = await startMeasured();
  const client = await connect();
  await client.query('select 1');
  await client.query('select 1/0').catch(() => {});
  const { types, helps, lines, value } = await scrape(metricsPort);
  const ownErrors = lines.filter(({ name }) => name === 'headgate_pooler_own_errors_total');
  expect(ownErrors.map(({ labels }) => labels['reason']).sort()).toEqual([...ownErrorReasons].sort());
  expect(ownErrors.every(({ value: count }) => count === 0)).toBe(true);
  expect(value('headgate_pooler_server_errors_total', { class: '22' })).toBe(1);
  for (const word of ['23', '40', '42', '53', '57', '58', 'XX'])
    expect(value('headgate_pooler_server_errors_total', { class: word })).toBe(0);
  const all = [...processFamilies, ...poolFamilies, ...shareFamilies, ...hostFamilies];
  // Nothing was swallowed.
  const isUnseen = /^headgate_pooler_swallowed_total$/;
  const seen = all.filter(({ name }) => !isUnseen.test(name));
  expect([...types]).toEqual(seen.map(({ name, type }) => [name, type]));
  expect([...helps]).toEqual(seen.map(({ name, help }) => [name, help]));
  const ofPools = new Set(poolFamilies.map(({ name }) => name));
  for (const { name, labels } of lines) {
    if (!ofPools.has(name.replace(/_(?:bucket|sum|count)$/, '')) && !ofPools.has(name)) continue;
    expect(labels).toMatchObject({ database: db.database, user: db.user });
  }
});

test('GET /metrics counts queries, transactions, bytes and errors, and measures how long they took', async () => {
  const { connect, metricsPort } = await startMeasured();
  const client = await connect();
  await client.query('begin');
  await client.query('select pg_sleep(0.02)');
  await client.query('commit');
  await client.query({ name: 'one', text: 'select $1::int', values: [1] });
  await client.query('select 1/0').catch(() => {});
  const of = await scrape(metricsPort);
  // The answer to BEGIN came from the pooler, and no server saw it as a query of the client.
  expect(of.value('headgate_pooler_queries_total')).toBe(4);
  expect(of.value('headgate_pooler_transactions_total')).toBe(3);
  expect(of.value('headgate_pooler_query_seconds_count')).toBe(4);
  expect(of.value('headgate_pooler_query_seconds_bucket', { le: '+Inf' })).toBe(4);
  expect(of.value('headgate_pooler_query_seconds_bucket', { le: '0.01' })).toBeLessThanOrEqual(3);
  expect(of.value('headgate_pooler_transaction_seconds_sum')).toBeGreaterThan(0.02);
  expect(of.value('headgate_pooler_server_errors_total', { class: '22' })).toBe(1);
  expect(of.value('headgate_pooler_received_bytes_total')).toBeGreaterThan(50);
  expect(of.value('headgate_pooler_sent_bytes_total')).toBeGreaterThan(50);
  expect(of.value('headgate_pooler_binds_total')).toBe(1);
  expect(of.value('headgate_pooler_client_statements')).toBe(1);
  expect(of.value('headgate_pooler_server_statements')).toBe(1);
  expect(of.value('headgate_pooler_opened_total')).toBe(1);
  expect(of.value('headgate_pooler_dial_seconds_count')).toBe(1);
});

test('GET /metrics has histograms whose buckets grow, up to the number of all', async () => {
  const { connect, metricsPort } = await startMeasured();
  const client = await connect();
  for (let i = 0; i < 20; i++) await client.query('select 1');
  const { lines } = await scrape(metricsPort);
  const buckets = lines.filter(({ name }) => name === 'headgate_pooler_query_seconds_bucket');
  expect(buckets.map(({ labels }) => labels.le)).toEqual([
    ...timeBounds.map((ms) => String(ms / 1_000)),
    '+Inf',
  ]);
  const values = buckets.map(({ value }) => value);
  expect(values).toEqual([...values].sort((one, other) => one - other));
  expect(values.at(-1)).toBe(20);
});

test('GET /metrics tells clients that wait from those that are idle, active and pinned, and why these are', async () => {
  const { connect, metricsPort } = await startMeasured({ pooling: { poolSize: 2 } });
  const [idle, active, pinned, waiting] = [
    await connect(),
    await connect(),
    await connect(),
    await connect(),
  ];
  await idle.query('select 1');
  await pinned.query('listen news');
  await active.query('begin; select 1');
  const waits = waiting.query('select 1');
  await vi.waitFor(async () => {
    const of = await scrape(metricsPort);
    expect(of.value('headgate_pooler_clients', { state: 'waiting' })).toBe(1);
  }, soon);
  const of = await scrape(metricsPort);
  expect(of.value('headgate_pooler_clients', { state: 'idle' })).toBe(1);
  expect(of.value('headgate_pooler_clients', { state: 'active' })).toBe(2);
  expect(of.value('headgate_pooler_clients_pinned', { reason: 'listen' })).toBe(1);
  expect(of.value('headgate_pooler_clients_pinned', { reason: 'advisory_lock' })).toBe(0);
  expect(of.value('headgate_pooler_servers', { state: 'active' })).toBe(2);
  expect(of.value('headgate_pooler_server_limit')).toBe(2);
  expect(of.value('headgate_pooler_connected_clients')).toBe(4);
  expect(of.value('headgate_pooler_longest_wait_seconds')).toBeGreaterThan(0);
  expect(of.value('headgate_pooler_class_demand', { class: 'regular' })).toBe(1);
  expect(of.value('headgate_pooler_class_demand', { class: 'reserved' })).toBe(2);
  const inUse = (word: string) => of.value('headgate_pooler_class_in_use', { class: word });
  expect([inUse('regular'), inUse('reserved')]).toEqual([0, 2]);
  expect(of.value('headgate_pooler_pools')).toBe(1);
  expect(of.value('headgate_pooler_class_waits_total', { class: 'regular' })).toBeGreaterThan(0);
  expect(of.value('headgate_pooler_class_capacity', { class: 'reserved' })).toBeLessThanOrEqual(2);
  expect(of.value('headgate_pooler_waiting_for_permit')).toBe(0);
  expect(of.value('headgate_pooler_permit_waits_total')).toBe(0);
  const answered = of.value('headgate_pooler_last_answer_time_seconds');
  expect(Math.abs(Date.now() / 1_000 - answered)).toBeLessThan(60);
  await active.query('commit');
  await waits;
  expect((await scrape(metricsPort)).value('headgate_pooler_wait_seconds_count')).toBeGreaterThan(0);
});

test('GET /metrics counts what the pooler itself tells clients, by the reason', async () => {
  const { connect, metricsPort } = await startMeasured({
    pooling: { poolSize: 1 },
    timeouts: { queryWaitTimeout: '1s' },
  });
  const [holder, late] = [await connect(), await connect()];
  await holder.query('begin; select 1');
  await expect(late.query('select 1')).rejects.toMatchObject({ code: '53300' });
  const of = await scrape(metricsPort);
  const labels = { class: '53', reason: 'query_wait_timeout' };
  expect(of.value('headgate_pooler_own_errors_total', labels)).toBe(1);
  expect(of.value('headgate_pooler_wait_timeouts_total')).toBe(1);
  const within = (le: string): number => of.value('headgate_pooler_wait_seconds_bucket', { le });
  expect(within('+Inf') - within('0.5')).toBe(1);
});

test('GET /metrics counts clients that were refused, by the reason and not by the name that they gave', async () => {
  const { pooler, metricsPort, port } = await startMeasured({
    auth: { type: 'scram-sha-256' },
    users: { alice: { password: 'right' } },
    limits: { maxClientConn: 1 },
    databases: { [db.database]: { host: db.host, port: db.port, user: db.user, password: db.password } },
  });
  const attempt = async (options: pg.ClientConfig): Promise<pg.Client> => {
    const client = new pg.Client({ host: '127.0.0.1', port, database: db.database, ...options });
    client.on('error', () => {});
    onTestFinished(() => client.end().catch(() => {}));
    await client.connect();
    return client;
  };
  await expect(attempt({ user: 'alice', password: 'wrong' })).rejects.toThrow('authentication failed');
  await expect(attempt({ user: 'alice', password: 'right', database: 'none' })).rejects.toThrow('none');
  await attempt({ user: 'alice', password: 'right' });
  await expect(attempt({ user: 'alice', password: 'right' })).rejects.toThrow('too many clients');
  const of = await scrape(metricsPort);
  const failures = (reason: string): number => of.value('headgate_pooler_login_failures_total', { reason });
  expect(['wrong_password', 'no_database', 'too_many_clients', 'not_allowed'].map(failures)).toEqual([
    1, 1, 1, 0,
  ]);
  expect(of.value('headgate_pooler_logins_total')).toBe(1);
  expect(of.value('headgate_pooler_client_limit')).toBe(1);
  expect(of.lines.filter(({ labels }) => labels.user === 'alice')).toEqual([]);
  expect(pooler.stats().clients).toBe(1);
});

test('GET /metrics keeps what was counted when all server connections are replaced', async () => {
  const { connect, metricsPort } = await startMeasured({ admin: { adminUsers: [db.user] } });
  const client = await connect();
  const admin = await connect({ database: 'headgate' });
  for (let i = 0; i < 3; i++) await client.query('select 1');
  const before = (await scrape(metricsPort)).value('headgate_pooler_assignments_total');
  await admin.query('RECONNECT');
  await client.query('select 1');
  const of = await scrape(metricsPort);
  expect(of.value('headgate_pooler_assignments_total')).toBe(before + 1);
  expect(of.value('headgate_pooler_opened_total')).toBe(2);
});

test('GET /metrics shows no secret', async () => {
  const secret = 'very-secret-indeed';
  const { connect, metricsPort } = await startMeasured({
    auth: { type: 'scram-sha-256' },
    users: { alice: { password: secret } },
    databases: { [db.database]: { host: db.host, port: db.port, user: db.user, password: db.password } },
  });
  await (await connect({ user: 'alice', password: secret })).query('select 1');
  await expect(connect({ user: 'alice', password: `${secret}-not` })).rejects.toThrow();
  expect(await (await get(metricsPort, '/metrics')).text()).not.toContain(secret);
});

test('GET /healthz is 200 while clients are served, and 503 while the pooler is paused or goes', async () => {
  const { connect, metricsPort, pooler } = await startMeasured({ admin: { adminUsers: [db.user] } });
  const admin = await connect({ database: 'headgate' });
  const health = async (): Promise<string> => {
    const response = await get(metricsPort, '/healthz');
    return `${response.status} ${(await response.text()).trim()}`;
  };
  expect(await health()).toBe('200 ok');
  await admin.query('PAUSE');
  expect(await health()).toBe('503 paused');
  await admin.query('RESUME');
  expect(await health()).toBe('200 ok');
  const busy = await connect();
  await busy.query('begin; select 1');
  const over = pooler.shutdown({ deadlineMs: 60_000 });
  expect(await health()).toBe('503 shutting down');
  await busy.query('commit').catch(() => {});
  await over;
  await expect(health()).rejects.toThrow();
});

test('the port of metrics answers other paths with 404 and other methods with 405', async () => {
  const { metricsPort } = await startMeasured({
    observability: { metricsListen: '127.0.0.1:0', page: false },
  });
  expect((await get(metricsPort, '/')).status).toBe(404);
  expect((await get(metricsPort, '/metrics/')).status).toBe(404);
  const refused = await get(metricsPort, '/metrics', 'POST');
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  const head = await get(metricsPort, '/metrics', 'HEAD');
  expect([head.status, await head.text()]).toEqual([200, '']);
  expect((await get(metricsPort, '/healthz?verbose=1')).status).toBe(200);
});

test('the port of metrics is of this machine alone where only a number is given', () => {
  const config = poolerConfig(treeFor(db, { observability: { metricsListen: 9127 } }));
  expect(config.observability.metricsListen).toEqual({ host: '127.0.0.1', port: 9127 });
});

test('the port of metrics is not there unless it is asked for', async () => {
  const { pooler } = await startTestPooler(db);
  expect(pooler.metricsPort).toBeUndefined();
});

test('the port of metrics that is taken keeps the pooler from starting, and the error says which it is', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as { port: number };
  const config = poolerConfig(treeFor(db, { observability: { metricsListen: port } }));
  await expect(startPooler(config)).rejects.toThrow(`Metrics can't be had at 127.0.0.1:${port}: `);
});

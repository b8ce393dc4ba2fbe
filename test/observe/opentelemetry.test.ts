/** Pools as OpenTelemetry metrics: the names of the conventions, the right numbers, and one pool told from another. */
import { channel } from 'node:diagnostics_channel';
import { readdir, readFile } from 'node:fs/promises';
import { type Attributes, type Meter, metrics } from '@opentelemetry/api';
import {
  DataPointType,
  type Histogram,
  MeterProvider,
  type MetricData,
  MetricReader,
} from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { PromisePool, type PromisePoolOptions } from '../../src/engine.js';
import { Pool } from '../../src/index.js';
import { transactionMetricTable } from '../../src/observe/dsql-metric-table.js';
import { poolMetricTable } from '../../src/observe/pool-metric-table.js';
import { type ObservablePool, type ObserveOptions, observePool } from '../../src/opentelemetry.js';
import { rejectionOf } from '../support/outcomes.js';
import { withDatabase } from '../support/postgres.js';

class TestReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

let reader: TestReader;
let provider: MeterProvider;
let meter: Meter;
const cleanUps: (() => unknown)[] = [];

beforeEach(() => {
  reader = new TestReader();
  provider = new MeterProvider({ readers: [reader] });
  meter = provider.getMeter('test');
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await provider.shutdown();
});

function observe(pool: ObservablePool, options: ObserveOptions = {}) {
  const observation = observePool(pool, { meter, ...options });
  cleanUps.push(() => observation.stop());
  return observation;
}

function newPool(options: Partial<PromisePoolOptions<object>> = {}): PromisePool<object> {
  const pool = new PromisePool<object>({ connect: async () => ({}), max: 3, ...options });
  cleanUps.push(() => pool.drain({ deadline: 1 }));
  return pool;
}

async function collect(): Promise<Map<string, MetricData>> {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  return new Map(
    resourceMetrics.scopeMetrics.flatMap((scope) =>
      scope.metrics.map((metric) => [metric.descriptor.name, metric]),
    ),
  );
}

/** The value of the one data point that has at least these attributes. */
async function reading(name: string, attributes: Attributes = {}): Promise<unknown> {
  const points = (await collect()).get(name)?.dataPoints ?? [];
  const matching = points.filter((point) =>
    Object.entries(attributes).every(([key, value]) => point.attributes[key] === value),
  );
  expect(matching.length, `${name} ${JSON.stringify(attributes)}`).toBeLessThanOrEqual(1);
  return matching[0]?.value;
}

function publish(name: string, message: object): void {
  channel(`headgate:pool:${name}`).publish({ poolName: 'x', connection: {}, connectionId: 1, ...message });
}

const poolNamed = (name: string) => ({ 'db.client.connection.pool.name': name });

describe('the conventions', () => {
  const level = { dataPointType: DataPointType.SUM, isMonotonic: false };
  const count = { dataPointType: DataPointType.SUM, isMonotonic: true };
  const histogram = { dataPointType: DataPointType.HISTOGRAM };

  test.each([
    ['count', '{connection}', level],
    ['idle.max', '{connection}', level],
    ['idle.min', '{connection}', level],
    ['max', '{connection}', level],
    ['pending_requests', '{request}', level],
    ['timeouts', '{timeout}', count],
    ['create_time', 's', histogram],
    ['wait_time', 's', histogram],
    ['use_time', 's', histogram],
  ])('the conventions are kept by db.client.connection.%s', async (name, unit, kind) => {
    const pool = newPool({ name: 'orders' });
    observe(pool);
    (await pool.acquire()).release();
    const metric = (await collect()).get(`db.client.connection.${name}`);
    expect(metric).toMatchObject({ ...kind, descriptor: { unit } });
    expect(metric?.descriptor.description).not.toBe('');
    for (const point of metric?.dataPoints ?? []) expect(point.attributes).toMatchObject(poolNamed('orders'));
    expect(metric?.dataPoints.length).toBe(name === 'count' ? 2 : 1);
  });

  test('the conventions ask for the attributes that the program adds as well', async () => {
    observe(newPool(), { attributes: { 'db.namespace': 'shop' } });
    expect(await reading('db.client.connection.max', { 'db.namespace': 'shop', ...poolNamed('pool') })).toBe(
      3,
    );
  });
});

test('the numbers are those of the moment they are asked for', async () => {
  const pool = newPool({ max: 2 });
  observe(pool);
  const state = (name: string) =>
    reading('db.client.connection.count', { 'db.client.connection.state': name });
  expect([await state('idle'), await state('used')]).toEqual([0, 0]);

  const leases = [await pool.acquire(), await pool.acquire()];
  const waiting = pool.acquire();
  expect([await state('idle'), await state('used')]).toEqual([0, 2]);
  expect(await reading('db.client.connection.pending_requests')).toBe(1);

  for (const lease of leases) lease.release();
  (await waiting).release();
  expect([await state('idle'), await state('used')]).toEqual([2, 0]);
  expect(await reading('db.client.connection.pending_requests')).toBe(0);

  pool.resize(1);
  expect(await reading('db.client.connection.max')).toBe(1);
  expect(await reading('db.client.connection.idle.max')).toBe(1);
});

test('the numbers tell the minimum of idle connections', async () => {
  const stats = newPool().stats();
  observe({ name: 'with a minimum', stats: () => ({ ...stats, minIdle: 2 }) });
  expect(await reading('db.client.connection.idle.min')).toBe(2);
});

test('the numbers include callers that waited in vain', async () => {
  const pool = newPool({ max: 1 });
  observe(pool);
  const lease = await pool.acquire();
  await rejectionOf(pool.acquire({ timeout: 1 }));
  await rejectionOf(pool.acquire({ timeout: 1 }));
  expect(await reading('db.client.connection.timeouts')).toBe(2);
  lease.release();
});

test('the numbers give times in seconds', async () => {
  const pool = newPool();
  observe(pool);
  publish('opened', { pool, dialMs: 250 });
  publish('acquired', { pool, waitMs: 40 });
  publish('acquired', { pool, waitMs: 60 });
  publish('released', { pool, useMs: 1500 });
  expect(await reading('db.client.connection.create_time')).toMatchObject({ count: 1, sum: 0.25 });
  expect(await reading('db.client.connection.wait_time')).toMatchObject({ count: 2, sum: 0.1, max: 0.06 });
  expect(await reading('db.client.connection.use_time')).toMatchObject({ count: 1, sum: 1.5 });
});

test('the numbers sort times into boundaries that tell a millisecond from a second', async () => {
  const pool = newPool();
  observe(pool);
  for (const waitMs of [0, 1, 1000, 60_000]) publish('acquired', { pool, waitMs });
  const { buckets } = (await reading('db.client.connection.wait_time')) as Histogram;
  expect(buckets.counts.filter((inBucket) => inBucket > 0)).toEqual([1, 1, 1, 1]);
});

test('the numbers come from the checkouts themselves', async () => {
  const pool = newPool();
  observe(pool);
  for (let turn = 0; turn < 5; turn++) (await pool.acquire()).release();
  expect(await reading('db.client.connection.create_time')).toMatchObject({ count: 1 });
  expect(await reading('db.client.connection.wait_time')).toMatchObject({ count: 5 });
  expect(await reading('db.client.connection.use_time')).toMatchObject({ count: 5 });
});

test("Headgate's own numbers tell why connections were discarded, each reason with a count", async () => {
  const pool = newPool({ maxUses: 1 });
  observe(pool);
  (await pool.acquire()).release();
  (await pool.acquire()).release(new Error('no good'));
  (await pool.acquire()).release(new Error('no good either'));
  const reason = (word: string) =>
    reading('headgate.connection.discards', { 'headgate.discard.reason': word });
  const counts = [
    await reason('max_uses'),
    await reason('released_with_error'),
    await reason('idle_timeout'),
  ];
  expect(counts).toEqual([1, 2, 0]);
});

test("Headgate's own numbers count what is being opened and closed within the limit", async () => {
  let close = (): void => {};
  const closed = new Promise<void>((resolve) => {
    close = resolve;
  });
  const pool = newPool({ max: 2, close: () => closed });
  observe(pool);
  (await pool.acquire()).release(new Error('no good'));
  const lease = await pool.acquire();
  expect(await reading('headgate.connection.closing')).toBe(1);
  expect(await reading('headgate.connection.limit')).toBe(2);
  expect(await reading('headgate.connection.peak')).toBe(2);
  close();
  lease.release();
});

test("Headgate's own numbers show a breaker that failed dials have opened", async () => {
  const connect = () => Promise.reject(new Error('no server'));
  const pool = newPool({ connect, onDialFailure: 'reject', breakerThreshold: 1 });
  observe(pool);
  await rejectionOf(pool.acquire());
  // All at one moment: an open breaker is half_open soon.
  const points = (await collect()).get('headgate.breaker.state')?.dataPoints ?? [];
  const states = new Map(
    points.map(({ attributes, value }) => [attributes['headgate.breaker.state'], value]),
  );
  expect(states.get('closed')).toBe(0);
  expect(Number(states.get('open')) + Number(states.get('half_open'))).toBe(1);
  expect(await reading('headgate.connection.dial_failures')).toBe(1);
});

test("Headgate's own numbers tell what kept connections from being opened, each cause with a count, and who found nothing ready", async () => {
  const connect = () => Promise.reject(new Error('no server'));
  const pool = newPool({ connect, onDialFailure: 'reject' });
  observe(pool);
  await rejectionOf(pool.acquire());
  const cause = (word: string) =>
    reading('headgate.connection.refill_failures', { 'headgate.refill.cause': word });
  expect([await cause('connection_open'), await cause('lease_acquire')]).toEqual([1, 0]);
  expect(await reading('headgate.connection.found_empty')).toBe(1);
  expect(await reading('headgate.connection.leases')).toBe(0);
});

test('a pool with a reservoir tells its target, its watermark and whether it is filled, and another pool does not', async () => {
  const pool = newPool({
    name: 'kept',
    max: 5,
    reservoir: { targetReady: 3, lowWatermark: 2 },
    startJitter: 0,
  });
  observe(pool);
  observe(newPool({ name: 'plain' }));
  await vi.waitFor(() => expect(pool.stats().reservoir?.isFilled).toBe(true), { timeout: 20_000 });
  const of = (name: string, pool: string) => reading(`headgate.${name}`, poolNamed(pool));
  expect(await of('reservoir.target', 'kept')).toBe(3);
  expect(await of('reservoir.low_watermark', 'kept')).toBe(2);
  expect(await of('reservoir.filled', 'kept')).toBe(1);
  expect(await of('connection.opened', 'kept')).toBeGreaterThanOrEqual(3);
  expect(await of('connection.top_ups', 'kept')).toBe(0);
  expect(await of('reservoir.target', 'plain')).toBeUndefined();
  expect(await of('connection.opened', 'plain')).toBe(0);
});

test("Headgate's own measurements have the unit and the description of the declared metric", async () => {
  const pool = newPool({});
  observe(pool);
  const about = { pool, operation: 'order', errorClass: 'retryable' };
  for (const event of ['conflict', 'retry', 'exhausted', 'failed'])
    channel(`headgate:transaction:${event}`).publish({ ...about, attempt: 1, backoffMs: 1, durationMs: 2 });
  const all = await collect();
  const declared = {
    'headgate.connection.limit': poolMetricTable.headgate_pool_limit,
    'headgate.connection.permit_wait_time': poolMetricTable.headgate_pool_permit_wait_seconds_total,
    'headgate.connection.discards': poolMetricTable.headgate_pool_discards_total,
    'headgate.pool.state': poolMetricTable.headgate_pool_state,
    'headgate.transaction.duration': transactionMetricTable.dsql_tx_latency,
    'headgate.transaction.backoff': transactionMetricTable.dsql_tx_backoff,
    'headgate.transaction.errors': transactionMetricTable.dsql_tx_error_class_total,
    'headgate.transaction.conflicts': transactionMetricTable.dsql_tx_conflict_total,
    'headgate.transaction.retries': transactionMetricTable.dsql_tx_retry_total,
    'headgate.transaction.exhausted': transactionMetricTable.dsql_tx_exhausted_total,
  };
  for (const [name, { unit, help: description }] of Object.entries(declared))
    expect(all.get(name)?.descriptor).toMatchObject({ unit, description });
});

test('two pools are told apart by their names', async () => {
  const [orders, users] = [newPool({ name: 'orders', max: 2 }), newPool({ name: 'users', max: 5 })];
  observe(orders);
  observe(users);
  (await orders.acquire()).release();
  expect(await reading('db.client.connection.max', poolNamed('orders'))).toBe(2);
  expect(await reading('db.client.connection.max', poolNamed('users'))).toBe(5);
  expect(await reading('db.client.connection.wait_time', poolNamed('orders'))).toMatchObject({ count: 1 });
  expect(await reading('db.client.connection.wait_time', poolNamed('users'))).toBeUndefined();
});

test('two pools of the same name are not counted as one', async () => {
  const names = [2, 5].map((max) => observe(newPool({ name: 'same', max })).poolName);
  expect(names).toEqual(['same', 'same#2']);
  expect(await reading('db.client.connection.max', poolNamed('same'))).toBe(2);
  expect(await reading('db.client.connection.max', poolNamed('same#2'))).toBe(5);
});

test('two pools leave their names to others when they are no longer observed', async () => {
  const first = observe(newPool({ name: 'same' }));
  const max = () => reading('db.client.connection.max', poolNamed('same'));
  expect(await max()).toBe(3);
  first.stop();
  expect(observe(newPool({ name: 'same', max: 5 })).poolName).toBe('same');
  expect([await max(), await max()]).toEqual([5, 5]);
});

test('an observation ends with stop(), which may be called twice', async () => {
  const [stopped, observed] = [newPool({ name: 'stopped' }), newPool({ name: 'observed' })];
  const observation = observe(stopped);
  observe(observed);
  expect(await reading('db.client.connection.max', poolNamed('stopped'))).toBe(3);
  observation.stop();
  observation.stop();
  (await stopped.acquire()).release();
  (await observed.acquire()).release();
  expect(await reading('db.client.connection.max', poolNamed('stopped'))).toBe(0);
  stopped.resize(7);
  expect(await reading('db.client.connection.max', poolNamed('stopped'))).toBe(0);
  expect(await reading('db.client.connection.wait_time', poolNamed('stopped'))).toBeUndefined();
  expect(await reading('db.client.connection.max', poolNamed('observed'))).toBe(3);
  expect(await reading('db.client.connection.wait_time', poolNamed('observed'))).toMatchObject({
    count: 1,
  });
});

test('an observation leaves no subscription behind', () => {
  const channels = ['opened', 'acquired', 'released'].map((name) => channel(`headgate:pool:${name}`));
  const listening = () => channels.map((each) => each.hasSubscribers);
  const observations = [observe(newPool()), observe(newPool())];
  expect(listening()).toEqual([true, true, true]);
  for (const observation of observations) observation.stop();
  expect(listening()).toEqual([false, false, false]);
});

test('an observation of one pool by two meters gives both the same', async () => {
  const pool = newPool({ name: 'both' });
  const other = new TestReader();
  const second = new MeterProvider({ readers: [other] });
  const first = observe(pool);
  expect(observe(pool, { meter: second.getMeter('second') }).poolName).toBe('both');
  first.stop();
  (await pool.acquire()).release();
  const { resourceMetrics } = await other.collect();
  const collected = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  const waits = collected.find(({ descriptor }) => descriptor.name === 'db.client.connection.wait_time');
  expect(waits?.dataPoints).toMatchObject([{ value: { count: 1 } }]);
  await second.shutdown();
});

test('an observation uses the global provider when it is given no meter', async () => {
  metrics.setGlobalMeterProvider(provider);
  cleanUps.push(() => metrics.disable());
  observe(newPool({ name: 'global' }), { meter: undefined });
  expect(await reading('db.client.connection.max', poolNamed('global'))).toBe(3);
});

test('an observation serves the drop-in on a real PostgreSQL', async () => {
  const db = await withDatabase();
  cleanUps.push(() => db.drop());
  const pool = new Pool({ connectionString: db.url, max: 2, name: 'postgres' });
  cleanUps.push(() => pool.end());
  observe(pool);
  const count = (state: string) =>
    reading('db.client.connection.count', { 'db.client.connection.state': state });
  const clients = [await pool.connect(), await pool.connect()];
  expect([await count('idle'), await count('used')]).toEqual([0, 2]);
  for (const client of clients) client.release();
  await pool.query('select 1');
  expect([await count('idle'), await count('used')]).toEqual([2, 0]);
  const times = (name: string) => reading(`db.client.connection.${name}`, poolNamed('postgres'));
  expect(await times('create_time')).toMatchObject({ count: 2 });
  expect(await times('wait_time')).toMatchObject({ count: 3 });
  expect(await times('use_time')).toMatchObject({ count: 3 });
});

test('an observation is the only reason to load OpenTelemetry', async () => {
  const root = new URL('../../src/', import.meta.url);
  const files = (await readdir(root, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, root), 'utf8')));
  const importers = files.filter((_, index) => texts[index]?.includes("from '@opentelemetry/"));
  expect(importers.every((file) => file.startsWith('observe'))).toBe(true);
  expect(importers).not.toEqual([]);
});

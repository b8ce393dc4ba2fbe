/** Pools as Prometheus metrics: the right numbers under the right names, and counters that only grow. */
import { channel } from 'node:diagnostics_channel';
import { readdir, readFile } from 'node:fs/promises';
import { AggregatorRegistry, Counter, type OpenMetricsContentType, Registry, register } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { discardReasons, refillCauses } from '../../src/core/reasons.js';
import { PromisePool, type PromisePoolOptions } from '../../src/engine.js';
import { Pool } from '../../src/index.js';
import { metricFamilies } from '../../src/observe/exposed-pools.js';
import {
  type ExposeOptions,
  exposePool,
  type MetricRegistry,
  type ObservedPool,
  type RegisteredMetric,
} from '../../src/prometheus.js';
import { rejectionOf } from '../support/outcomes.js';
import { withDatabase } from '../support/postgres.js';

let registry: Registry;
const cleanUps: (() => unknown)[] = [];

beforeEach(() => {
  registry = new Registry();
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

function expose(pool: ObservedPool, options: ExposeOptions = {}) {
  const exposure = exposePool(pool, { registry, ...options });
  cleanUps.push(() => exposure.stop());
  return exposure;
}

function newPool(options: Partial<PromisePoolOptions<object>> = {}): PromisePool<object> {
  const pool = new PromisePool<object>({ connect: async () => ({}), max: 3, ...options });
  cleanUps.push(() => pool.drain({ deadline: 1 }));
  return pool;
}

/** All series as a scrape has them: `name{label="value",...}` with the labels in alphabetical order. */
async function scrape(from: { metrics(): Promise<string> } = registry): Promise<Map<string, number>> {
  const lines = (await from.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const series = lines.map((line): [string, number] => {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    return [
      `${name}{${labels
        .split(/,(?=\w+=")/)
        .sort()
        .join(',')}}`,
      Number(value),
    ];
  });
  expect(series.length, 'each series is there once').toBe(new Set(series.map(([name]) => name)).size);
  return new Map(series);
}

function publish(name: string, message: object): void {
  channel(`headgate:pool:${name}`).publish({ poolName: 'x', connection: {}, connectionId: 1, ...message });
}

test('a pool is read at the moment of the scrape', async () => {
  const pool = newPool({ name: 'orders', max: 2 });
  expose(pool, { service: 'shop' });
  const own = '{pool="orders",service="shop"}';
  const doing = (series: Map<string, number>, state: string) =>
    series.get(`headgate_pool_connections{pool="orders",service="shop",state="${state}"}`);
  const leases = [await pool.acquire(), await pool.acquire()];
  const waiting = pool.acquire();
  const busy = await scrape();
  expect([doing(busy, 'in_use'), doing(busy, 'idle'), busy.get(`headgate_pool_waiting${own}`)]).toEqual([
    2, 0, 1,
  ]);

  for (const lease of leases) lease.release();
  (await waiting).release();
  const quiet = await scrape();
  expect([doing(quiet, 'in_use'), doing(quiet, 'idle'), quiet.get(`headgate_pool_waiting${own}`)]).toEqual([
    0, 2, 0,
  ]);
  expect(quiet.get(`headgate_pool_checkouts_total${own}`)).toBe(3);
  expect(quiet.get(`headgate_pool_waits_total${own}`)).toBe(3);
  expect(quiet.get(`headgate_pool_limit${own}`)).toBe(2);
  expect(quiet.get(`headgate_pool_peak${own}`)).toBe(2);
});

test('a pool has the same numbers under the names that dashboards for Aurora DSQL ask for', async () => {
  const pool = newPool({ max: 2 });
  expose(pool, { service: 'history' });
  const leases = [await pool.acquire(), await pool.acquire()];
  await rejectionOf(pool.acquire({ timeout: 1 }));
  leases[0]?.release();
  const series = await scrape();
  const of = (name: string) => series.get(`dsql_${name}{service="history"}`);
  expect(
    ['pool_max_open', 'pool_open', 'pool_in_use', 'pool_idle', 'pool_keeper_current_size'].map(of),
  ).toEqual([2, 2, 1, 1, 2]);
  expect(of('pool_wait_total')).toBe(3);
  expect(of('pool_keeper_topup_total')).toBe(0);
  leases[1]?.release();
});

test('a pool counts why connections were discarded, for both names', async () => {
  const pool = newPool({ maxUses: 1, idleTimeout: 1 });
  expose(pool, { service: 'shop' });
  (await pool.acquire()).release();
  (await pool.acquire()).release(new Error('no good'));
  const series = await scrape();
  const discards = (reason: string) =>
    series.get(`headgate_pool_discards_total{pool="pool",reason="${reason}",service="shop"}`);
  expect([discards('max_uses'), discards('released_with_error'), discards('broken')]).toEqual([1, 1, 0]);
  expect(series.get('dsql_db_closed_max_lifetime_total{service="shop"}')).toBe(0);
});

test('a pool shows a breaker that failed dials have opened, and what was in the way', async () => {
  const connect = () => Promise.reject(new Error('no server'));
  const pool = newPool({
    connect,
    onDialFailure: 'reject',
    breakerThreshold: 1,
  });
  expose(pool);
  await rejectionOf(pool.acquire());
  const series = await scrape();
  const breaker = (state: string) =>
    series.get(`headgate_pool_breaker{pool="pool",service="pool",state="${state}"}`);
  expect(breaker('closed')).toBe(0);
  expect(Number(breaker('open')) + Number(breaker('half_open'))).toBe(1);
  expect(
    series.get('headgate_pool_refill_failures_total{cause="connection_open",pool="pool",service="pool"}'),
  ).toBe(1);
  expect(series.get('headgate_pool_dial_failures_total{pool="pool",service="pool"}')).toBe(1);
});

test('a pool has every word as a label from the first scrape on, at zero', async () => {
  expose(newPool({ reservoir: { targetReady: 1 }, max: 1, startJitter: '1h' }), { service: 'new' });
  const series = await scrape();
  const zero = (name: string) => expect([name, series.get(name)]).toEqual([name, 0]);
  for (const reason of discardReasons) {
    zero(`headgate_pool_discards_total{pool="pool",reason="${reason}",service="new"}`);
    zero(`dsql_reservoir_discards_total{reason="${reason}",service="new"}`);
  }
  for (const cause of refillCauses) {
    zero(`headgate_pool_refill_failures_total{cause="${cause}",pool="pool",service="new"}`);
    zero(`dsql_reservoir_refill_failures_total{reason="${cause}",service="new"}`);
  }
  zero('headgate_pool_wait_seconds_count{pool="pool",service="new"}');
  zero('dsql_reservoir_checkout_latency_milliseconds_bucket{le="1",service="new"}');
});

test('a pool has the label service of the program, else its own name, and the labels that the program adds', async () => {
  expose(newPool({ name: 'orders' }), { labels: { region: 'eu"west' } });
  const series = await scrape();
  expect(series.get('dsql_pool_max_open{region="eu\\"west",service="orders"}')).toBe(3);
  expect(series.get('headgate_pool_limit{pool="orders",region="eu\\"west",service="orders"}')).toBe(3);
});

test('a reservoir has its size and its target, and tells when its first fill is over', async () => {
  const pool = newPool({ max: 5, reservoir: { targetReady: 3, lowWatermark: 2 }, name: 'r' });
  expose(pool, { service: 'history' });
  const own = '{pool="r",service="history"}';
  const before = await scrape();
  expect([
    before.get(`headgate_pool_filled${own}`),
    before.get('dsql_reservoir_size{service="history"}'),
  ]).toEqual([0, 0]);
  expect(before.get(`headgate_pool_low_watermark${own}`)).toBe(2);
  await pool.ready(3);
  const lease = await pool.acquire();
  const after = await scrape();
  const of = (name: string) => after.get(`dsql_reservoir_${name}{service="history"}`);
  expect(after.get(`headgate_pool_filled${own}`)).toBe(1);
  expect([of('target'), of('checkouts_total'), of('empty_total')]).toEqual([3, 1, 0]);
  expect([of('checkout_latency_seconds_count'), of('checkout_latency_milliseconds_count')]).toEqual([1, 1]);
  expect(of('refills_total')).toBeGreaterThanOrEqual(3);
  lease.release();
});

test('a reservoir counts a caller who finds nothing ready', async () => {
  const pool = newPool({ max: 1, reservoir: true });
  expose(pool);
  await pool.ready(1);
  const lease = await pool.acquire();
  await rejectionOf(pool.acquire({ timeout: 1 }));
  expect((await scrape()).get('dsql_reservoir_empty_total{service="pool"}')).toBe(1);
  lease.release();
});

test('a reservoir counts what came back too much, and what reached its end, as closed for that', async () => {
  const pool = newPool({ max: 3, reservoir: { targetReady: 1 } });
  expose(pool);
  await pool.ready(1);
  const leases = [await pool.acquire(), await pool.acquire({ timeout: '5s' })];
  await pool.ready(3);
  for (const lease of leases) lease.release();
  const series = await scrape();
  const full = pool.stats().totals.discarded.reservoir_full;
  expect(full).toBeGreaterThan(0);
  expect(series.get('dsql_reservoir_discards_total{reason="reservoir_full",service="pool"}')).toBe(full);
  expect(series.get('dsql_db_closed_max_idle_total{service="pool"}')).toBe(full);
});

test('a reservoir is what the metrics of reservoirs are for: other pools do not have them', async () => {
  expose(newPool());
  const names = [...(await scrape()).keys()];
  expect(names.filter((name) => /dsql_reservoir|filled|low_watermark/.test(name))).toEqual([]);
});

test('times are in seconds, and in milliseconds where the name says so', async () => {
  const pool = newPool({ reservoir: { targetReady: 1 }, startJitter: '1h' });
  expose(pool);
  publish('opened', { pool, dialMs: 250 });
  publish('acquired', { pool, waitMs: 0 });
  publish('acquired', { pool, waitMs: 60 });
  publish('timeout', { pool, waitMs: 100 });
  publish('released', { pool, useMs: 1_500 });
  const series = await scrape();
  const own = '{pool="pool",service="pool"}';
  const of = (name: string) => [series.get(`${name}_sum${own}`), series.get(`${name}_count${own}`)];
  const old = (name: string) =>
    ['sum', 'count'].map((part) => series.get(`dsql_${name}_${part}{service="pool"}`));
  expect(of('headgate_pool_dial_seconds')).toEqual([0.25, 1]);
  expect(of('headgate_pool_wait_seconds')).toEqual([0.06, 2]);
  expect(of('headgate_pool_use_seconds')).toEqual([1.5, 1]);
  expect(old('reservoir_checkout_latency_seconds')).toEqual([0.06, 2]);
  expect(old('reservoir_checkout_latency_milliseconds')).toEqual([60, 2]);
  expect(old('pool_wait_duration')).toEqual([0.16, 2]);
  expect(old('pool_wait_duration_milliseconds')).toEqual([160, 2]);
  const upTo = (le: string) =>
    series.get(`headgate_pool_wait_seconds_bucket{le="${le}",pool="pool",service="pool"}`);
  expect(['0.0001', '0.05', '0.1', '60', '+Inf'].map(upTo)).toEqual([1, 1, 2, 2, 2]);
  expect(series.get('dsql_reservoir_checkout_latency_milliseconds_bucket{le="0.1",service="pool"}')).toBe(1);
});

test('times come from the checkouts themselves', async () => {
  const pool = newPool();
  expose(pool);
  for (let turn = 0; turn < 5; turn++) (await pool.acquire()).release();
  const series = await scrape();
  const count = (name: string) =>
    series.get(`headgate_pool_${name}_seconds_count{pool="pool",service="pool"}`);
  expect([count('dial'), count('wait'), count('use')]).toEqual([1, 5, 5]);
});

test('several pools share the metrics of a registry, and are told apart by their names', async () => {
  expose(newPool({ name: 'orders', max: 2 }), { service: 'shop' });
  expose(newPool({ name: 'users', max: 5 }), { service: 'shop' });
  const series = await scrape();
  expect(series.get('headgate_pool_limit{pool="orders",service="shop"}')).toBe(2);
  expect(series.get('headgate_pool_limit{pool="users",service="shop"}')).toBe(5);
});

test('several pools of the same name are not counted as one', async () => {
  const names = [2, 5].map((max) => expose(newPool({ name: 'same', max })).poolName);
  expect(names).toEqual(['same', 'same#2']);
  const series = await scrape();
  expect(series.get('headgate_pool_limit{pool="same",service="same"}')).toBe(2);
  expect(series.get('headgate_pool_limit{pool="same#2",service="same"}')).toBe(5);
});

test('several pools of one service are one to the dashboards that know services only', async () => {
  const [first, second] = [newPool({ max: 2, name: 'default' }), newPool({ max: 5, name: 'visibility' })];
  (await first.acquire()).release();
  (await second.acquire()).release();
  for (const pool of [first, second]) expose(pool, { service: 'history' });
  publish('acquired', { pool: first, waitMs: 40 });
  publish('acquired', { pool: second, waitMs: 60 });
  const series = await scrape();
  const of = (name: string) => series.get(`dsql_${name}{service="history"}`);
  expect([of('pool_max_open'), of('pool_open')]).toEqual([7, 2]);
  expect([of('pool_wait_duration_milliseconds_sum'), of('pool_wait_duration_count')]).toEqual([100, 2]);
});

test('several pools leave what they counted to their service, so that its counters never fall', async () => {
  const [leaving, staying] = [newPool({ name: 'leaving' }), newPool({ name: 'staying' })];
  const exposure = expose(leaving, { service: 's' });
  const other = expose(staying, { service: 's' });
  await rejectionOf(waitInVain(leaving));
  await rejectionOf(waitInVain(staying));
  const counted = async () => {
    const series = await scrape();
    return ['pool_wait_total', 'pool_wait_duration_count'].map((name) =>
      series.get(`dsql_${name}{service="s"}`),
    );
  };
  const before = await counted();
  expect(before).toEqual([2, 2]);
  exposure.stop();
  expect(await counted()).toEqual(before);
  expect((await scrape()).get('dsql_pool_max_open{service="s"}')).toBe(3);
  other.stop();
  expect(await counted()).toEqual([undefined, undefined]);
  expose(newPool({ name: 'new' }), { service: 's' });
  expect(await counted()).toEqual([0, 0]);
});

test('several pools may be told apart by the labels that the program adds', async () => {
  expose(newPool({ name: 'a', max: 1 }), { service: 's', labels: { shard: '1', zone: 'x' } });
  expose(newPool({ name: 'b', max: 2 }), { service: 's', labels: { zone: 'x', shard: '2' } });
  expose(newPool({ name: 'c', max: 3 }), { service: 's', labels: { zone: 'x', shard: '1' } });
  const series = await scrape();
  expect(series.get('dsql_pool_max_open{service="s",shard="1",zone="x"}')).toBe(4);
  expect(series.get('dsql_pool_max_open{service="s",shard="2",zone="x"}')).toBe(2);
});

/** A caller whose time is up, whatever the pool has. */
function waitInVain(pool: PromisePool<object>): Promise<unknown> {
  pool.pause();
  return pool.acquire({ timeout: 1 }).finally(() => pool.resume());
}

test('an exposure ends with stop(), which may be called twice, and leaves nothing in the registry', async () => {
  const [stopped, exposed] = [newPool({ name: 'stopped' }), newPool({ name: 'exposed' })];
  const [first, second] = [expose(stopped), expose(exposed)];
  first.stop();
  first.stop();
  (await stopped.acquire()).release();
  const names = [...(await scrape()).keys()];
  expect(names.filter((name) => name.includes('stopped'))).toEqual([]);
  expect(names.filter((name) => name.includes('exposed'))).not.toEqual([]);
  second.stop();
  expect(registry.getMetricsAsArray()).toEqual([]);
});

test('an exposure can begin again', async () => {
  const pool = newPool({ name: 'again' });
  expose(pool).stop();
  expect(expose(pool).poolName).toBe('again');
  expect((await scrape()).get('headgate_pool_limit{pool="again",service="again"}')).toBe(3);
});

test('an exposure leaves no subscription behind', () => {
  const channels = ['opened', 'acquired', 'released', 'timeout'].map((name) =>
    channel(`headgate:pool:${name}`),
  );
  const listening = () => channels.map((each) => each.hasSubscribers);
  const exposures = [expose(newPool()), expose(newPool())];
  expect(listening()).toEqual([true, true, true, true]);
  for (const exposure of exposures) exposure.stop();
  expect(listening()).toEqual([false, false, false, false]);
});

test('an exposure of the same pool on the same registry is refused, since it would count everything twice', () => {
  const pool = newPool({ name: 'once' });
  expose(pool);
  expect(() => expose(pool)).toThrow(/registry: has the pool once already/);
  expect(exposePool(pool, { registry: new Registry() }).poolName).toBe('once');
});

test('an exposure says all that is wrong with its options at once', () => {
  const labels = { '0a': 'x', __b: 'x', reason: 'x', number: 1 } as unknown as Record<string, string>;
  const wrong = { registry: {} as MetricRegistry, service: '', labels, lables: {} };
  expect(() => exposePool(newPool(), wrong)).toThrow(
    expect.objectContaining({
      code: 'HG_BAD_OPTIONS',
      problems: [
        'registry',
        'service',
        'labels.0a',
        'labels.__b',
        'labels.reason',
        'labels.number',
        'lables',
      ].map((path) => expect.objectContaining({ path })),
    }),
  );
});

test('an exposure that finds one of its names taken takes none of the others', () => {
  new Counter({ name: 'dsql_pool_wait_total', help: 'mine', registers: [registry] });
  expect(() => expose(newPool())).toThrow(/dsql_pool_wait_total has already been registered/);
  expect(registry.getMetricsAsArray().map(({ name }) => name)).toEqual(['dsql_pool_wait_total']);
});

test('an exposure brings its metrics back to a registry that was cleared', async () => {
  expose(newPool({ name: 'before' }));
  registry.clear();
  expose(newPool({ name: 'after' }));
  const series = await scrape();
  expect(series.get('headgate_pool_limit{pool="before",service="before"}')).toBe(3);
  expect(series.get('headgate_pool_limit{pool="after",service="after"}')).toBe(3);
});

test('an exposure uses the global registry of prom-client when it is given none', async () => {
  expose(newPool({ name: 'global' }), { registry: undefined });
  expect((await scrape(register)).get('headgate_pool_limit{pool="global",service="global"}')).toBe(3);
});

test('an exposure keeps what a pool has counted when the registry is reset', async () => {
  const pool = newPool();
  expose(pool);
  (await pool.acquire()).release();
  registry.resetMetrics();
  expect((await scrape()).get('headgate_pool_opened_total{pool="pool",service="pool"}')).toBe(1);
});

test('an exposure serves a registry in the OpenMetrics format, and another pool that is exposed there', async () => {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  expose(newPool({ name: 'one' }), { registry: open });
  await scrape(open);
  expose(newPool({ name: 'two' }), { registry: open });
  const text = await open.metrics();
  expect(text).toContain(
    '# TYPE headgate_pool_opened counter\nheadgate_pool_opened_total{service="one",pool="one"} 0',
  );
  expect(text).toContain('headgate_pool_opened_total{service="two",pool="two"} 0');
  expect(text).not.toContain('_total_total');
});

test('an exposure can be joined with those of other processes', async () => {
  const pool = newPool({ max: 2, reservoir: true });
  expose(pool);
  await pool.ready(2);
  const process = await registry.getMetricsAsJSON();
  const both = AggregatorRegistry.aggregate([process, structuredClone(process)]);
  const series = await scrape(both);
  expect(series.get('headgate_pool_limit{pool="pool",service="pool"}')).toBe(4);
  expect(series.get('headgate_pool_filled{pool="pool",service="pool"}')).toBe(1);
});

test('an exposure needs no prom-client where the program brings a registry of its own', async () => {
  const metrics = new Map<string, RegisteredMetric>();
  const own: MetricRegistry = {
    registerMetric: (metric) => void metrics.set(metric.name as string, metric),
    getSingleMetric: (name) => metrics.get(name),
    removeSingleMetric: (name) => void metrics.delete(name),
  };
  expose(newPool(), { registry: own });
  expect([...metrics.keys()]).toEqual(metricFamilies.map(({ name }) => name));
  expect(await metrics.get('headgate_pool_limit')?.get()).toEqual({
    name: 'headgate_pool_limit',
    help: expect.any(String),
    type: 'gauge',
    aggregator: 'sum',
    values: [{ labels: { service: 'pool', pool: 'pool' }, value: 3 }],
  });
});

test('an exposure serves the drop-in on a real PostgreSQL', async () => {
  const db = await withDatabase();
  cleanUps.push(() => db.drop());
  const pool = new Pool({ connectionString: db.url, max: 2, name: 'postgres' });
  cleanUps.push(() => pool.end());
  expose(pool);
  const client = await pool.connect();
  const series = await scrape();
  client.release();
  expect(series.get('dsql_pool_in_use{service="postgres"}')).toBe(1);
  expect(series.get('headgate_pool_dial_seconds_count{pool="postgres",service="postgres"}')).toBe(1);
});

test('an exposure is the only reason to load prom-client', async () => {
  const root = new URL('../../src/', import.meta.url);
  const files = (await readdir(root, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, root), 'utf8')));
  const loaders = files.filter((_, index) => /^(?! \*).*'prom-client'/m.test(texts[index] as string));
  expect(loaders).toEqual(['observe/prometheus.ts']);
});

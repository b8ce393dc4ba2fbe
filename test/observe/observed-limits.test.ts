// Leases and rate limiters in DynamoDB as OpenTelemetry metrics, with the pools that have them.
import { DataPointType, MeterProvider, type MetricData, MetricReader } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DynamoLeases, DynamoRateLimiter } from '../../src/dynamodb.js';
import { PromisePool } from '../../src/engine.js';
import { leaseMetricTable, rateMetricTable } from '../../src/observe/lease-metric-table.js';
import { leaseFamilies } from '../../src/observe/lease-metrics.js';
import type { MetricTable } from '../../src/observe/metric-declaration.js';
import { rateFamilies } from '../../src/observe/rate-metrics.js';
import { instrumentName } from '../../src/observe/stats-instruments.js';
import { observePool } from '../../src/opentelemetry.js';

class TestReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

let reader: TestReader;
let provider: MeterProvider;
beforeEach(() => {
  reader = new TestReader();
  provider = new MeterProvider({ readers: [reader] });
});
afterEach(() => provider.shutdown());

async function collect(): Promise<Map<string, MetricData>> {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  return new Map(all.map((metric) => [metric.descriptor.name, metric]));
}

const limits = () => ({
  leases: new DynamoLeases({ table: 'connections', endpoint: 'db.example', limit: 500 }),
  rateLimiter: new DynamoRateLimiter({ table: 'connections', endpoint: 'db.example', rate: 90 }),
});

/** A pool that has these limits, as a `DsqlPool` has them. */
function poolWith(shared: ReturnType<typeof limits>, name: string) {
  return Object.assign(new PromisePool<object>({ connect: async () => ({}), max: 3, name }), shared);
}

const observe = (pool: ReturnType<typeof poolWith>) =>
  observePool(pool, { meter: provider.getMeter('test'), attributes: { 'service.name': 'shop' } });

test('a pool is observed with its leases and its rate limiter, by all of their declared metrics', async () => {
  observe(poolWith(limits(), 'orders'));
  const all = await collect();
  const tables: MetricTable = { ...leaseMetricTable, ...rateMetricTable };
  for (const { name, help, words = [''], labels } of [...leaseFamilies, ...rateFamilies]) {
    const metric = all.get(instrumentName(name));
    expect([name, metric?.descriptor]).toMatchObject([name, { description: help, unit: tables[name]?.unit }]);
    const points = metric?.dataPoints.map(({ attributes }) => attributes);
    const own = words.map((word) => (labels.length === 0 ? {} : { [`headgate.${labels[0]}`]: word }));
    expect([name, points]).toEqual([name, own.map((each) => ({ 'service.name': 'shop', ...each }))]);
  }
  expect(all.get('headgate.lease.limit')?.dataPoints[0]?.value).toBe(500);
  expect(all.get('headgate.rate.limit')?.dataPoints[0]?.value).toBe(90);
});

test('a number that instances share is a gauge, so that it is not added up, and one that only grows is a counter', async () => {
  observe(poolWith(limits(), 'orders'));
  const all = await collect();
  expect(all.get('headgate.lease.active')?.dataPointType).toBe(DataPointType.GAUGE);
  expect(all.get('headgate.lease.held')).toMatchObject({
    dataPointType: DataPointType.SUM,
    isMonotonic: false,
  });
  expect(all.get('headgate.coordinator.answer_time')).toMatchObject({ isMonotonic: true });
  expect(all.get('headgate.rate.wait_time')?.dataPointType).toBe(DataPointType.GAUGE);
});

test('limits that two pools share are reported once, until neither of them is observed', async () => {
  const shared = limits();
  const [one, other] = [observe(poolWith(shared, 'orders')), observe(poolWith(shared, 'users'))];
  const limit = async () =>
    (await collect()).get('headgate.lease.limit')?.dataPoints.map(({ value }) => value);
  expect(await limit()).toEqual([500]);
  one.stop();
  one.stop();
  expect(await limit()).toEqual([500]);
  other.stop();
  expect(await limit()).toEqual([0]);
});

test('another pool with the same limits can be observed after the first was stopped', async () => {
  const shared = limits();
  observe(poolWith(shared, 'orders')).stop();
  await collect();
  observe(poolWith(shared, 'users'));
  expect((await collect()).get('headgate.rate.limit')?.dataPoints[0]?.value).toBe(90);
});

/** Transactions as metrics: Prometheus by the names of the dashboards, OpenTelemetry by Headgate's own, labels that stay few. */
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { errorClasses } from '../../src/dsql/classify/error-class.js';
import { DsqlPool } from '../../src/dsql.js';
import { PromisePool } from '../../src/engine.js';
import { observePool } from '../../src/opentelemetry.js';
import { exposePool } from '../../src/prometheus.js';
import { TransactionPublisher } from '../../src/runtime/transaction-channels.js';

class TestReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

let registry: Registry;
const cleanUps: (() => unknown)[] = [];
beforeEach(() => {
  registry = new Registry();
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

function newPool(name = 'orders'): { pool: PromisePool<object>; told: TransactionPublisher } {
  const pool = new PromisePool<object>({ connect: async () => ({}), name });
  cleanUps.push(() => pool.drain({ deadline: 1 }));
  return { pool, told: new TransactionPublisher(pool, name) };
}

/** One transaction that met two conflicts, and was committed or given up. */
function tell(told: TransactionPublisher, operation: string, isCommitted = true): void {
  told.conflict(operation, 'data', 1);
  told.retryScheduled(operation, 20, 'retryable', 1);
  told.conflict(operation, 'data', 2);
  if (isCommitted) {
    told.retryScheduled(operation, 20, 'retryable', 2);
    told.committed(operation, 300, 3);
  } else {
    told.exhausted(operation, 'attempts', 2);
    told.failed(operation, 'retryable', 300, 2);
  }
}

/** Samples by the text of their labels, without the service. */
async function samples(name: string): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith(`${name}{`));
  return Object.fromEntries(
    lines.map((line) => {
      const [, labels = '', value] = /\{(.*)\} (\S+)$/.exec(line) ?? [];
      const own = labels.split(',').filter((label) => !label.startsWith('service='));
      return [own.join(','), Number(value)];
    }),
  );
}

/** Events that have happened. */
function above0(values: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value > 0));
}

test('a pool with transactions has retries by every attempt and errors of every class at 0 before the first one', async () => {
  const pool = new DsqlPool({ host: 'db.example', region: 'eu-west-1', env: {} });
  cleanUps.push(() => pool.end());
  cleanUps.push(exposePool(pool, { registry, service: 'shop' }).stop);
  const retries = await samples('dsql_tx_retry_total');
  expect(Object.keys(retries)).toEqual(
    ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10+'].map(
      (attempt) => `operation="transaction",attempt="${attempt}"`,
    ),
  );
  expect(above0(retries)).toEqual({});
  const errors = await samples('dsql_tx_error_class_total');
  expect(Object.keys(errors)).toEqual(
    Object.keys(errorClasses).map((word) => `operation="transaction",error_class="${word}"`),
  );
  expect(above0(errors)).toEqual({});
  expect(await samples('dsql_tx_conflict_total')).toEqual({ 'operation="transaction"': 0 });
});

test('Prometheus has conflicts, retries by attempt, exhaustion, latency and backoff of each operation', async () => {
  const { pool, told } = newPool();
  cleanUps.push(exposePool(pool, { registry, service: 'shop' }).stop);
  tell(told, 'transfer');
  tell(told, 'refund', false);

  expect(await samples('dsql_tx_conflict_total')).toEqual({
    'operation="transfer"': 2,
    'operation="refund"': 2,
  });
  expect(above0(await samples('dsql_tx_retry_total'))).toEqual({
    'operation="transfer",attempt="1"': 1,
    'operation="transfer",attempt="2"': 1,
    'operation="refund",attempt="1"': 1,
  });
  expect(await samples('dsql_tx_exhausted_total')).toEqual({
    'operation="transfer"': 0,
    'operation="refund"': 1,
  });
  expect(above0(await samples('dsql_tx_error_class_total'))).toEqual({
    'operation="transfer",error_class="retryable"': 2,
    'operation="refund",error_class="retryable"': 2,
  });
  expect(await samples('dsql_tx_latency_sum')).toEqual({
    'operation="transfer"': 0.3,
    'operation="refund"': 0.3,
  });
  expect(await samples('dsql_tx_backoff_count')).toEqual({
    'operation="transfer"': 2,
    'operation="refund"': 1,
  });
});

test('Prometheus adds up the pools of a service whose operations differ, also of a pool that has left', async () => {
  const [one, other] = [newPool('one'), newPool('other')];
  const first = exposePool(one.pool, { registry, service: 'shop' });
  cleanUps.push(exposePool(other.pool, { registry, service: 'shop' }).stop);
  tell(one.told, 'transfer');
  tell(other.told, 'refund');
  tell(other.told, 'transfer');
  first.stop();
  tell(one.told, 'transfer');
  expect(await samples('dsql_tx_conflict_total')).toEqual({
    'operation="transfer"': 4,
    'operation="refund"': 2,
  });
});

test('operations, attempts and error classes beyond a limit share one label value', async () => {
  const { pool, told } = newPool();
  cleanUps.push(exposePool(pool, { registry, service: 'shop' }).stop);
  for (let n = 0; n < 1_000; n++) {
    told.conflict(`order ${n}`, 'data', n + 1);
    told.retryScheduled(`order ${n}`, 1, `class ${n}`, n + 1);
  }
  const conflicts = await samples('dsql_tx_conflict_total');
  expect(Object.keys(conflicts).length).toBe(51);
  expect(conflicts['operation="other"']).toBe(950);
  const retries = await samples('dsql_tx_retry_total');
  expect(retries['operation="other",attempt="10+"']).toBe(950);
  // Each operation has the known classes, and all of them together a few that are not known.
  expect(Object.keys(await samples('dsql_tx_error_class_total')).length).toBeLessThan(51 * 11 + 100);
});

test('OpenTelemetry has the same figures, in seconds', async () => {
  const { pool, told } = newPool();
  const reader = new TestReader();
  const provider = new MeterProvider({ readers: [reader] });
  cleanUps.push(() => provider.shutdown());
  const observation = observePool(pool, { meter: provider.getMeter('test') });
  tell(told, 'transfer', false);
  observation.stop();
  tell(told, 'transfer');

  const { resourceMetrics } = await reader.collect();
  const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  const read = (name: string) =>
    metrics
      .find(({ descriptor }) => descriptor.name === `headgate.transaction.${name}`)
      ?.dataPoints.map(({ attributes, value }) => [attributes, value]);
  const common = {
    'db.client.connection.pool.name': 'orders',
    'headgate.transaction.operation': 'transfer',
  };
  expect(read('conflicts')).toEqual([[common, 2]]);
  expect(read('exhausted')).toEqual([[common, 1]]);
  expect(read('errors')).toEqual([[{ ...common, 'headgate.error.class': 'retryable' }, 2]]);
  expect(read('retries')).toEqual([[{ ...common, 'headgate.transaction.attempt': '1' }, 1]]);
  expect(read('duration')).toMatchObject([[common, { count: 1, sum: 0.3 }]]);
  expect(read('backoff')).toMatchObject([[common, { count: 1, sum: 0.02 }]]);
});

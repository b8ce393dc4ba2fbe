// Prometheus itself finds nothing wrong in the rule files, nor in what poolers and pools export.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Pool } from '../../src/index.js';
import { exposePool } from '../../src/prometheus.js';
import { serve } from '../pooler/workers/served.js';
import { startTestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { hasPromtool, metricProblems } from '../support/promtool.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const observability = { metricsListen: '127.0.0.1:0' };
const textOf = async (port: number | undefined): Promise<string> =>
  (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

test.skipIf(!hasPromtool)('promtool takes the files of alerts and of recording rules', () => {
  const files = ['prometheus-alerts.yml', 'prometheus-rules.yml'];
  const paths = files.map((file) => join(import.meta.dirname, '../../docs', file));
  expect(() => execFileSync('promtool', ['check', 'rules', ...paths], { stdio: 'pipe' })).not.toThrow();
});

test.skipIf(!hasPromtool)('promtool finds no problem in the metrics of a pooler', async () => {
  const pooler = await startTestPooler(db, { observability, fairShares: { capacity: 5 } });
  const client = await pooler.connect();
  await client.query('select 1/0').catch(() => {});
  expect(metricProblems(await textOf(pooler.pooler.metricsPort))).toEqual([]);
});

test.skipIf(!hasPromtool)(
  'promtool finds no problem in the metrics of a pooler with two workers',
  async () => {
    const served = await serve(db, { observability: { ...observability, page: false } });
    const address = /metrics at http:\/\/127\.0\.0\.1:(\d+)\/metrics/;
    await served.says(address);
    const [, port] = address.exec(served.out) ?? [];
    await served.spread(2);
    const text = await textOf(Number(port));
    expect(text).toContain('worker="2"');
    expect(metricProblems(text)).toEqual([]);
  },
);

test.skipIf(!hasPromtool)(
  'promtool finds one unit of the DSQL metrics that it would not use in those of a pool',
  async () => {
    const registry = new Registry();
    const pool = new Pool({ connectionString: db.url, max: 2, minIdle: 1 });
    const exposure = exposePool(pool, { registry, service: 'shop' });
    onTestFinished(async () => {
      exposure.stop();
      await pool.end();
    });
    await pool.query('select 1');
    expect(metricProblems(await registry.metrics())).toEqual([
      'dsql_pool_wait_duration_milliseconds use base unit "seconds" instead of "milliseconds"',
    ]);
  },
);

test.skipIf(!hasPromtool)('promtool finds the problem in a text that has one', () => {
  expect(metricProblems('# TYPE x gauge\nx{quantile="1"} 1\n')).not.toEqual([]);
});

// Leases in DynamoDB as Prometheus metrics, and the table of them in the documentation.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { DynamoLeases } from '../../src/dynamodb.js';
import { leaseFamilies } from '../../src/observe/lease-metrics.js';
import { rateFamilies } from '../../src/observe/rate-metrics.js';
import { exposeLeases } from '../../src/prometheus.js';

const page = readFileSync(join(import.meta.dirname, '../../docs/dynamodb.md'), 'utf8');

test('leases have every metric from the start, with every value of its label, until they are not exposed any more', async () => {
  const registry = new Registry();
  const leases = new DynamoLeases({ table: 'connections', endpoint: 'db.example', limit: 500 });
  const exposure = exposeLeases(leases, { registry, service: 'shop', labels: { region: 'eu-west-1' } });
  const text = await registry.metrics();
  expect(text).toContain('dsql_distributed_conn_lease_limit{service="shop",region="eu-west-1"} 500');
  expect(text).toContain('headgate_coordinator_state{service="shop",region="eu-west-1",state="unused"} 1');
  expect(text).toContain('headgate_lease_denied_total{service="shop",region="eu-west-1",reason="limit"} 0');
  for (const { name, type, words = [''] } of leaseFamilies) {
    expect(text).toContain(`# TYPE ${name} ${type}`);
    expect(text.match(new RegExp(`^${name}\\{`, 'gm'))?.length).toBe(words.length);
  }
  expect(() => exposeLeases(leases, { registry })).toThrow(/has these leases already/);
  exposure.stop();
  expect(await registry.metrics()).not.toContain('lease');
});

test('docs/dynamodb.md has every metric, with its kind and its label', () => {
  const rows = [...page.matchAll(/^\| (`(?:dsql|headgate)_[^|]+) \| (gauge|counter) \| ([^|]*)\|/gm)];
  const documented = rows.flatMap(([, names = '', kind, by = '']) =>
    Array.from(names.matchAll(/`(\w+)`/g), ([, name]) => [
      name,
      kind,
      Array.from(by.matchAll(/`(\w+)`/g), ([, label]) => label),
    ]),
  );
  const families = [...leaseFamilies, ...rateFamilies];
  expect(documented).toEqual(families.map(({ name, type, labels }) => [name, type, labels]));
});

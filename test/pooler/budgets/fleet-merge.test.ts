// What the processes of one pooler say about the fleet, in one row for each server.
import { expect, test } from 'vitest';
import { DynamoFleet } from '../../../src/pooler/budgets/dynamo-fleet.js';
import { mergeFleet } from '../../../src/pooler/budgets/fleet-merge.js';
import { configWith } from '../config/config-files.js';

function processOf(instance: string): DynamoFleet {
  const { fleet } = configWith('fleet: { table: t, limit: 5, rate: 10 }');
  const endpointOf = (server: string): string => server;
  return new DynamoFleet({ config: { ...fleet, instance }, endpointOf, log: () => {} });
}

test('the leases are those of the supervisor, and what workers have counted is added up', () => {
  const supervisor = processOf('above');
  supervisor.leasesOf('db:5432');
  const workers = [processOf('one'), processOf('other')].map((worker) => {
    worker.rateLimiterOf('db:5432');
    return worker.stats()[0];
  });
  const counted = workers.map((stats, index) => ({
    ...stats,
    ...{ server: 'db:5432', endpoint: 'db:5432', instance: 'worker', service: 'headgate' },
    rate: stats?.rate && { ...stats.rate, taken: 2 + index, waitMs: 7 - index, state: 'ok' as const },
  }));
  const [merged, ...others] = mergeFleet([...supervisor.stats(), ...counted]);
  expect(others).toEqual([]);
  expect(merged).toMatchObject({
    instance: 'above',
    leases: { limit: 5, state: 'unused' },
    rate: { taken: 5, waitMs: 7, rate: 10, state: 'ok' },
  });
});

test('one that fails is seen, whatever the others say', () => {
  const [first, second] = [processOf('one'), processOf('other')].map((worker) => {
    worker.rateLimiterOf('db:5432');
    return worker.stats();
  });
  const failing = (first ?? []).map((stats) => ({
    ...stats,
    rate: stats.rate && { ...stats.rate, state: 'failing' as const },
  }));
  expect(mergeFleet([...failing, ...(second ?? [])])).toEqual([
    expect.objectContaining({ rate: expect.objectContaining({ state: 'failing' }) }),
  ]);
});

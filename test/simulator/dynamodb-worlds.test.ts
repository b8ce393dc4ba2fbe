// Fleets with leases and a rate limit in DynamoDB: the laws hold in them, whatever the seed.
import { expect, test } from 'vitest';
import type { Scenario } from '../../src/simulator/scenario/scenario.js';
import { readScenarioFile } from '../../src/simulator/scenario/scenario-file.js';
import { readScenario } from '../../src/simulator/scenario/scenario-reader.js';
import { shippedScenarios } from '../../src/simulator/scenario/shipped-scenarios.js';
import { simulate } from '../../src/simulator/simulate.js';

const { path } = shippedScenarios().find(({ name }) => name === 'dynamodb-fleet') as { path: string };
const fleet = readScenarioFile(path);
const first = Number(process.env['HEADGATE_SEED'] ?? 1);

/** So few that a test has time for them, and so few leases that they are not enough. */
function smallFleet(seed: number, onCoordinatorLoss: 'hold' | 'shed'): Scenario {
  const { coordinator, services } = fleet;
  if (coordinator?.table === undefined) throw new Error('the leases of dynamodb-fleet are not in DynamoDB');
  const table = { ...coordinator.table, onCoordinatorLoss, lostReplies: 0.05, conflicts: 0.1 };
  return {
    ...fleet,
    seed,
    coordinator: { ...coordinator, leaseLimit: 120, table },
    services: services.filter(({ name }) => Number(name.split('-')[1]) <= 25),
  };
}

test.each([0, 1, 2, 3])(
  'A fleet with its limit in DynamoDB breaks no law with seed %i after the first',
  (n) => {
    const result = simulate(smallFleet(first + n, 'shed'));
    expect(result.laws).toEqual([]);
    expect(result.server.peakConnections).toBeLessThanOrEqual(120);
    // The limit was what kept it from more.
    expect(result.coordinator?.peakLeases).toBe(120);
  },
);

test('A fleet with its limit in DynamoDB keeps what it has through an outage of the table, if it is to hold', () => {
  const { faults, ...rest } = smallFleet(first, 'hold');
  const outage = {
    ...faults[3],
    kind: 'coordinator_outage',
    atMs: 120_000,
    durationMs: 150_000,
  } as (typeof faults)[0];
  const result = simulate({ ...rest, faults: [outage] });
  expect(result.laws).toEqual([]);
  const inUse = result.samples.inUse;
  expect(Math.min(...inUse.slice(-12))).toBeGreaterThan(60);
});

test('A fleet with its limit in DynamoDB with more services than leases gives each its turns, and serves all of their callers', () => {
  const result = simulate(
    readScenario({
      ...{ seed: first, duration: '5m', sample: '1s' },
      coordinator: { leaseLimit: 10, dynamodb: { conflicts: 0.05, lostReplies: 0.02 } },
      defaults: { pool: { max: 3, acquireTimeout: '2m' } },
      services: [
        {
          name: 'api',
          count: 30,
          clockSkew: '1s',
          clockSkewStep: '100s',
          workload: { tenant: 'api', perSecond: 0.2, hold: '500ms' },
        },
      ],
    }),
  );
  expect(result.laws).toEqual([]);
  expect(result.coordinator?.peakLeases).toBe(10);
  expect(result.waits.failed).toBe(0);
  const opened = result.services.map(({ samples }) => samples.refills.at(-1) ?? 0);
  expect(Math.min(...opened)).toBeGreaterThan(2);
});

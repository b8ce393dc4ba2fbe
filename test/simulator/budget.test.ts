// A budget that the services of a scenario share fairly: the product's own, judged by the server's books.
import { expect, test } from 'vitest';
import { htmlReport } from '../../src/simulator/report/html.js';
import { terminalReport } from '../../src/simulator/report/terminal.js';
import type { SimulationResult } from '../../src/simulator/result.js';
import { readScenario } from '../../src/simulator/scenario/scenario-reader.js';
import { simulate } from '../../src/simulator/simulate.js';

const server = { connectionLimit: 100, perSecond: 1_000, dial: '5ms', close: '1ms' };

function run(tree: object): SimulationResult {
  return simulate(readScenario({ duration: '10s', sample: '1s', server, ...tree }));
}

function inUseAtTheEnd({ tenantSamples }: SimulationResult): unknown[] {
  return tenantSamples.map(({ tenant, inUse }) => [tenant, Math.round(inUse.at(-1) ?? 0)]);
}

const busy = { perSecond: 2_000, hold: '10ms', maxInUse: 50 };

test('services with a budget never have more than it, and share it by their weights', () => {
  const result = run({
    budget: { capacity: 12 },
    services: [
      { name: 'heavy', weight: 2, workload: busy },
      { name: 'light', workload: busy },
    ],
  });
  expect(result.laws).toEqual([]);
  expect(result.server.peakConnections).toBe(12);
  expect(result.budget).toMatchObject({ capacity: 12, peak: 12 });
  expect(inUseAtTheEnd(result)).toEqual([
    ['heavy', 8],
    ['light', 4],
  ]);
  expect(result.tenantSamples.map(({ share }) => share?.at(-1))).toEqual([8, 4]);
});

test('services with a budget are tenants, each by itself', () => {
  const result = run({ budget: { capacity: 3 }, services: [{ name: 'user', count: 3, workload: busy }] });
  expect(inUseAtTheEnd(result)).toEqual([
    ['user-1', 1],
    ['user-2', 1],
    ['user-3', 1],
  ]);
});

test('services with a budget give back what they had when they crash, as soon as the server has noticed', () => {
  const result = run({
    budget: { capacity: 6 },
    services: [
      { name: 'a', workload: busy },
      { name: 'b', workload: busy },
    ],
    faults: [{ kind: 'crash', at: '5s', services: 'a' }],
  });
  expect(result.laws).toEqual([]);
  expect(inUseAtTheEnd(result)).toEqual([
    ['a', 0],
    ['b', 6],
  ]);
});

test('services with a budget have their shares in the reports', () => {
  const scenario = readScenario({
    duration: '10s',
    server,
    budget: { capacity: 4 },
    services: [
      { name: 'a', workload: busy },
      { name: 'b', workload: busy },
    ],
  });
  const result = simulate(scenario);
  expect(terminalReport({ scenario, result })).toMatch(/budget +4 of 4 at most, \d+ asked back/);
  expect(htmlReport({ scenario, result })).toContain('Fair shares');
});

test('services with a budget can not have a coordinator besides', () => {
  const both = { budget: { capacity: 4 }, coordinator: { leaseLimit: 4 }, services: [{ name: 'a' }] };
  expect(() => run(both)).toThrow('have one of them');
});

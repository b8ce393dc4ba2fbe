// What a report says in words before it shows numbers.
import { expect, test } from 'vitest';
import { findingsOf } from '../../src/simulator/report/findings.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { simulate } from '../../src/simulator/simulate.js';

function findings(text: string): string[] {
  const scenario = parseScenario(`duration: 30s\n${text}`, 'case.yaml');
  return findingsOf({ scenario, result: simulate(scenario) });
}

test('pools that add up to more than the server has are named with both numbers', () => {
  const [first] = findings(`server: { connectionLimit: 100 }
services: [{ name: api, count: 7, pool: { max: 20, minIdle: 20 } }]`);
  expect(first).toMatch(/^The pools add up to 140 connections on a server of 100, which refused \d+/);
});

test('leases that allow more than the server has are named', () => {
  expect(
    findings(`server: { connectionLimit: 100 }
coordinator: { leaseLimit: 120 }
services: [{ name: api, count: 7, pool: { max: 20 } }]`),
  ).toEqual(['The leases allow 120 connections on a server of 100.']);
});

test('callers that need more connections than there are, and go away, are named', () => {
  const [demand, failed] = findings(
    'services: [{ name: api, pool: { max: 4, acquireTimeout: 200ms }, workload: { perSecond: 100, hold: 100ms } }]',
  );
  expect(demand).toMatch(/^Callers need 10 connections on average, and there are at most 4:/);
  expect(failed).toMatch(
    /of [\d,]+ callers \(.*\) went away without a connection; the longest wait was 20\d ms\.$/,
  );
});

test('connections that come too fast are named, with who lets them', () => {
  const [first] = findings(`server: { perSecond: 5, burst: 5 }
limiter: { perSecond: 50, burst: 50 }
services: [{ name: api, pool: { max: 40, minIdle: 40 } }]`);
  expect(first).toMatch(
    /^The server refused \d+ connections that came too fast: it takes 5 a second, and the limiter lets all of them open 50 a second\.$/,
  );
});

test('callers that stay away because of maxInUse count as demand of their tenant', () => {
  const scenario = parseScenario(
    `duration: 30s
services:
  - name: api
    pool: { max: 4 }
    workload:
      - { tenant: greedy, perSecond: 400, hold: 10ms, maxInUse: 3 }
      - { tenant: held, perSecond: 400, hold: 10ms, maxInUse: 1 }
assertions: { assertFairness: { jain: 0.99 } }`,
    'case.yaml',
  );
  const result = simulate(scenario);
  expect(result.ends.keptAway).toBeGreaterThan(0);
  expect(result.tenants.map(({ keptAway }) => keptAway > 0)).toEqual([true, true]);
  expect(result.assertions).toMatchObject([{ name: 'assertFairness jain', passed: false }]);
  expect(findingsOf({ scenario, result }).at(-1)).toContain('assertFairness jain did not hold');
});

test('a run in which everything fits says nothing', () => {
  expect(
    findings('services: [{ name: api, pool: { max: 4 }, workload: { perSecond: 10, hold: 5ms } }]'),
  ).toEqual([]);
});

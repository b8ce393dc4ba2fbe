// The CSV and JSON of a run: their structure, and that the same run gives the same files.
import { describe, expect, test } from 'vitest';
import { csvColumns, csvReport } from '../../src/simulator/report/csv.js';
import { jsonReport } from '../../src/simulator/report/json.js';
import type { SimulationRun } from '../../src/simulator/report/run.js';
import type { SimulationResult } from '../../src/simulator/result.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { simulate } from '../../src/simulator/simulate.js';

const text = `
duration: 90s
seed: 7
limiter: { perSecond: 20, burst: 5 }
defaults:
  pool: { max: 10, reservoir: { baseLifetime: 40s, lifetimeJitter: 20s, guardWindow: 5s } }
  workload: { perSecond: 30, hold: { mean: 50ms } }
services:
  - { name: api, count: 2 }
  - { name: plain, pool: { reservoir: false, maxLifetime: 20s } }
faults:
  - { kind: mass_drop, at: 30s, fraction: 0.5 }
`;

function run(): SimulationRun {
  const scenario = parseScenario(text, 'small.yaml');
  return { scenario, result: simulate(scenario) };
}

const once = run();
const csv = [...csvReport(once.result)].join('');
const json = [...jsonReport(once)].join('');

describe('The CSV', () => {
  const [head = '', ...lines] = csv.trimEnd().split('\n');
  const rows = lines.map((line) => line.split(','));

  test('The CSV has the columns of the seed', () => {
    expect(head).toBe(
      't_rfc3339,service,size,target,in_use,checkouts,empty_events,discards,discard_expired,discard_guard,discard_full,refills,refill_failures,scan_evictions,limiter_denies,work_started,work_completed',
    );
  });

  test('The CSV has a row for each sample and service, in order, from a fixed beginning', () => {
    expect(rows).toHaveLength(91 * 3);
    expect(rows.every((cells) => cells.length === csvColumns.length)).toBe(true);
    expect(rows.slice(0, 4).map(([time, service]) => [time, service])).toEqual([
      ['2026-01-01T00:00:00.000Z', 'api-1'],
      ['2026-01-01T00:00:00.000Z', 'api-2'],
      ['2026-01-01T00:00:00.000Z', 'plain'],
      ['2026-01-01T00:00:01.000Z', 'api-1'],
    ]);
    expect(rows.at(-1)?.[0]).toBe('2026-01-01T00:01:30.000Z');
  });

  test('The CSV says in its last rows what the result says', () => {
    for (const [index, { samples }] of once.result.services.entries()) {
      const last = rows.at(index - 3) ?? [];
      const cell = (column: (typeof csvColumns)[number]) => Number(last[csvColumns.indexOf(column)]);
      const total = (...reasons: (keyof typeof samples.discards)[]) =>
        reasons.reduce((sum, reason) => sum + (samples.discards[reason].at(-1) ?? 0), 0);
      expect(cell('size')).toBe(samples.ready.at(-1));
      expect(cell('in_use')).toBe(samples.inUse.at(-1));
      expect(cell('checkouts')).toBe(samples.checkouts.at(-1));
      expect(cell('refills')).toBe(samples.refills.at(-1));
      expect(cell('work_completed')).toBe(samples.workCompleted.at(-1));
      expect(cell('scan_evictions')).toBe(total('expired_on_scan', 'expiring_soon_on_scan'));
      expect(cell('discard_expired')).toBe(total('expired_on_checkout', 'expired_on_return', 'max_lifetime'));
      expect(cell('discards')).toBe(
        total(...(Object.keys(samples.discards) as (keyof typeof samples.discards)[])),
      );
    }
    const column = (name: (typeof csvColumns)[number]) =>
      rows.map((cells) => Number(cells[csvColumns.indexOf(name)]));
    for (const name of [
      'discards',
      'discard_expired',
      'scan_evictions',
      'refills',
      'limiter_denies',
    ] as const)
      expect(Math.max(...column(name)), name).toBeGreaterThan(0);
  });

  test('quotes a name that a program made up, and lets no spreadsheet take it for a formula', () => {
    const services = once.result.services.map((service) => ({ ...service, name: '=cmd("a", 1)\n' }));
    const odd = [...csvReport({ ...once.result, services })].slice(0, 2).join('');
    expect(odd).toContain(`2026-01-01T00:00:00.000Z,"'=cmd(""a"", 1)\n",0,`);
  });
});

const parsed = JSON.parse(json) as { format: string; scenario: { name: string }; result: SimulationResult };

test('The JSON has the scenario and the whole result', () => {
  expect(parsed.format).toBe('headgate-simulation-1');
  expect(parsed.scenario.name).toBe('small');
  expect(parsed.result.services.map(({ name }) => name)).toEqual(['api-1', 'api-2', 'plain']);
  expect(Object.keys(parsed.result).sort()).toEqual(Object.keys(once.result).sort());
  expect(parsed.result.samples).toEqual(once.result.samples);
  expect(parsed.result.tenantSamples.map(({ tenant }) => tenant)).toEqual(['api', 'plain']);
  expect(parsed.result.tenantSamples).toEqual(once.result.tenantSamples);
});

test('The JSON has null for what has no number, so that each key is always there', () => {
  const never = {
    ...once.result,
    services: once.result.services.map((service) => ({ ...service, convergedAtMs: undefined })),
  };
  const { result } = JSON.parse([...jsonReport({ ...once, result: never })].join('')) as typeof parsed;
  expect(result.services[0]?.convergedAtMs).toBeNull();
  expect(json).toContain('"everyMs":null');
});

test('The same scenario and seed give the same files to the last byte, and another seed gives others', () => {
  const again = run();
  expect([...csvReport(again.result)].join('')).toBe(csv);
  expect([...jsonReport(again)].join('')).toBe(json);
  const scenario = { ...again.scenario, seed: 8 };
  expect([...csvReport(simulate(scenario))].join('')).not.toBe(csv);
});

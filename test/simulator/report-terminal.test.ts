// What a person reads in the terminal after a run.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { count, percent, short, time } from '../../src/simulator/format.js';
import { chartsOf } from '../../src/simulator/report/charts.js';
import { coldStartOf } from '../../src/simulator/report/cold-start.js';
import { htmlReport } from '../../src/simulator/report/html.js';
import type { SimulationRun } from '../../src/simulator/report/run.js';
import { sparkline, terminalReport } from '../../src/simulator/report/terminal.js';
import { terminalComparison } from '../../src/simulator/report/terminal-compare.js';
import { colours } from '../../src/simulator/report/terminal-style.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { simulate, simulateSettled } from '../../src/simulator/simulate.js';

function run(changes = '', name = 'small'): SimulationRun {
  const scenario = parseScenario(
    `duration: 60s
limiter: { perSecond: 20, burst: 5 }
services:
  - name: api
    count: 2
    pool: { max: 10, reservoir: true }
    workload:
      - { tenant: quick, perSecond: 30, hold: { mean: 20ms } }
      - { tenant: slow, perSecond: 3, hold: { mean: 200ms } }
faults:
  - { kind: crash, at: 20s, for: 5s, services: api-2 }
${changes}`,
    `${name}.yaml`,
  );
  return { scenario, result: simulate(scenario) };
}

const good = run('assertions: { assertConvergeWithin: 30s, assertRecoverWithin: 30s }');
const bad = run('assertions: { assertMaxConnectsPerSec: 1, assertConvergeWithin: 30s }', 'strict');

describe('The report of a run', () => {
  const text = terminalReport(good);

  test('The report of a run begins with the verdict and what was run', () => {
    expect(text.split('\n')[0]).toMatch(
      /^small: passed {2}seed 42, 2 services, 1m simulated, [\d,]+ events$/,
    );
    expect(terminalReport(bad).split('\n')[0]).toMatch(/^strict: FAILED /);
  });

  test('The report of a run has the assertions, the laws, the faults, the tenants and the charts', () => {
    expect(text).toMatch(/^assertions\n ✓ assertConvergeWithin +after .*expected: .* within 30s$/m);
    expect(text).toMatch(/^laws\n ✓ none was broken in [\d,]+ events$/m);
    expect(text).toMatch(/^faults\n {2}20 s to 25 s {2}crash {2}api-2 {2}recovered .* later$/m);
    expect(text).toMatch(/^tenants\n {2}tenant .*\n {2}quick .*\n {2}slow /m);
    expect(text).toMatch(/^over 1m\n {2}ready +[ ▁▂▃▄▅▆▇█]{60} {2}to 20 \(limit of the server 10,000\)$/m);
  });

  test('The report of a run has the share of each tenant over time, most of the connections first', () => {
    expect(text).toMatch(
      /^ {2}share of \w+ +[ ▁▂▃▄▅▆▇█]{60} {2}to [\d.]+ %\n {2}share of \w+ +[ ▁▂▃▄▅▆▇█]{60} {2}to [\d.]+ %$/m,
    );
    const alone = { ...good, result: { ...good.result, tenantSamples: [] } };
    expect(terminalReport(alone)).not.toContain('share');
  });

  test('The report of a run has only the largest and the smallest share of many tenants', () => {
    const [first] = good.result.tenantSamples;
    const tenantSamples = Array.from({ length: 9 }, (_, n) => ({
      tenant: ['target', 'ready'][n] ?? `t${n}\u0007`,
      inUse: (first?.inUse ?? []).map((value) => value * (n === 1 ? 99 : n === 0 ? 0.1 : n)),
      workCompleted: first?.workCompleted ?? [],
    }));
    const many = { ...good, result: { ...good.result, tenantSamples } };
    for (const report of [terminalReport(many), terminalComparison(many, many)]) {
      const shares = report.split('\n').filter((line) => line.includes('share'));
      expect(shares.map((line) => line.slice(0, 24))).toEqual([
        expect.stringMatching(/^ {2}largest share, ready /),
        expect.stringMatching(/^ {2}smallest share, target$/),
      ]);
      expect(report).not.toContain('\u0007');
    }
    const few = { ...good, result: { ...good.result, tenantSamples: tenantSamples.slice(0, 3) } };
    expect(terminalReport(few)).toMatch(/^ {2}share of t2\uFFFD /m);
  });

  test('the report of a run marks what did not hold', () => {
    expect(terminalReport(bad)).toMatch(
      /^ ✗ assertMaxConnectsPerSec {2}up to \d+ +expected: at most 1 connection/m,
    );
    const laws = Array.from({ length: 7 }, (_, n) => ({
      law: 'limit',
      atMs: n * 1_000,
      service: 'api',
      message: `m${n}`,
    }));
    const broken = terminalReport({ ...good, result: { ...good.result, laws } });
    expect(broken).toMatch(/^ ✗ 0 ms {2}limit in api: m0$/m);
    expect(broken).toContain('   and 2 more');
  });

  test('The report of a run has no colour unless it is asked for', () => {
    expect(text).not.toContain('\u001B');
    expect(terminalReport(bad, colours)).toContain('\u001B[31mFAILED\u001B[39m');
  });

  test('The report of a run lets nothing of the scenario control the terminal', () => {
    const result = {
      ...good.result,
      scenario: 'a\u001B[2Jb\u009Bc',
      laws: [{ law: 'limit', atMs: 0, service: '\u0007', message: '\u001B]0;x' }],
    };
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    expect(terminalReport({ ...good, result })).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F]/);
  });
});

test('Two runs are put side by side, to the same scale', () => {
  const text = terminalComparison(good, bad);
  expect(text).toMatch(/^ +small +strict\n +passed +FAILED\n/);
  expect(text).toMatch(/^ {2}callers +[\d,]+ +[\d,]+\n/m);
  expect(text).toMatch(/^ {2}assertMaxConnectsPerSec +not asked +✗ up to \d+$/m);
  expect(text).toMatch(/^ {2}ready +.{34} \| {2}.{34} \| {2}to 20$/m);
  expect(text).toMatch(/^ {2}share of quick +.{34} \| {2}.{34} \| {2}to [\d.]+ %$/m);
});

test('Two runs are compared without their cold start, and it is said what was left out', () => {
  const cold = (more: string): SimulationRun => {
    const scenario = parseScenario(
      `duration: 2m
server: { dial: 500ms }
limiter: { perSecond: 2, burst: 1 }
services: [{ name: api, pool: { max: 20, minIdle: 20 }, workload: { perSecond: 5, hold: 20ms } }]
${more}`,
      'cold.yaml',
    );
    return { scenario, result: simulate(scenario) };
  };
  const one = cold('');
  const start = coldStartOf([one, one]);
  const untilMs = 'untilMs' in start ? start.untilMs : 0;
  expect(untilMs).toBeGreaterThan(9_000);
  expect(untilMs).toBeLessThan(15_000);
  const settled = simulateSettled(one.scenario, untilMs);
  expect(settled.waits.callers).toBeLessThan(one.result.waits.callers);
  expect([one.result.server.accepted, settled.server.accepted]).toEqual([20, 0]);
  expect([one.result.waits.max > 0, settled.waits.max]).toEqual([true, 0]);
  expect(settled.samples.timeMs[0]).toBeLessThanOrEqual(untilMs);
  expect(settled.samples.checkouts[0]).toBe(0);
  const run = { ...one, settled: { fromMs: untilMs, result: settled } };
  expect(terminalComparison(run, run)).toMatch(
    /^Left out: the cold start, the first [\d.]+ s, in which cold opened 20 connections and had \d+ callers, whose longest wait was /m,
  );
  expect(terminalComparison(run, run)).toMatch(/^ {2}opened +0 +0\n/m);
  expect(htmlReport(run, run)).toContain('<p>Left out: the cold start, the first ');
});

test('A cold start is compared where it is the subject', () => {
  const asking = parseScenario(
    'duration: 1m\nservices: [{ name: api }]\nassertions: { assertConvergeWithin: 1s }',
  );
  const run = { scenario: asking, result: simulate(asking) };
  expect(terminalComparison(good, run)).toContain(
    'The cold start is compared, too: small has assertConvergeWithin.\n',
  );
});

test('Charts keep the highest and the lowest of every line, however few points there are', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), (most) => {
      const { timeMs, charts } = chartsOf(good, most);
      expect(timeMs.length).toBe(Math.min(most, 61));
      expect(timeMs.at(-1)).toBe(60_000);
      const [ready] = charts[0]?.lines ?? [];
      expect(Math.max(...(ready?.high ?? []))).toBe(Math.max(...good.result.samples.ready));
      expect(Math.min(...(ready?.low ?? []))).toBe(Math.min(...good.result.samples.ready));
      for (const { lines } of charts)
        for (const { low, high } of lines) {
          expect(low.every((value, i) => value <= (high[i] as number))).toBe(true);
          expect([low.length, high.length]).toEqual([timeMs.length, timeMs.length]);
        }
    }),
  );
});

test('Charts show rates for what is counted, so that they add up to the count', () => {
  const { charts } = chartsOf(good, 1_000);
  const started = charts.flatMap(({ lines }) => lines).find(({ name }) => name === 'work started');
  const sum = (started?.high ?? []).reduce((all, value) => all + value, 0);
  expect(sum).toBeCloseTo(good.result.samples.workStarted.at(-1) ?? 0, 6);
});

test('Charts of one line are blocks, in which nothing is nothing and little is seen', () => {
  expect(sparkline([0, 0.01, 50, 100], 100)).toBe(' ▁▄█');
  expect(sparkline([0, 0], 0)).toBe('  ');
});

test('Numbers are written in one way everywhere', () => {
  expect([0, 999, 1_000, 1_234_567, 1_234.5, Number.POSITIVE_INFINITY].map(count)).toEqual([
    '0',
    '999',
    '1,000',
    '1,234,567',
    '1,234.5',
    'no limit',
  ]);
  expect([0.031_25, 1.2549, 87.46, 1_234.6].map(short)).toEqual(['0.0313', '1.25', '87.5', '1,235']);
  expect([0, 0.4123, 85, 2_100, 300_000, 3_725_000, 90_061_000].map(time)).toEqual([
    '0 ms',
    '0.412 ms',
    '85 ms',
    '2.1 s',
    '5m',
    '1h2m5s',
    '1d1h1m1s',
  ]);
  expect([0.964, 1, 0.000_084_5].map(percent)).toEqual(['96.4 %', '100 %', '0.00845 %']);
});

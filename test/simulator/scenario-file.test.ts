// Scenario files: what a good one says, and everything that is wrong with a bad one, each with its place.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseScenario, readScenarioFile } from '../../src/simulator/scenario/scenario-file.js';
import { readScenario } from '../../src/simulator/scenario/scenario-reader.js';
import { ScenarioError } from '../../src/simulator/scenario/scenario-reader-problems.js';

/** Problems of the file: `line:column path: message`. */
function problemsOf(text: string): string[] {
  try {
    parseScenario(text, 'bad.yaml');
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    return error.problems.map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
  }
  return [];
}

/** A scenario that is good, and lines that are added to it. */
function withLines(...lines: string[]): string {
  return ['duration: 10m', 'services:', '  - name: api', ...lines].join('\n');
}

test('A scenario file needs no more than a duration and a service; the rest is as with Aurora DSQL', () => {
  expect(parseScenario(withLines(), 'small.yaml')).toEqual({
    name: 'small',
    description: '',
    seed: 42,
    durationMs: 600_000,
    sampleMs: 1_000,
    server: {
      connectionLimit: 10_000,
      perSecond: 100,
      burst: 1_000,
      sessionLifetimeMs: 3_600_000,
      overload: 'refuse',
      dial: { kind: 'lognormal', medianMs: 80, p99Ms: 250 },
      refuse: { kind: 'fixed', ms: 10 },
      close: { kind: 'fixed', ms: 5 },
      dialFailures: 0,
    },
    limiter: undefined,
    coordinator: undefined,
    services: [
      {
        name: 'api',
        group: 'api',
        startDelayMs: 0,
        pool: {},
        workload: undefined,
        clockSkewMs: 0,
        clockDrift: 0,
      },
    ],
    faults: [],
    assertions: {
      maxConnectsPerSec: undefined,
      convergeWithinMs: undefined,
      stableForMs: undefined,
      zeroEmptyEvents: false,
      recoverWithinMs: undefined,
      waits: [],
      fairness: undefined,
      maxFailedCallers: undefined,
      maxOpened: undefined,
      maxEmptyEvents: undefined,
    },
  });
});

test('A scenario file may be JSON', () => {
  const { name, durationMs } = parseScenario('{ "duration": "1m", "services": [{ "name": "a" }] }', 'x.json');
  expect([name, durationMs]).toEqual(['x', 60_000]);
});

test('A scenario file describes itself by the comment at its top, unless it has a description', () => {
  const comment = '# What it is about.\n#\n#   indented\n\n';
  expect(parseScenario(comment + withLines()).description).toBe('What it is about.\n\n  indented');
  expect(parseScenario(`${comment.trimEnd()}\n${withLines()}`).description).toContain('What it is about.');
  expect(parseScenario(`${comment}description: other\n${withLines()}`).description).toBe('other');
});

test('A scenario file multiplies services out, with their delays and clocks', () => {
  const { services } = parseScenario(
    withLines(
      '    count: 3',
      '    startDelay: 1s',
      '    startDelayStep: 50ms',
      '    clockSkew: -2s',
      '    clockSkewStep: 1500ms',
    ),
  );
  expect(services.map(({ name, group }) => [name, group])).toEqual([
    ['api-1', 'api'],
    ['api-2', 'api'],
    ['api-3', 'api'],
  ]);
  expect(services.map(({ startDelayMs }) => startDelayMs)).toEqual([1_000, 1_050, 1_100]);
  expect(services.map(({ clockSkewMs }) => clockSkewMs)).toEqual([-2_000, -500, 1_000]);
});

test('A scenario file gives each pool what it says itself on top of what pools have in common', () => {
  const { services } = parseScenario(`
duration: 1m
defaults:
  pool: { max: 50, acquireTimeout: 5s, reservoir: { targetReady: 40, guardWindow: 30s } }
services:
  - name: same
  - { name: other, pool: { max: 60, reservoir: { targetReady: 10 } } }
  - { name: off, pool: { reservoir: false } }
  - { name: on, pool: { reservoir: true } }
`);
  const common = { max: 50, acquireTimeout: '5s', reservoir: { targetReady: 40, guardWindow: '30s' } };
  expect(services.map(({ pool }) => pool)).toEqual([
    common,
    { ...common, max: 60, reservoir: { targetReady: 10, guardWindow: '30s' } },
    { ...common, reservoir: false },
    common,
  ]);
});

test('A scenario file writes delays in four ways', () => {
  const { server, services } = parseScenario(`
duration: 1m
server: { dial: { median: 80ms, p99: 250ms }, close: 3ms }
services:
  - name: api
    workload:
      - { perSecond: 5, hold: { from: 10ms, to: 20ms } }
      - { perSecond: 5, hold: { mean: 1.5s } }
`);
  expect(server).toMatchObject({
    dial: { kind: 'lognormal', medianMs: 80, p99Ms: 250 },
    close: { kind: 'fixed', ms: 3 },
  });
  expect(services[0]?.workload?.arrivals.map(({ hold }) => hold)).toEqual([
    { kind: 'uniform', fromMs: 10, toMs: 20 },
    { kind: 'exponential', meanMs: 1_500 },
  ]);
});

test('A scenario file has faults in the order of their times, whatever their order in the file', () => {
  const { faults } = parseScenario(
    withLines(
      'faults:',
      '  - { kind: crash, at: 5m, for: 10s, services: api }',
      '  - { kind: mass_drop, at: 1m, fraction: 0.5 }',
      '  - { kind: crash, at: 6m }',
      '  - { kind: slow_dials, at: 2m, for: 1m, fraction: 0.2, delay: 8s }',
    ),
  );
  expect(faults.map(({ kind, atMs, durationMs, everyMs }) => [kind, atMs, durationMs, everyMs])).toEqual([
    ['mass_drop', 60_000, 0, 0],
    ['slow_dials', 120_000, 60_000, 0],
    ['crash', 300_000, 0, 10_000],
    ['crash', 360_000, 0, Number.POSITIVE_INFINITY],
  ]);
});

test('A scenario file has assertions in the words of the seed, and more', () => {
  const { assertions } = parseScenario(`
duration: 10m
services:
  - { name: a, workload: { perSecond: 1, hold: 1ms } }
  - { name: b, workload: { perSecond: 1, hold: 1ms } }
faults: [{ kind: cold_start, at: 1m }]
assertions:
  assertMaxConnectsPerSec: 100
  assertConvergeWithin: 60s
  assertStableFor: 5s
  assertZeroEmptyEvents: true
  assertRecoverWithin: 30s
  assertWait: { p50: 1ms, p99.9: 10ms, max: 1s }
  assertFairness: { jain: 0.9, tenantP99: 50ms }
  assertMaxFailedCallers: 0
  assertMaxOpened: 1000
  assertMaxEmptyEvents: 9
`);
  expect(assertions).toEqual({
    maxConnectsPerSec: 100,
    convergeWithinMs: 60_000,
    stableForMs: 5_000,
    zeroEmptyEvents: true,
    recoverWithinMs: 30_000,
    waits: [
      { percentile: 0.5, maxMs: 1 },
      { percentile: 0.999, maxMs: 10 },
      { percentile: 1, maxMs: 1_000 },
    ],
    fairness: { minJain: 0.9, maxTenantP99Ms: 50 },
    maxFailedCallers: 0,
    maxOpened: 1_000,
    maxEmptyEvents: 9,
  });
});

test('A bad scenario file is told all its problems at once, each with line, column, path and the nearest known key', () => {
  const text = `# A scenario with mistakes.
durration: 10m
sample: 0s
server:
  connectionLimit: none
  dial: { median: 80ms, p90: 250ms }
limiter:
  perSecond: 100
defaults:
  pool:
    max: 10
    minIdel: 5
services:
  - name: history
    count: 2
    pool:
      reservoir: { targetReady: 20 }
  - nmae: matching
faults:
  - kind: mass_dorp
    at: 5m
  - { kind: crash, at: 1m, services: [histroy], fraction: 0.5 }
assertions:
  assertConvergeIn: 60s
  assertWait: { p99: 10 }
`;
  expect(problemsOf(text)).toEqual([
    '2:1 durration: is not known here; did you mean duration?',
    '2:1 duration: is missing: how long the simulated time is, such as 20m',
    "3:1 sample: must be from 10ms to 7d, not '0s'",
    "5:3 server.connectionLimit: must be a whole number from 1 to 1,000,000, not 'none'",
    '6:3 server.dial: must be a delay such as 80ms, { median: 80ms, p99: 250ms }, { from: 10ms, to: 20ms }, { mean: 20ms }, { p50: 5ms, p99: 40ms, max: 90ms } or [[5ms, 90], [40ms, 10]]',
    '6:25 server.dial.p90: is not known here; did you mean p99?',
    '7:1 limiter.burst: is missing: such as 1000, or 1 for none',
    '12:5 defaults.pool.minIdel: is not an option; did you mean minIdle?',
    '17:20 services[0].pool.reservoir.targetReady: is 20, more than max, which is 10',
    '18:5 services[1].nmae: is not known here; did you mean name?',
    '18:5 services[1].name: is missing: such as history',
    "20:5 faults[0].kind: must be one of cold_start, rolling_restart, mass_drop, server_down, coordinator_outage, crash, pause, slow_dials, hung_connections, token_failures, not 'mass_dorp'; did you mean mass_drop?",
    "22:39 faults[1].services[0]: names 'histroy', and there is no such service; did you mean history?",
    '22:49 faults[1].fraction: has no meaning for crash',
    '24:3 assertions.assertConvergeIn: is not known here; did you mean assertConvergeWithin?',
    '25:3 assertions.assertWait: has nothing to judge: no service has a workload',
    '25:17 assertions.assertWait.p99: must be a duration with its unit, such as 500ms, 45s or 11m, not 10',
  ]);
});

test('A bad scenario file gets a message that an editor or a terminal can jump from', () => {
  expect(() => parseScenario('duration: 1m\nservices: 3', 'dir/bad.yaml')).toThrow(
    new ScenarioError('dir/bad.yaml', [
      { line: 2, column: 1, path: 'services', message: 'must be a mapping of keys to values, not 3' },
      { line: 2, column: 1, path: 'services.name', message: 'is missing: such as history' },
    ]),
  );
  const error = new ScenarioError('dir/bad.yaml', [{ line: 2, column: 1, path: 'a', message: 'is wrong' }]);
  expect(error.message).toBe('1 problem in dir/bad.yaml:\n  dir/bad.yaml:2:1  a: is wrong');
  expect(error.code).toBe('HG_BAD_SCENARIO');
});

test.each([
  ['that is not YAML', 'a: [1, 2', '1:9 : Flow sequence in block collection must be sufficiently indented'],
  ['with a key twice', 'seed: 1\nseed: 2', '2:1 : Map keys must be unique'],
  ['with two documents', `${withLines()}\n---\na: 1`, '4:1 : Source contains multiple documents'],
  ['with an unknown tag', 'seed: !secret 1', '1:7 : Unresolved tag: !secret'],
])('A bad scenario file %s is told so by line', (_name, text, start) => {
  expect(problemsOf(text)[0]).toMatch(start.slice(0, 40));
});

test('A bad scenario file that is empty is told what it needs', () => {
  expect(problemsOf('')).toEqual([
    '1:1 duration: is missing: how long the simulated time is, such as 20m',
    '1:1 services: is missing: a list with at least one service, such as - name: history',
  ]);
});

test('A bad scenario file blames what pools have in common once, and says for which services where that matters', () => {
  const shared = (line: string) => `duration: 1m
defaults:
  pool: { minIdle: 20 }
services:
  - { name: small, count: 40 }
  - { name: large, pool: { ${line} } }
`;
  expect(problemsOf(shared('idleFloor: 1'))).toEqual([
    '3:11 defaults.pool.minIdle: is 20, more than max, which is 10',
  ]);
  expect(problemsOf(shared('max: 30'))).toEqual([
    '3:11 defaults.pool.minIdle: is 20, more than max, which is 10 (in the pool of small)',
  ]);
});

test('A bad scenario file can not bring its own limiter or leases', () => {
  expect(problemsOf(withLines('    pool: { rateLimiter: 1, leases: {} }'))).toEqual([
    '4:13 services[0].pool.rateLimiter: is made by the simulator: see limiter',
    '4:29 services[0].pool.leases: is made by the simulator: see coordinator',
  ]);
});

test.each([
  [
    'a million services',
    withLines('    count: 1000000'),
    'services[0].count: must be a whole number from 1 to 1,000',
  ],
  [
    'too many services of several kinds',
    withLines('    count: 900', '  - { name: b, count: 900 }', 'sample: 10s'),
    'services: are 1,800 or more in all, more than the 1,000',
  ],
  [
    'too many connections',
    withLines('    count: 900', '    pool: { max: 1000 }', 'sample: 10s'),
    'services: have pools for 900,000 connections in all, more than the 200,000',
  ],
  [
    'too many callers',
    withLines('    workload: { perSecond: 1000000, hold: 1ms }'),
    'services: bring about 600,000,000 callers in all, more than the 20,000,000',
  ],
  ['a year', 'duration: 365d\nservices: [{ name: a }]', "duration: must be from 1s to 7d, not '365d'"],
  [
    'a week in samples of 10 ms',
    'duration: 7d\nsample: 10ms\nservices: [{ name: a }]',
    'sample: gives 120,960,000 rows to record for 1 service, more than the 500,000 that are kept; a sample of 3s would fit',
  ],
  ['a year of delay', withLines('server: { dial: 365d }'), "server.dial: must be from 0ms to 1h, not '365d'"],
  [
    'fault after the end',
    withLines('faults: [{ kind: cold_start, at: 11m }]'),
    "faults[0].at: must be from 0ms to 10m, not '11m'",
  ],
])('A bad scenario file may not ask for %s', (_what, text, message) => {
  const [problem, ...others] = problemsOf(text);
  expect(problem).toContain(message);
  expect(others).toEqual([]);
});

test('A bad scenario file may not ask for a file that is read for ever', () => {
  const bomb = ['a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]'];
  for (const [name, inner] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf']) {
    bomb.push(`${name}: &${name} [${Array.from({ length: 10 }, () => `*${inner}`).join(', ')}]`);
  }
  expect(problemsOf(bomb.join('\n'))).toEqual(['1:1 : is nested too deeply, or too large']);
  expect(problemsOf('a: &a [*a]')).toEqual(['1:1 : is nested too deeply, or too large']);
  expect(problemsOf(`# ${'x'.repeat(2_000_000)}`)).toEqual([
    'undefined:undefined : is longer than the 1048576 characters that are read',
  ]);
});

test('A bad scenario file with two services of one name, or a name that is none, is refused', () => {
  expect(problemsOf(withLines('    count: 2', '  - name: api-1'))).toEqual([
    '2:1 services: has two services named api-1',
  ]);
  expect(problemsOf('duration: 1m\nservices: [{ name: "<b>" }]')[0]).toContain("not '<b>'");
});

test('A bad scenario file is refused an assertion that could not fail', () => {
  const wishes = withLines(
    'assertions: { assertRecoverWithin: 1s, assertFairness: 0.9, assertMaxFailedCallers: 0 }',
  );
  expect(problemsOf(wishes).map((problem) => problem.replace(/^.*?: /, ''))).toEqual([
    'has nothing to judge: the scenario has no faults',
    'has nothing to judge: no service has a workload',
    'has nothing to judge: no service has a workload',
  ]);
});

test('A bad scenario file with a fault of a coordinator that is not there is refused', () => {
  expect(problemsOf(withLines('faults: [{ kind: coordinator_outage, at: 1m, for: 1m }]'))).toEqual([
    '4:12 faults[0].kind: is coordinator_outage, but the scenario has no coordinator',
  ]);
});

test.each([
  ['neither a rate nor bursts', '{ hold: 1ms }', 'must have one of perSecond (random arrivals), every'],
  ['both a rate and bursts', '{ perSecond: 1, every: 1s, hold: 1ms }', 'must have one of perSecond'],
  ['bursts at a rate', '{ perSecond: 1, burst: 5, hold: 1ms }', 'burst: belongs to every'],
  ['no hold', '{ perSecond: 1 }', 'hold: is missing: such as 20ms'],
  [
    'an end before its beginning',
    '{ perSecond: 1, hold: 1ms, from: 5m, until: 1m }',
    'until: is 60000 ms, not after from',
  ],
])('A bad scenario file with a workload that has %s is refused', (_name, workload, message) => {
  const [problem, ...others] = problemsOf(withLines(`    workload: ${workload}`));
  expect(problem).toContain(message);
  expect(others).toEqual([]);
});

test('A scenario that a program writes is checked in the same way, without lines', () => {
  expect(readScenario({ duration: '1m', services: [{ name: 'a' }] }, { name: 'mine' }).name).toBe('mine');
  expect(() => readScenario({ duration: '1m', services: [{ name: 'a', cuont: 2 }] })).toThrow(
    '1 problem in the scenario:\n  services[0].cuont: is not known here; did you mean count?',
  );
  expect(() => readScenario(null)).toThrow('must be a mapping of keys to values, not null');
});

test('A key named __proto__ is only an unknown key', () => {
  expect(problemsOf(withLines('    pool: { __proto__: { max: 5 } }'))).toEqual([
    '4:13 services[0].pool.__proto__: is not an option',
  ]);
  expect(problemsOf(`${withLines()}\n__proto__: 1`)[0]).toContain('__proto__: is not known here');
});

test('A file is read from the disk, unless it is far too long', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-scenario-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'mine.yml');
  writeFileSync(path, withLines());
  expect(readScenarioFile(path).name).toBe('mine');
  writeFileSync(path, ' '.repeat(2_000_000));
  expect(() => readScenarioFile(path)).toThrow('is 2000000 bytes long, more than the 1048576 that are read');
});

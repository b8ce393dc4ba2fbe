// Servers that queue logins, refusals with times of their own, measured delays, clients in a closed loop, and connections that hang.
import { expect, test } from 'vitest';
import { SeededRandom } from '../../src/kernel/random.js';
import { meanOf } from '../../src/simulator/scenario/delay-mean.js';
import type { Delay } from '../../src/simulator/scenario/scenario.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { ScenarioError } from '../../src/simulator/scenario/scenario-reader-problems.js';
import { simulate } from '../../src/simulator/simulate.js';
import { draw } from '../../src/simulator/time/chance.js';

function run(...lines: string[]) {
  return simulate(parseScenario(lines.join('\n')));
}

function problemsOf(...lines: string[]): string {
  try {
    parseScenario(lines.join('\n'));
    return '';
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`).join('\n');
  }
}

const herd = [
  'duration: 1m',
  'services: [{ name: a, count: 4, pool: { max: 50, minIdle: 50, dialLimit: 50, dialTimeout: 30s } }]',
];

test('A server that queues logins refuses none: logins beyond the rate succeed one after the other', () => {
  const server = 'perSecond: 20, burst: 1, dial: 20ms';
  const refusing = run(...herd, `server: { ${server} }`);
  expect(refusing.server.refusedRate).toBeGreaterThan(0);
  const queueing = run(...herd, `server: { ${server}, overload: queue }`);
  expect(queueing.laws).toEqual([]);
  expect(queueing.server).toMatchObject({ accepted: 200, refusedRate: 0, refusedFull: 0 });
  expect(queueing.server.longestQueue).toBeGreaterThan(150);
  expect(queueing.server.peakPerSecond).toBeLessThanOrEqual(21);
  const full = queueing.services.map(({ convergedAtMs = 0 }) => convergedAtMs);
  expect(Math.max(...full)).toBeGreaterThan(9_900);
  expect(Math.max(...full)).toBeLessThan(10_100);
});

test('A server that queues logins keeps those beyond its limit until a connection is closed, or they give up', () => {
  const server = 'server: { connectionLimit: 60, overload: queue }';
  const { server: seen, laws } = run(...herd, server);
  expect(laws).toEqual([]);
  expect(seen.peakConnections).toBe(60);
  expect(seen.refusedFull).toBe(0);
});

test('A server that queues logins can not be reached while it is down', () => {
  const fault = 'faults: [{ kind: server_down, at: 2s, for: 10s }]';
  const { laws, faults } = run(...herd, 'server: { perSecond: 20, burst: 1, overload: queue }', fault);
  expect(laws).toEqual([]);
  expect(faults[0]?.untilMs).toBe(12_000);
});

test('A refusal takes its own time, and not that of a login', () => {
  const tries = (refuse: string) =>
    run(
      'duration: 1m',
      `server: { connectionLimit: 1, dial: 2s, refuse: ${refuse} }`,
      'services: [{ name: a, pool: { max: 2, minIdle: 2, backoffBase: 10ms, backoffCap: 10ms, breakerThreshold: 1000000 } }]',
    ).server.refusedFull;
  expect(tries('1s')).toBeLessThan(65);
  expect(tries('10ms')).toBeGreaterThan(2_000);
});

const read = (written: string): Delay =>
  parseScenario(`duration: 1m\nservices: [{ name: a }]\nserver: { dial: ${written} }`).server.dial;
const drawn = (delay: Delay): number[] => {
  const random = new SeededRandom(7);
  return Array.from({ length: 20_000 }, () => draw(delay, random)).sort((one, other) => one - other);
};

test('A delay as it was measured has the percentiles that it was given, and no length beyond them', () => {
  const delay = read('{ min: 1ms, p50: 5ms, p90: 20ms, p99: 80ms, max: 300ms }');
  const lengths = drawn(delay);
  const at = (part: number) => lengths[Math.floor(part * lengths.length)] as number;
  expect(at(0.5)).toBeCloseTo(5, 0);
  expect(Math.abs(at(0.9) - 20)).toBeLessThan(1);
  expect(Math.abs(at(0.99) - 80)).toBeLessThan(8);
  expect(lengths[0]).toBeGreaterThanOrEqual(1);
  expect(lengths.at(-1)).toBeLessThanOrEqual(300);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  expect(Math.abs(mean - meanOf(delay))).toBeLessThan(0.3);
});

test('A delay as it was measured has the lengths that were counted, as often', () => {
  const delay = read('[[5ms, 90], [40ms, 9], [2s, 1]]');
  const lengths = drawn(delay);
  expect(new Set(lengths)).toEqual(new Set([5, 40, 2_000]));
  expect(lengths.filter((length) => length === 5).length / lengths.length).toBeCloseTo(0.9, 1);
  expect(meanOf(delay)).toBeCloseTo(28.1, 5);
});

test.each([
  ['{ p50: 9ms, p99: 8ms }', 'server.dial.p99: is 8 ms, less than p50, which is 9 ms'],
  ['{ p50: 9ms, p9x: 8ms }', 'server.dial.p9x: is not a percentile'],
  ['[]', 'server.dial: must have 1 to 1000 lengths, not 0'],
  ['[[5ms, 0]]', 'server.dial[0]: must have a weight above 0, not 0'],
  ['[5ms]', 'server.dial[0]: must be a length and how often it was seen'],
])('A delay as it was measured is refused: %s', (written, problem) => {
  const scenario = ['duration: 1m', 'services: [{ name: a }]', `server: { dial: ${written} }`];
  expect(problemsOf(...scenario)).toContain(problem);
});

const loop = (more: string, ...lines: string[]) =>
  run(
    'duration: 1m',
    'server: { dial: 10ms }',
    `services: [{ name: a, pool: { max: 2 }, workload: { clients: 10, hold: 100ms${more} } }]`,
    ...lines,
  );

test('Clients in a closed loop come no faster than they are served', () => {
  const { waits, tenants, laws } = loop('');
  expect(laws).toEqual([]);
  // Two connections, ten a second each.
  expect(tenants[0]?.completed).toBeGreaterThan(1_190);
  expect(tenants[0]?.completed).toBeLessThanOrEqual(1_200);
  expect(waits).toMatchObject({ failed: 0, p50: expect.closeTo(400, -1) });
});

test('Clients in a closed loop think between two visits', () => {
  const { waits, tenants } = loop(', think: { mean: 9900ms }');
  expect(tenants[0]?.completed).toBeGreaterThan(30);
  expect(tenants[0]?.completed).toBeLessThan(90);
  expect(waits.p50).toBe(0);
});

test('Clients in a closed loop come again after a crash, a restart and a refusal', () => {
  const { tenants, laws } = loop(
    ', maxWait: 50ms',
    'faults: [{ kind: crash, at: 20s, for: 5s }, { kind: rolling_restart, at: 40s, every: 1s }]',
  );
  expect(laws).toEqual([]);
  expect(tenants[0]?.completed).toBeGreaterThan(950);
  expect(tenants[0]?.failed).toBeGreaterThan(100);
});

test('Clients in a closed loop need time for a round', () => {
  const scenario = ['duration: 1m', 'services: [{ name: a, workload: { clients: 3, hold: 0 } }]'];
  expect(problemsOf(...scenario)).toContain('workload.clients: must take at least 1 ms');
});

const hang = (pool: string, workload: string) =>
  run(
    'duration: 3m',
    'server: { dial: 10ms }',
    `services: [{ name: a, pool: { max: 4${pool} }, workload: { clients: 8, think: 50ms, hold: 20ms, maxWait: 1s${workload} } }]`,
    'faults: [{ kind: hung_connections, at: 1m, for: 1m }]',
  );

test('Connections that hang keep their callers, and so the whole pool, until they answer again', () => {
  const { waits, ends, laws } = hang('', '');
  expect(laws).toEqual([]);
  expect(ends.cutOff).toBe(0);
  // Four callers hang with the connections, and four wait for a second again and again.
  expect(waits.failed).toBeGreaterThan(200);
});

test('Connections that hang are given back as broken after the timeout of a query, and the server keeps them', () => {
  // Their end is not answered either, and takes as long as the pool waits for it.
  const { waits, ends, laws, server } = hang(', closeTimeout: 100ms', ', queryTimeout: 500ms');
  expect(laws).toEqual([]);
  expect(ends.cutOff).toBe(4);
  expect(waits.failed).toBe(0);
  expect(server.peakConnections).toBe(8);
});

test('Connections that hang are found by a check before a caller has one', () => {
  const { waits, ends, laws } = run(
    'duration: 3m',
    'server: { dial: 10ms }',
    'services: [{ name: a, pool: { max: 4, minIdle: 4, checkAfterIdle: 1s, checkTimeout: 200ms }, workload: { every: 10s, hold: 20ms } }]',
    'faults: [{ kind: hung_connections, at: 65s, for: 1m }]',
  );
  expect(laws).toEqual([]);
  expect(ends.cutOff).toBe(0);
  expect(waits.failed).toBe(0);
  expect(waits.max).toBeGreaterThan(199);
});

test('Connections that hang are destroyed when their end is not answered', () => {
  const { laws, samples, server } = run(
    'duration: 3m',
    'server: { dial: 10ms }',
    'services: [{ name: a, pool: { max: 4, idleTimeout: 10s, closeTimeout: 2s }, workload: { every: 3m, burst: 4, hold: 2s } }]',
    'faults: [{ kind: hung_connections, at: 5s, for: 1m }]',
  );
  expect(laws).toEqual([]);
  expect(samples.closing[13]).toBe(4);
  expect(samples.closing[16]).toBe(0);
  expect(server.accepted).toBe(4);
});

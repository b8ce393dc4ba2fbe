// Each kind of fault does to the world what it says, and is recovered from.
import { expect, test } from 'vitest';
import type { SimulationResult } from '../../src/simulator/result.js';
import { simulate } from '../../src/simulator/simulate.js';
import {
  at,
  callers,
  discardsOf,
  final,
  type SmallScenario,
  scenario,
  service,
  services,
} from './small-worlds.js';

const busy = callers({ perSecond: 20, hold: { kind: 'fixed', ms: 100 } });

/** Two services with ten connections each, and a law-abiding end. */
function run(changes: SmallScenario): SimulationResult {
  const result = simulate(scenario({ services: services(2), ...changes }));
  expect(result.laws).toEqual([]);
  return result;
}

test('mass_drop: that part of the connections breaks, those in use included, and is replaced', () => {
  const long = callers({ everyMs: 1_000, burst: 5, hold: { kind: 'fixed', ms: 900 } });
  const result = run({
    services: services(2, undefined, long),
    faults: [{ kind: 'mass_drop', atMs: 20_500, fraction: 0.5 }],
  });
  expect(discardsOf(result)).toEqual({ broken: 10 });
  expect(final(result, 'ready') + final(result, 'inUse')).toBe(20);
  // Some of the ten that were in use at that moment did not get to the end of their work.
  const interrupted = final(result, 'workStarted') - final(result, 'workCompleted') - final(result, 'inUse');
  expect(interrupted).toBeGreaterThan(0);
  expect(interrupted).toBeLessThan(10);
  expect(result.ends).toEqual({ cutOff: interrupted, keptAway: 0 });
  expect(result.faults).toEqual([
    {
      kind: 'mass_drop',
      fromMs: 20_500,
      untilMs: 20_500,
      services: ['orders-1', 'orders-2'],
      recoveredAtMs: expect.any(Number),
    },
  ]);
  expect(result.faults[0]?.recoveredAtMs).toBeGreaterThan(20_510);
  expect(result.faults[0]?.recoveredAtMs).toBeLessThan(21_500);
});

test('a fault strikes the services and groups that it names, and no others', () => {
  const result = run({
    services: [service('orders-1'), service('orders-2'), service('reports')],
    faults: [
      { kind: 'mass_drop', fraction: 1, services: ['reports'] },
      { kind: 'mass_drop', atMs: 30_000, fraction: 1, services: ['orders'] },
    ],
  });
  const broken = result.services.map(({ samples }) => samples.discards.broken.at(-1));
  expect(broken).toEqual([10, 10, 10]);
  expect(result.faults.map((fault) => fault.services)).toEqual([['reports'], ['orders-1', 'orders-2']]);
});

test('server_down: every session ends, no dial gets through, and afterwards all is as before', () => {
  const result = run({
    services: services(2, undefined, busy),
    faults: [{ kind: 'server_down', durationMs: 10_000 }],
  });
  expect(at(result, 25_000, 'ready') + at(result, 25_000, 'inUse')).toBe(0);
  expect(result.waits.failed).toBeGreaterThan(100);
  expect(final(result, 'ready') + final(result, 'inUse')).toBe(20);
  expect(result.faults[0]).toMatchObject({ fromMs: 20_000, untilMs: 30_000 });
  expect(result.faults[0]?.recoveredAtMs).toBeGreaterThan(30_000);
});

test('crash: a process is gone with all it had, callers included, and a new one starts from nothing', () => {
  const result = run({
    services: [service('orders', undefined, busy)],
    faults: [{ kind: 'crash', everyMs: 5_000 }],
  });
  expect(at(result, 22_000, 'ready') + at(result, 22_000, 'inUse')).toBe(0);
  // While it is down, nobody comes to it.
  expect(at(result, 25_000, 'workStarted')).toBe(at(result, 20_000, 'workStarted'));
  expect(at(result, 30_000, 'workStarted')).toBeGreaterThan(at(result, 25_000, 'workStarted'));
  expect(result.server.accepted).toBe(20);
  expect(final(result, 'refills')).toBe(20);
  expect(discardsOf(result)).toEqual({});
  expect(result.faults[0]).toMatchObject({ fromMs: 20_000, untilMs: 25_000 });
});

test('a process that crashes for good is not waited for', () => {
  const result = run({
    faults: [{ kind: 'crash', services: ['orders-1'], everyMs: Number.POSITIVE_INFINITY }],
    assertions: { recoverWithinMs: 1 },
  });
  expect(final(result, 'ready')).toBe(10);
  expect(result.passed).toBe(true);
});

test('cold_start: all end in good order, are down for a while, and start together from nothing', () => {
  const result = run({ faults: [{ kind: 'cold_start', everyMs: 3_000 }] });
  expect(at(result, 21_000, 'ready')).toBe(0);
  expect(at(result, 25_000, 'ready')).toBe(20);
  expect(discardsOf(result)).toEqual({ drained: 20 });
  const { untilMs, recoveredAtMs } = result.faults[0] as (typeof result.faults)[number];
  expect(untilMs).toBeGreaterThanOrEqual(23_000);
  expect(recoveredAtMs).toBeGreaterThan(untilMs);
});

test('a cold start before a service has started leaves its start as it was planned', () => {
  const result = run({
    services: [service('orders', undefined, { startDelayMs: 5_000 })],
    faults: [{ kind: 'cold_start', atMs: 0, everyMs: 1_000 }],
  });
  expect(at(result, 4_000, 'pending') + at(result, 4_000, 'ready')).toBe(0);
  expect(final(result, 'ready')).toBe(10);
});

test('rolling_restart: one service after the other drains, serves those who are in it, and starts anew', () => {
  const result = run({
    services: services(3, undefined, callers({ perSecond: 5, hold: { kind: 'fixed', ms: 500 } })),
    faults: [{ kind: 'rolling_restart', everyMs: 5_000 }],
  });
  expect(discardsOf(result)).toEqual({ drained: 30 });
  expect(result.waits.failed).toBe(0);
  // A caller that had a connection when its process began to drain kept it.
  expect(final(result, 'workStarted') - final(result, 'workCompleted')).toBe(final(result, 'inUse'));
  for (const one of result.services) expect(one.samples.ready.at(-1)).toBeGreaterThan(0);
  const [first, , last] = result.services.map(({ samples }) => samples.discards.drained);
  expect(first?.[22]).toBe(10);
  expect(last?.[29]).toBe(0);
  expect(last?.[32]).toBe(10);
  expect(result.faults[0]?.untilMs).toBeGreaterThan(30_000);
});

test('connections still in use at the deadline of a restart are closed', () => {
  const result = run({
    durationMs: 80_000,
    services: [
      service('orders', undefined, callers({ everyMs: 100_000, hold: { kind: 'fixed', ms: 70_000 } })),
    ],
    faults: [{ kind: 'rolling_restart', everyMs: 1 }],
  });
  expect(discardsOf(result)).toEqual({ drained: 9, drain_deadline: 1 });
  expect(result.faults[0]?.untilMs).toBeCloseTo(50_000, -2);
});

test('pause: a process stands still, the world goes on, and what was due happens late', () => {
  const result = run({
    services: [service('orders', { max: 10, reservoir: { emptyWait: '5s' } }, busy), service('reports')],
    faults: [{ kind: 'pause', services: ['orders'], durationMs: 5_000 }],
  });
  const [orders] = result.services;
  const at20 = orders?.samples.checkouts[20] as number;
  expect(orders?.samples.checkouts[24]).toBe(at20);
  expect(orders?.samples.checkouts[26]).toBeGreaterThan(at20 + 60);
  // Callers that came meanwhile have waited since then.
  expect(result.waits.max).toBeGreaterThan(4_500);
  expect(result.waits.max).toBeLessThan(6_500);
});

test('a session that ends while its process stands still is found out afterwards', () => {
  const result = run({
    services: [service('orders')],
    faults: [
      { kind: 'pause', atMs: 20_000, durationMs: 10_000 },
      { kind: 'mass_drop', atMs: 25_000, fraction: 1 },
    ],
  });
  expect(at(result, 29_000, 'ready')).toBe(10);
  expect(discardsOf(result)).toEqual({ broken: 10 });
  expect(result.faults[1]?.recoveredAtMs).toBeGreaterThan(30_000);
});

test('a process that crashes while it stands still does not wake up', () => {
  const result = run({
    services: [service('orders', undefined, busy)],
    faults: [
      { kind: 'pause', atMs: 20_000, durationMs: 10_000 },
      { kind: 'crash', atMs: 25_000, everyMs: 2_000 },
    ],
  });
  expect(at(result, 28_000, 'checkouts')).toBeGreaterThan(at(result, 25_000, 'checkouts'));
  expect(final(result, 'ready') + final(result, 'inUse')).toBe(10);
});

test('slow_dials: that part of the dials takes so long, and those that take too long are given up', () => {
  const pool = { max: 20, reservoir: true, dialTimeout: 2_000 };
  const slowed = (fraction: number) =>
    run({
      services: [service('orders', pool)],
      faults: [
        {
          kind: 'slow_dials',
          atMs: 0,
          durationMs: 10_000,
          fraction,
          delay: { kind: 'fixed', ms: 60_000 },
        },
      ],
    });
  const all = slowed(1);
  expect(at(all, 9_000, 'ready')).toBe(0);
  expect(final(all, 'refillFailures')).toBeGreaterThan(5);
  expect(final(all, 'ready')).toBe(20);
  const some = slowed(0.3);
  expect(at(some, 9_000, 'ready')).toBeGreaterThan(0);
  expect(final(some, 'refillFailures')).toBeGreaterThan(0);
});

test('token_failures: no credential, no dial, and the failures carry that word', () => {
  const result = run({
    services: [service('orders', { max: 10, reservoir: true, backoffCap: 1_000 })],
    faults: [{ kind: 'token_failures', atMs: 0, durationMs: 10_000 }],
  });
  expect(at(result, 9_000, 'ready')).toBe(0);
  expect(result.services[0]?.refillFailures).toMatchObject({ connection_open: 0, rate_limit: 0 });
  expect(result.services[0]?.refillFailures.token_provider).toBeGreaterThan(3);
  expect(result.server.accepted).toBe(10);
  expect(final(result, 'ready')).toBe(10);
});

test('faults may overlap, and each has its own recovery', () => {
  const result = run({
    services: services(2, undefined, busy),
    faults: [
      { kind: 'server_down', atMs: 10_000, durationMs: 5_000 },
      { kind: 'server_down', atMs: 12_000, durationMs: 8_000 },
      { kind: 'mass_drop', atMs: 40_000, fraction: 0.3 },
    ],
  });
  expect(at(result, 17_000, 'ready')).toBe(0);
  const [first, second, third] = result.faults;
  expect(first?.recoveredAtMs).toBeGreaterThan(20_000);
  expect(second?.untilMs).toBe(20_000);
  expect(third?.recoveredAtMs).toBeGreaterThan(40_000);
});

test('clocks that differ and run at different speeds change nothing that matters', () => {
  const skewed = (index: number) => ({
    clockSkewMs: index * 3_600_000 * (index % 2 ? 1 : -1),
    clockDrift: index / 50,
  });
  const fleet = Array.from({ length: 5 }, (_, index) => {
    return service(`orders-${index}`, undefined, { ...busy, ...skewed(index) });
  });
  const result = run({
    services: fleet,
    limiter: { perSecond: 10, burst: 10, scope: 'shared' },
    coordinator: { leaseLimit: 50, latency: { kind: 'fixed', ms: 5 }, timeoutMs: 1_000 },
    faults: [{ kind: 'mass_drop', fraction: 0.5 }],
  });
  expect(final(result, 'ready') + final(result, 'inUse')).toBe(50);
  expect(result.server.peakPerSecond).toBeLessThanOrEqual(20);
});

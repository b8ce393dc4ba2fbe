// The leases of the product, and a coordinator behind a network that is slow, and at times not there.
import { expect, test } from 'vitest';
import type { SimulationResult } from '../../src/simulator/result.js';
import type { CoordinatorPlan } from '../../src/simulator/scenario/scenario.js';
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

const near: CoordinatorPlan = { leaseLimit: 40, latency: { kind: 'fixed', ms: 4 }, timeoutMs: 500 };
/** Connections that live for about ten seconds, so that leases are needed all the time. */
const shortLived = {
  max: 10,
  reservoir: { baseLifetime: 10_000, lifetimeJitter: 4_000, guardWindow: 1_000 },
};

function run(changes: SmallScenario): SimulationResult {
  const result = simulate(scenario({ coordinator: near, services: services(2), ...changes }));
  expect(result.laws).toEqual([]);
  return result;
}

test('every connection has a lease, and with enough of them all services have what they want', () => {
  const result = run({});
  expect(final(result, 'ready')).toBe(20);
  expect(result.coordinator).toEqual({ leaseLimit: 40, peakLeases: expect.any(Number), leases: 20 });
});

test('without a coordinator there is no record of one', () => {
  expect(run({ coordinator: undefined }).coordinator).toBeUndefined();
});

test('with too few leases, services share what there is, and the others wait for what is given back', () => {
  const result = run({
    services: services(4, shortLived),
    coordinator: { ...near, leaseLimit: 25 },
  });
  expect(result.coordinator).toMatchObject({ peakLeases: 25 });
  expect(final(result, 'ready')).toBeGreaterThanOrEqual(23);
  expect(final(result, 'ready')).toBeLessThanOrEqual(25);
  expect(result.services.some(({ refillFailures }) => refillFailures.lease_acquire > 0)).toBe(true);
  for (const { samples } of result.services) expect(samples.refills.at(-1)).toBeGreaterThan(0);
});

test('a reservoir that is short of leases counts one failure for each lease that it waits for, however long that takes', () => {
  const result = run({
    durationMs: 600_000,
    services: services(2),
    coordinator: { ...near, leaseLimit: 15 },
  });
  const failures = result.services.map(({ refillFailures }) => refillFailures.lease_acquire);
  expect(Math.max(...failures)).toBeGreaterThan(0);
  // Whatever is opened may have been waited for, and one more is.
  for (const [index, { samples }] of result.services.entries())
    expect(failures[index]).toBeLessThanOrEqual((samples.refills.at(-1) ?? 0) + 1);
});

test('a service that ends gives its leases back, and waiting services get them', () => {
  const result = run({
    services: [service('orders'), service('reports', undefined, { startDelayMs: 5_000 })],
    coordinator: { ...near, leaseLimit: 10 },
    faults: [{ kind: 'cold_start', services: ['orders'], everyMs: 100_000 }],
  });
  expect(at(result, 19_000, 'ready')).toBe(10);
  const [orders, reports] = result.services;
  expect(orders?.samples.ready[19]).toBe(10);
  expect(reports?.samples.ready[19]).toBe(0);
  expect(orders?.samples.ready.at(-1)).toBe(0);
  expect(reports?.samples.ready.at(-1)).toBe(10);
});

test('the leases of a process that crashed are gone with it, and its successor needs others', () => {
  const result = run({ faults: [{ kind: 'crash', services: ['orders-1'], everyMs: 1_000 }] });
  expect(final(result, 'ready')).toBe(20);
  expect(result.coordinator).toMatchObject({ leases: 30 });
  const short = run({
    coordinator: { ...near, leaseLimit: 25 },
    faults: [{ kind: 'crash', services: ['orders-1'], everyMs: 1_000 }],
  });
  expect(final(short, 'ready')).toBe(15);
});

test('coordinator_outage: connections are replaced with the leases that there are, and no service gets more until it is over', () => {
  const late = service('late', shortLived, { startDelayMs: 22_000 });
  const result = run({
    services: [...services(2, shortLived), late],
    faults: [{ kind: 'coordinator_outage', atMs: 20_000, durationMs: 15_000 }],
  });
  const [first, , newcomer] = result.services;
  // By then all that there was has reached the end of its life.
  expect(at(result, 34_000, 'ready')).toBeGreaterThan(15);
  expect(first?.refillFailures.lease_acquire).toBe(0);
  expect(newcomer?.samples.ready[34]).toBe(0);
  expect(newcomer?.refillFailures.lease_acquire).toBeGreaterThan(2);
  expect(final(result, 'ready')).toBe(30);
  // Services that were full before have missed nothing.
  expect(result.faults[0]).toMatchObject({ fromMs: 20_000, untilMs: 35_000, recoveredAtMs: 35_000 });
});

test('pools that need nothing new do not notice an outage', () => {
  const result = run({
    services: services(2, undefined, callers({ perSecond: 20, hold: { kind: 'fixed', ms: 50 } })),
    faults: [{ kind: 'coordinator_outage', atMs: 20_000, durationMs: 15_000 }],
    assertions: { recoverWithinMs: 1, maxFailedCallers: 0 },
  });
  expect(result.passed).toBe(true);
});

test('a service that is restarted during an outage gives its leases back when it is over', () => {
  const result = run({
    coordinator: { ...near, leaseLimit: 20 },
    faults: [
      { kind: 'coordinator_outage', atMs: 20_000, durationMs: 10_000 },
      { kind: 'rolling_restart', atMs: 22_000, everyMs: 1_000 },
    ],
  });
  expect(at(result, 29_000, 'ready')).toBe(0);
  expect(final(result, 'ready')).toBe(20);
  expect(discardsOf(result)).toEqual({ drained: 20 });
});

test('requests that are answered too late are cancelled, and no lease is lost', () => {
  const result = run({
    durationMs: 120_000,
    coordinator: { leaseLimit: 20, latency: { kind: 'uniform', fromMs: 0, toMs: 400 }, timeoutMs: 200 },
    services: services(2, shortLived),
  });
  expect(result.services[0]?.refillFailures.lease_acquire).toBeGreaterThan(5);
  expect(final(result, 'refills')).toBeGreaterThan(100);
});

test('a lease that is granted to a process that stands still or is gone is not lost', () => {
  const result = run({
    durationMs: 90_000,
    coordinator: { leaseLimit: 15, latency: { kind: 'fixed', ms: 200 }, timeoutMs: 1_000 },
    services: services(3, shortLived),
    faults: [
      { kind: 'pause', services: ['orders-1'], atMs: 10_000, durationMs: 20_000 },
      { kind: 'cold_start', services: ['orders-2'], atMs: 12_000, everyMs: 5_000 },
      { kind: 'coordinator_outage', services: ['orders-3'], atMs: 14_000, durationMs: 7_000 },
    ],
  });
  expect(final(result, 'ready')).toBeGreaterThan(10);
  expect(result.coordinator?.leases).toBeLessThanOrEqual(15);
});

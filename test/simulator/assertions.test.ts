// Every assertion holds where it should, and fails where it should.
import { expect, test } from 'vitest';
import type { AssertionOutcome } from '../../src/simulator/result.js';
import { simulate } from '../../src/simulator/simulate.js';
import { callers, type SmallScenario, scenario, service, services } from './small-worlds.js';

/** The outcomes of a run that breaks no law. Whether it passed must agree with them. */
function outcomesOf(changes: SmallScenario): readonly AssertionOutcome[] {
  const result = simulate(scenario(changes));
  expect(result.laws).toEqual([]);
  expect(result.passed).toBe(result.assertions.every(({ passed }) => passed));
  return result.assertions;
}

function only(changes: SmallScenario): AssertionOutcome {
  const outcomes = outcomesOf(changes);
  expect(outcomes).toHaveLength(1);
  return outcomes[0] as AssertionOutcome;
}

test('nothing is judged that was not asked for', () => {
  expect(outcomesOf({})).toEqual([]);
});

test('assertMaxConnectsPerSec: the server counts, within any second', () => {
  const fleet = services(2, { max: 20, reservoir: true, dialLimit: 20 });
  expect(only({ services: fleet, assertions: { maxConnectsPerSec: 40 } })).toEqual({
    name: 'assertMaxConnectsPerSec',
    passed: true,
    expected: 'at most 40 connections accepted within any one second',
    actual: 'up to 40',
  });
  expect(only({ services: fleet, assertions: { maxConnectsPerSec: 39 } }).passed).toBe(false);
});

test('assertMaxConnectsPerSec: two bursts in two calendar seconds, a moment apart, are one burst', () => {
  // One service starts just before the turn of a second and one just after it.
  const boundary = [950, 1_050].map((startDelayMs, index) => {
    return service(`orders-${index}`, { max: 20, reservoir: true, dialLimit: 20 }, { startDelayMs });
  });
  const outcome = only({
    services: boundary,
    server: { dial: { kind: 'fixed', ms: 20 } },
    assertions: { maxConnectsPerSec: 20 },
  });
  expect(outcome).toMatchObject({ passed: false, actual: 'up to 40' });
});

test('assertConvergeWithin: every service must have all it wants by then', () => {
  const slow = { limiter: { perSecond: 2, burst: 2, scope: 'perService' } as const };
  const late = only({ ...slow, assertions: { convergeWithinMs: 3_000 } });
  expect(late).toMatchObject({ name: 'assertConvergeWithin', passed: false });
  expect(late.actual).toMatch(/^after 4\.\d+s$/);
  expect(only({ ...slow, assertions: { convergeWithinMs: 6_000 } }).passed).toBe(true);
  const never = only({
    services: services(2),
    server: { connectionLimit: 15 },
    assertions: { convergeWithinMs: 60_000 },
  });
  expect(never.passed).toBe(false);
  expect(never.actual).toMatch(/^never: [12] of 2 services did not, such as orders-\d with \d of 10$/);
});

test('assertConvergeWithin: connections in use are had, and pools without a reservoir want what they keep', () => {
  const busy = callers({ everyMs: 10_000, burst: 10, hold: { kind: 'fixed', ms: 60_000 } });
  const pools = [
    { max: 10, reservoir: true },
    { max: 10, minIdle: 4 },
    { max: 10, keeper: { target: 6 } },
    { max: 3 },
  ];
  for (const pool of pools) {
    const outcome = only({
      services: [service('orders', pool, busy)],
      assertions: { convergeWithinMs: 10_000 },
    });
    expect(outcome.passed).toBe(true);
  }
});

test('assertStableFor: a service that loses what it had fails it, unless a fault is to blame', () => {
  // Lives end all at once, faster than the limiter lets them be replaced.
  const dying = {
    services: [
      service('orders', {
        max: 10,
        minIdle: 10,
        maxLifetime: 10_000,
        maxLifetimeJitter: 0,
        guardWindow: 0,
      }),
    ],
    limiter: { perSecond: 5, burst: 10, scope: 'perService' } as const,
  };
  const dip = only({ ...dying, assertions: { stableForMs: 30_000 } });
  expect(dip).toMatchObject({ name: 'assertStableFor', passed: false });
  expect(dip.actual).toMatch(/^orders had \d of 10 at 10\.\d+s$/);
  expect(only({ ...dying, assertions: { stableForMs: 5_000 } }).passed).toBe(true);
  const dropped = { faults: [{ kind: 'mass_drop', atMs: 5_000, fraction: 0.9 } as const] };
  expect(only({ ...dropped, assertions: { stableForMs: 30_000 } }).passed).toBe(true);
});

test('assertStableFor: it can be shown only after all have what they want, and for as long as there is time', () => {
  const never = only({ server: { connectionLimit: 5 }, assertions: { stableForMs: 1_000 } });
  expect(never).toMatchObject({ passed: false, actual: 'not all services ever had what they want' });
  const short = only({ assertions: { stableForMs: 59_999 } });
  expect(short.passed).toBe(false);
  expect(short.actual).toMatch(/^the simulation ended 59\.\d+s later$/);
});

test('assertZeroEmptyEvents: all empty events of all services count, but those before a process was full', () => {
  const early = callers({ everyMs: 100_000, burst: 3, maxWaitMs: 5_000 });
  const outcome = only({ services: services(2, undefined, early), assertions: { zeroEmptyEvents: true } });
  expect(outcome).toMatchObject({ passed: true, actual: '0 did, and 6 before' });
  const late = callers({ fromMs: 30_000, everyMs: 100_000, burst: 13, maxWaitMs: 5_000 });
  const failing = only({ services: services(2, undefined, late), assertions: { zeroEmptyEvents: true } });
  expect(failing).toMatchObject({ name: 'assertZeroEmptyEvents', passed: false, actual: '6 did' });
});

test('assertZeroEmptyEvents: a service that was never full has no excuse, and one that starts anew has one', () => {
  const calling = callers({ everyMs: 1_000, burst: 1, maxWaitMs: 10 });
  const never = only({
    services: services(1, undefined, calling),
    server: { connectionLimit: 0 },
    assertions: { zeroEmptyEvents: true },
  });
  expect(never).toMatchObject({ passed: false, actual: '60 did' });
  const restarted = only({
    services: services(1, undefined, calling),
    faults: [{ kind: 'crash', atMs: 20_900, everyMs: 90 }],
    assertions: { zeroEmptyEvents: true },
  });
  expect(restarted).toMatchObject({ passed: true, actual: '0 did, and 2 before' });
});

test('assertRecoverWithin: each fault is judged, not only the first', () => {
  const limiter = { perSecond: 2, burst: 10, scope: 'perService' } as const;
  const faults = [
    { kind: 'mass_drop', atMs: 10_000, fraction: 0.5 } as const,
    { kind: 'mass_drop', atMs: 11_000, fraction: 1 } as const,
  ];
  const outcome = only({ limiter, faults, assertions: { recoverWithinMs: 1_000 } });
  expect(outcome).toMatchObject({ name: 'assertRecoverWithin', passed: false });
  expect(outcome.actual).toMatch(/^mass_drop at 10s: \d+(\.\d+)?m?s, mass_drop at 11s: [12]\.\d+s$/);
  expect(only({ limiter, faults, assertions: { recoverWithinMs: 6_000 } }).passed).toBe(true);
});

test('assertRecoverWithin: what is not recovered from by the end is not recovered from', () => {
  const outcome = only({
    faults: [{ kind: 'server_down', atMs: 30_000, durationMs: 60_000 }],
    assertions: { recoverWithinMs: 60_000 },
  });
  expect(outcome).toMatchObject({ passed: false, actual: 'server_down at 30s: never' });
});

test('assertWait: each percentile has its limit', () => {
  // Nine of ten are served at once, and the tenth after the first of them is done.
  const tight = {
    services: [service('orders', undefined, callers({ fromMs: 1_000, everyMs: 1_000, burst: 11 }))],
    server: { dial: { kind: 'fixed', ms: 5 } as const },
  };
  const [p90, p95, max] = outcomesOf({
    ...tight,
    assertions: {
      waits: [
        { percentile: 0.9, maxMs: 0 },
        { percentile: 0.95, maxMs: 5 },
        { percentile: 1, maxMs: 20 },
      ],
    },
  });
  expect(p90).toEqual({ name: 'assertWait p90', passed: true, expected: 'at most 0ms', actual: '0ms' });
  expect(p95).toEqual({ name: 'assertWait p95', passed: false, expected: 'at most 5ms', actual: '10ms' });
  expect(max).toEqual({ name: 'assertWait max', passed: true, expected: 'at most 20ms', actual: '10ms' });
});

test('assertFairness: a tenant that crowds the others out fails it', () => {
  const tenants = (noisy: number) => [
    service(
      'orders',
      { max: 4, reservoir: { emptyWait: 100 } },
      callers(
        { tenant: 'noisy', fromMs: 1_000, perSecond: noisy, hold: { kind: 'fixed', ms: 20 } },
        { tenant: 'quiet', fromMs: 1_000, perSecond: 10, hold: { kind: 'fixed', ms: 20 } },
      ),
    ),
  ];
  const fairness = { minJain: 0.95, maxTenantP99Ms: 50 };
  const peaceful = outcomesOf({ services: tenants(10), assertions: { fairness } });
  expect(peaceful.map(({ name, passed }) => [name, passed])).toEqual([
    ['assertFairness jain', true],
    ['assertFairness tenantP99', true],
  ]);
  const crowded = outcomesOf({ services: tenants(1_000), assertions: { fairness } });
  expect(crowded.map(({ passed }) => passed)).toEqual([false, false]);
  expect(Number(crowded[0]?.actual)).toBeLessThan(0.95);
  expect(crowded[1]?.actual).toMatch(/^\d+(\.\d+)?ms for (noisy|quiet)$/);
});

test('assertMaxFailedCallers: those who went away without a connection are counted', () => {
  const crowd = {
    services: [
      service('orders', undefined, callers({ fromMs: 1_000, everyMs: 100_000, burst: 25, maxWaitMs: 5 })),
    ],
  };
  const outcome = only({ ...crowd, assertions: { maxFailedCallers: 14 } });
  expect(outcome).toEqual({
    name: 'assertMaxFailedCallers',
    passed: false,
    expected: 'at most 14 callers without a connection',
    actual: '15 of 25',
  });
  expect(only({ ...crowd, assertions: { maxFailedCallers: 15 } }).passed).toBe(true);
});

test('assertMaxOpened: every connection that the server let in counts', () => {
  const outcome = only({ services: services(2), assertions: { maxOpened: 19 } });
  expect(outcome).toEqual({
    name: 'assertMaxOpened',
    passed: false,
    expected: 'at most 19 connections opened',
    actual: '20',
  });
  expect(only({ services: services(2), assertions: { maxOpened: 20 } }).passed).toBe(true);
});

test('assertMaxEmptyEvents: callers that came before a service was full count, too', () => {
  const early = callers({ everyMs: 100_000, burst: 3, maxWaitMs: 5_000 });
  const fleet = { services: services(2, undefined, early) };
  const outcome = only({ ...fleet, assertions: { maxEmptyEvents: 5 } });
  expect(outcome).toMatchObject({ name: 'assertMaxEmptyEvents', passed: false, actual: '6 did' });
  expect(only({ ...fleet, assertions: { maxEmptyEvents: 6 } }).passed).toBe(true);
});

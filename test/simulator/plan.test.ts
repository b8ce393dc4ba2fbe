// Capacity planning: the table of the seed, and what it does not say.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { planCapacity } from '../../src/simulator/plan.js';
import { planReport } from '../../src/simulator/report/plan-text.js';

test.each([
  ['Small', 2, 25, 400, 0.96],
  ['Medium', 5, 50, 2_000, 0.8],
  ['Large', 10, 50, 4_000, 0.6],
  ['Very Large', 20, 50, 8_000, 0.2],
])(
  'A deployment %s: four services in %d instances with two pools of %d have %d connections',
  (_name, instances, size, total, headroom) => {
    const plan = planCapacity({ services: 4, instances, pools: 2, size });
    expect(plan.connections).toBe(total);
    expect(plan.headroom).toBeCloseTo(headroom, 12);
    expect(plan.limits[0]).toMatchObject({ what: 'connections', factor: 10_000 / total });
  },
);

test('A deployment that stays below 80 % of the limit is left alone, and from there on is told a smaller size', () => {
  expect(planCapacity({ services: 40, pools: 2, size: 50 }).advice).toEqual([]);
  const { advice } = planCapacity({ services: 80, pools: 2, size: 50 });
  expect(advice).toEqual([
    'Stay below 80 % of the limit, for bursts and rolling deployments: a size of 49 would do.',
  ]);
  expect(planCapacity({ services: 80, pools: 2, size: 49 }).advice).toEqual([]);
  expect(planCapacity({ services: 9_000, size: 1 }).advice[0]).toContain('even a size of 1 is too much');
});

test('A deployment fills with the burst first and then at the rate, and no faster than its pools can dial', () => {
  const fill = (size: number) => planCapacity({ services: 4, instances: 10, pools: 2, size }).fillMs;
  // 4,000: a thousand at once, then 100 a second.
  expect(fill(50)).toBe(30_000);
  // 800 are within the burst: two rounds of 8 dials of 80 ms.
  expect(fill(10)).toBe(160);
  // 16,000 do not fit, and 10,000 take 90 s.
  expect(fill(200)).toBe(90_000);
});

test('A deployment one of whose instances restarts fills that one only', () => {
  expect(planCapacity({ services: 40, pools: 2, size: 50 }).restartMs).toBe(7 * 80);
  expect(planCapacity({ services: 1, size: 2_000 }).restartMs).toBe(20_000);
});

test('A deployment needs as many new connections a second as end: all of them within a life less the guard window', () => {
  expect(planCapacity({ services: 10, size: 1_000 }).steadyPerSecond).toBeCloseTo(10_000 / 615, 9);
  const longer = planCapacity({ services: 10, size: 1_000, lifetime: '50m', guard: 0 });
  expect(longer.steadyPerSecond).toBeCloseTo(10_000 / 3_000, 9);
});

test('A deployment has its first wave of expiries spread over the jitter and the time it took to fill', () => {
  const { firstWave } = planCapacity({ services: 4, size: 1_000 });
  expect(firstWave).toEqual({ afterMs: 555_000, durationMs: 150_000, perSecond: 4_000 / 120 });
  // Without jitter the burst ends in one second, as it began.
  expect(planCapacity({ services: 4, size: 1_000, jitter: 0 }).firstWave.perSecond).toBe(1_100);
});

test('A deployment is told what breaks first, and at how many services', () => {
  const byConnections = planCapacity({ services: 40, pools: 2, size: 50 });
  expect(byConnections.limits.map(({ what, services }) => [what, services])).toEqual([
    ['connections', 100],
    ['expiry wave', 120],
    ['steady rate', 615],
  ]);
  const byRate = planCapacity({
    services: 10,
    size: 100,
    lifetime: '1m',
    jitter: '20s',
    guard: '10s',
    rate: 25,
  });
  expect(byRate.limits[0]).toEqual({ what: 'expiry wave', factor: 0.5, services: 5, use: 1_000 / 20 / 25 });
  expect(byRate.advice).toEqual([
    'Replacing old connections takes over half of the rate: a lifetime of 90s would not.',
    'Connections opened together end together, faster than the rate: a jitter of 40s spreads them.',
  ]);
});

test('A deployment whose connections live longer than a session may does not fit', () => {
  const plan = planCapacity({ services: 1, size: 10, lifetime: '59m30s' });
  expect(plan).toMatchObject({ fits: false, longestLifeMs: 3_630_000, sessionLifetimeMs: 3_600_000 });
  expect(plan.advice).toEqual([
    'Some connections live longer than the server lets them: a lifetime of 3540s would not.',
  ]);
  expect(planCapacity({ services: 1, size: 10, lifetime: '3540s' })).toMatchObject({
    fits: true,
    advice: [],
  });
});

test('A deployment of any size gets finite numbers, and grows into its limits in the order that is said', () => {
  const counts = { services: fc.integer({ min: 1, max: 500 }), size: fc.integer({ min: 1, max: 500 }) };
  fc.assert(
    fc.property(fc.record({ ...counts, burst: fc.integer({ min: 1, max: 5_000 }) }), (deployment) => {
      const plan = planCapacity(deployment);
      const { fillMs, restartMs, steadyPerSecond, firstWave, limits } = plan;
      const numbers = [fillMs, restartMs, steadyPerSecond, ...Object.values(firstWave)];
      expect(numbers.every((value) => Number.isFinite(value) && value >= 0)).toBe(true);
      expect(restartMs).toBeLessThanOrEqual(fillMs);
      const factors = limits.map(({ factor }) => factor);
      expect(factors).toEqual(factors.toSorted((one, other) => one - other));
      for (const { what, factor, use } of limits)
        if (what !== 'expiry wave') expect(use * factor).toBeCloseTo(1, 9);
    }),
  );
});

test('A plan with mistakes is told all of them', () => {
  const mistaken = () => planCapacity({ services: 0, size: 2.5, lifetime: '1m', rate: -1, sise: 3 } as never);
  expect(mistaken).toThrow(PoolOptionsError);
  expect(mistaken).toThrow(
    /services: .*\n.*size: .*\n.*rate: .*\n.*lifetime: .*\n.*sise: is not an option; did you mean size/,
  );
});

test('A plan reads as a short text', () => {
  expect(planReport(planCapacity({ services: 40, pools: 2, size: 50 }))).toBe(`plan: fits

  connections              4,000 of 10,000 (40 %)
  headroom                 60 %
  fill from nothing        30 s
  restart of one instance  560 ms
  steady rate              6.5 new connections a second
  first expiries           up to 33.3/s for 2m30s, from 9m15s on
  longest life             12m of 1h

  breaks first  connections  at 2.5 times this size (100 services), now 40 %
  then          expiry wave  at 3 times this size (120 services), now 33.3 %
  then          steady rate  at 15.4 times this size (615 services), now 6.5 %

advice
  Nothing to change.

assumed
  of the server: 10,000 connections (--limit), 100 new ones a second (--rate) after a burst of 1,000 (--burst).
  These are the limits of one cluster of Aurora DSQL. Give those of your server.
`);
});

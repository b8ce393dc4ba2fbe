import { expect, test } from 'vitest';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import type { FaultKind, FaultPlan } from '../../src/simulator/scenario/scenario.js';
import { faultKinds } from '../../src/simulator/scenario/scenario-reader-faults.js';
import { simulate } from '../../src/simulator/simulate.js';
import { at, callers, discardsOf, final, scenario, service, services } from './small-worlds.js';

const busy = callers({ perSecond: 50, hold: { kind: 'exponential', meanMs: 40 } });

test('a service fills its reservoir, serves its callers from it, and breaks no law', () => {
  const result = simulate(scenario({ services: [service('orders', undefined, busy)] }));
  expect(result.laws).toEqual([]);
  expect(result.passed).toBe(true);
  expect(final(result, 'ready') + final(result, 'inUse')).toBe(10);
  expect(result.services[0]?.convergedAtMs).toBeLessThan(1_000);
  expect(result.services[0]).toMatchObject({ peak: 10, limit: 10 });
  expect(result.waits.callers).toBeGreaterThan(2_500);
  expect(result.waits).toMatchObject({ failed: 0, p50: 0 });
  expect(final(result, 'workCompleted')).toBeGreaterThan(2_500);
  expect(result.tenants.map(({ tenant, callers: count }) => [tenant, count])).toEqual([
    ['someone', result.waits.callers],
  ]);
});

test('samples are taken from the beginning to the end, and totals only go up', () => {
  const result = simulate(
    scenario({ durationMs: 10_500, services: services(2, { max: 3, minIdle: 1 }, busy) }),
  );
  const { samples } = result;
  expect(samples.timeMs).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((second) => second * 1_000));
  expect(samples.ready[0]).toBe(0);
  for (const column of ['checkouts', 'emptyEvents', 'refills', 'workStarted', 'workCompleted'] as const) {
    expect(samples[column]).toEqual([...samples[column]].sort((a, b) => a - b));
    const sums = samples.timeMs.map((_, row) => {
      return result.services.reduce((sum, one) => sum + (one.samples[column][row] as number), 0);
    });
    expect(samples[column]).toEqual(sums);
  }
  expect(final(result, 'checkouts')).toBeGreaterThan(500);
});

test('connections are replaced before the end of their lives, and those that the server ends are found out', () => {
  const shortLives = {
    max: 10,
    reservoir: { baseLifetime: 20_000, lifetimeJitter: 5_000, guardWindow: 2_000 },
  };
  const replaced = simulate(scenario({ services: [service('orders', shortLives)] }));
  expect(discardsOf(replaced)).toEqual({ expiring_soon_on_scan: expect.any(Number) });
  expect(replaced.laws).toEqual([]);
  const cut = simulate(
    scenario({ server: { sessionLifetimeMs: 7_000 }, services: [service('orders', shortLives, busy)] }),
  );
  expect(discardsOf(cut)['broken']).toBeGreaterThan(50);
  expect(cut.laws).toEqual([]);
  expect(final(cut, 'workStarted') - final(cut, 'workCompleted')).toBeGreaterThan(0);
});

test('the server refuses what is beyond its limits, and the services live with it', () => {
  const result = simulate(
    scenario({
      server: { connectionLimit: 25, perSecond: 5, burst: 10 },
      services: services(4, { max: 10, reservoir: true }),
    }),
  );
  expect(result.server).toMatchObject({ peakConnections: 25, connectionLimit: 25 });
  expect(result.server.refusedRate).toBeGreaterThan(0);
  expect(result.server.refusedFull).toBeGreaterThan(0);
  expect(final(result, 'ready')).toBe(25);
  expect(result.laws).toEqual([]);
  const causes = result.services.map(({ refillFailures }) => refillFailures);
  expect(causes.some(({ rate_limit }) => rate_limit > 0)).toBe(true);
  expect(causes.some(({ connection_open }) => connection_open > 0)).toBe(true);
});

test('a limiter of the product keeps the services within the rate of the server', () => {
  const strict = { perSecond: 20, burst: 20 };
  const fleet = services(4, { max: 50, reservoir: true });
  const together = simulate(
    scenario({
      server: { ...strict, dial: { kind: 'fixed', ms: 20 } },
      limiter: { ...strict, scope: 'shared' },
      services: fleet,
    }),
  );
  expect(together.server.refusedRate).toBe(0);
  expect(final(together, 'ready')).toBe(200);
  expect(final(together, 'limiterDenies')).toBeGreaterThan(0);
  const each = simulate(
    scenario({ server: strict, limiter: { ...strict, scope: 'perService' }, services: fleet }),
  );
  expect(each.server.refusedRate).toBeGreaterThan(0);
});

test('dials get lost as often as the server plan says', () => {
  const result = simulate(
    scenario({
      server: { dialFailures: 0.3 },
      services: [service('orders', { max: 200, reservoir: true, backoffBase: 1, backoffCap: 1 })],
    }),
  );
  const failed = final(result, 'refillFailures');
  const part = failed / (failed + final(result, 'refills'));
  expect(part).toBeGreaterThan(0.2);
  expect(part).toBeLessThan(0.4);
});

test('callers come whether or not those before them were served, up to what the tenant allows itself', () => {
  const arrivals = { everyMs: 1_000, burst: 8, hold: { kind: 'fixed', ms: 10_000 } as const };
  const plain = { max: 4, acquireTimeout: 3_000 };
  const open = simulate(scenario({ services: [service('orders', plain, callers(arrivals))] }));
  expect(final(open, 'workStarted')).toBe(60 * 8);
  expect(open.waits.failed).toBeGreaterThan(400);
  expect(open.waits.max).toBeLessThan(3_002);
  const held = simulate(
    scenario({ services: [service('orders', plain, callers({ ...arrivals, maxInUse: 4 }))] }),
  );
  expect(held.waits.failed).toBe(0);
  expect(at(held, 5_000, 'inUse')).toBe(4);
  expect(held.ends.keptAway).toBe(60 * 8 - held.waits.callers);
  expect(open.ends).toEqual({ cutOff: 0, keptAway: 0 });
});

test('a caller waits as long as its plan says, or else as the pool says', () => {
  const slow = { dial: { kind: 'fixed', ms: 8_000 } as const };
  const waiting = (maxWaitMs: number | undefined) =>
    simulate(
      scenario({
        durationMs: 20_000,
        server: slow,
        services: [
          service('orders', { max: 1, acquireTimeout: 500 }, callers({ everyMs: 60_000, maxWaitMs })),
        ],
      }),
    ).waits;
  expect(waiting(undefined)).toMatchObject({ callers: 1, failed: 1, max: 500 });
  expect(waiting(2_000)).toMatchObject({ failed: 1, max: 2_000 });
  expect(waiting(9_000)).toMatchObject({ failed: 0, max: 8_000 });
});

function troubled(kind: FaultKind, seed: number) {
  return scenario({
    seed,
    durationMs: 30_000,
    server: { dialFailures: 0.05, perSecond: 20, burst: 20, sessionLifetimeMs: 12_000 },
    limiter: { perSecond: 15, burst: 5, scope: 'shared' },
    coordinator: { leaseLimit: 25, latency: { kind: 'exponential', meanMs: 10 }, timeoutMs: 500 },
    services: services(3, { max: 10, reservoir: { emptyWait: 1_000 } }, { ...busy, clockDrift: 0.01 }),
    faults: [
      {
        kind,
        atMs: 8_000,
        durationMs: 4_000,
        everyMs: 2_000,
        fraction: 0.5,
        delay: { kind: 'uniform', fromMs: 1_000, toMs: 20_000 },
      },
    ],
    assertions: { recoverWithinMs: 10_000, waits: [{ percentile: 0.99, maxMs: 100 }], zeroEmptyEvents: true },
  });
}

test.each(Object.keys(faultKinds) as FaultKind[])(
  'the same seed gives the same result to the last byte, and another seed another: %s',
  (kind) => {
    const once = JSON.stringify(simulate(troubled(kind, 5)));
    expect(JSON.stringify(simulate(troubled(kind, 5)))).toBe(once);
    expect(JSON.stringify(simulate(troubled(kind, 6)))).not.toBe(once);
    expect(JSON.parse(once).laws).toEqual([]);
  },
);

test('another service in the scenario leaves the luck of the others as it was', () => {
  const pair = [service('orders', undefined, busy), service('reports', undefined, busy)];
  const alone = simulate(scenario({ services: pair.slice(0, 1) }));
  const together = simulate(scenario({ services: pair }));
  expect(together.services[0]).toEqual(alone.services[0]);
});

test('nothing of the result depends on being watched', () => {
  const plan = scenario({ services: services(2, undefined, busy) });
  const seen: number[] = [];
  let lastEvents = 0;
  const watched = simulate(plan, {
    onProgress: (simulatedMs, events) => {
      seen.push(simulatedMs);
      lastEvents = events;
    },
  });
  expect(watched).toEqual(simulate(plan));
  expect(seen).toEqual([...seen].sort((a, b) => a - b));
  expect(seen.at(-1)).toBe(60_000);
  expect(lastEvents).toBeGreaterThan(1_000);
  expect(lastEvents).toBeLessThanOrEqual(watched.events);
});

test('a simulation can be aborted on the way, with the reason of the signal', () => {
  const controller = new AbortController();
  const reason = new Error('seen enough');
  let steps = 0;
  const run = () =>
    simulate(scenario(), {
      signal: controller.signal,
      onProgress: () => {
        steps++;
        if (steps === 3) controller.abort(reason);
      },
    });
  expect(run).toThrow(reason);
  expect(steps).toBe(3);
});

test('pool options that make no sense are refused as any pool refuses them', () => {
  const nonsense = service('orders', { max: 2, minIdle: 3 });
  expect(() => simulate(scenario({ services: [nonsense] }))).toThrow(PoolOptionsError);
});

test('a scenario in which time could not pass is refused, with all that is wrong', () => {
  const endless = service('orders', undefined, {
    ...callers({ everyMs: 0 }, { tenant: 'other', perSecond: -1 }),
    clockDrift: -1,
  });
  const plan = scenario({ durationMs: Number.POSITIVE_INFINITY, sampleMs: 0, services: [endless] });
  expect(() => simulate(plan)).toThrow(
    new RangeError(
      'This scenario has no end: durationMs must be a finite number above 0, not Infinity; ' +
        'sampleMs must be a finite number above 0, not 0; 1 + clockDrift of orders must be a finite number above 0, not 0; ' +
        'everyMs of someone in orders must be a finite number above 0, not 0; ' +
        'perSecond of other in orders must be a finite number above 0, not -1.',
    ),
  );
});

// All that happens does so halfway between two samples, so the mean of an interval is that of what is in use at its ends.
const halfway = (tenant: string, everyMs: number, holdMs: number, burst = 1) => ({
  tenant,
  everyMs,
  burst,
  fromMs: 1_050,
  hold: { kind: 'fixed', ms: holdMs } as const,
});
const punctual = {
  sampleMs: 100,
  server: { dial: { kind: 'fixed', ms: 100 } as const },
  services: services(2, undefined, callers(halfway('often', 200, 600), halfway('rarely', 2_000, 300, 2))),
};

function sumOf(columns: readonly (readonly number[])[], row: number): number {
  return columns.reduce((sum, column) => sum + (column[row] as number), 0);
}

test.each<[string, Partial<FaultPlan>[]]>([
  ['when all goes well', []],
  ['when a process crashes with its callers', [{ kind: 'crash', atMs: 20_050, everyMs: 5_000 }]],
  ['when a process stands still', [{ kind: 'pause', atMs: 20_050, durationMs: 3_000 }]],
])('what tenants have adds up to what is in use and done, %s', (_when, faults) => {
  const { samples, tenantSamples } = simulate(scenario({ ...punctual, faults }));
  expect(tenantSamples.map(({ tenant }) => tenant)).toEqual(['often', 'rarely']);
  for (let row = 1; row < samples.timeMs.length; row++) {
    const mean = ((samples.inUse[row - 1] as number) + (samples.inUse[row] as number)) / 2;
    const inUse = tenantSamples.map((tenant) => tenant.inUse);
    expect(sumOf(inUse, row), `in use at ${samples.timeMs[row]}`).toBeCloseTo(mean, 5);
    const work = tenantSamples.map(({ workCompleted }) => workCompleted);
    expect(sumOf(work, row)).toBe(samples.workCompleted[row]);
  }
  expect(Math.max(...samples.inUse)).toBeGreaterThan(5);
});

test('a tenant has nothing any more when its pool took the connections away to end in time', () => {
  const lasting = callers(halfway('lasting', 10_000, 50_000), halfway('brief', 1_000, 200));
  const { samples, tenantSamples } = simulate(
    scenario({
      ...punctual,
      durationMs: 80_000,
      services: [service('orders', undefined, lasting)],
      faults: [{ kind: 'cold_start', atMs: 15_050, everyMs: 20_000 }],
    }),
  );
  const rowAt = (timeMs: number) => samples.timeMs.indexOf(timeMs);
  const [atDeadline, down] = [rowAt(45_000), rowAt(46_000)];
  expect(tenantSamples.map(({ inUse }) => inUse[atDeadline])).toEqual([2, 0]);
  expect(tenantSamples.map(({ inUse }) => inUse[down])).toEqual([0, 0]);
  expect(tenantSamples[0]?.inUse.at(-1)).toBe(samples.inUse.at(-1));
});

test('tenants who ask for more have a larger share, also when holds are much shorter than samples', () => {
  const { tenantSamples, tenants } = simulate(
    scenario({
      services: [
        service(
          'orders',
          undefined,
          callers(
            { tenant: 'much', everyMs: 100, fromMs: 1_000, hold: { kind: 'fixed', ms: 30 } },
            { tenant: 'little', everyMs: 500, fromMs: 1_000, hold: { kind: 'fixed', ms: 5 } },
          ),
        ),
      ],
    }),
  );
  const [much, little] = tenantSamples;
  expect([much?.inUse[30], little?.inUse[30]]).toEqual([0.3, 0.01]);
  expect(much?.workCompleted.at(-1)).toBe(tenants[0]?.completed);
  expect(little?.workCompleted.at(-1)).toBe(tenants[1]?.completed);
});

test('one tenant alone has no series', () => {
  expect(simulate(scenario({ services: services(2, undefined, busy) })).tenantSamples).toEqual([]);
});

test('the first 64 tenants have a series each, and the others one together', () => {
  const many = Array.from({ length: 70 }, (_, n) => halfway(`t${n}`, 20_000, 100));
  const { samples, tenantSamples } = simulate(
    scenario({ ...punctual, services: [service('orders', { max: 100, reservoir: true }, callers(...many))] }),
  );
  expect(tenantSamples.map(({ tenant }) => tenant)).toEqual([
    ...many.slice(0, 64).map(({ tenant }) => tenant),
    undefined,
  ]);
  expect(tenantSamples.map(({ workCompleted }) => workCompleted.at(-1))).toEqual([
    ...Array.from({ length: 64 }, () => 3),
    18,
  ]);
  expect(samples.workCompleted.at(-1)).toBe(210);
  expect(tenantSamples.at(-1)?.inUse[11]).toBe(3);
});

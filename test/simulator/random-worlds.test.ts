// Worlds that nobody would think of, with everything going wrong at once. Whatever happens, the laws hold, all comes to
// an end, and the same seed does the same again.
import { expect, test } from 'vitest';
import type { PolicyOptions } from '../../src/core/pool-policy.js';
import type {
  ArrivalPlan,
  Delay,
  FaultPlan,
  Scenario,
  ServicePlan,
} from '../../src/simulator/scenario/scenario.js';
import { simulate } from '../../src/simulator/simulate.js';
import { type SeededRandom, seededRandom } from '../support/seeded-random.js';
import { scenario } from './small-worlds.js';

const from = (random: SeededRandom, min: number, max: number): number => min + random.below(max - min + 1);

function delay(random: SeededRandom, ms: number): Delay {
  return random.pick<Delay>([
    { kind: 'fixed', ms },
    { kind: 'uniform', fromMs: 0, toMs: 2 * ms },
    { kind: 'lognormal', medianMs: ms, p99Ms: 6 * ms },
    { kind: 'exponential', meanMs: ms },
    {
      kind: 'percentiles',
      points: [
        { part: 0.5, ms },
        { part: 1, ms: 9 * ms },
      ],
    },
    {
      kind: 'counted',
      lengths: [
        { ms, weight: 9 },
        { ms: 20 * ms, weight: 1 },
      ],
    },
  ]);
}

function pool(random: SeededRandom): PolicyOptions {
  const max = from(random, 1, 20);
  const base = from(random, 4_000, 40_000);
  const targetReady = from(random, 1, max);
  const size = random.pick<PolicyOptions>([
    { idleTimeout: from(random, 500, 20_000), maxLifetime: base, maxUses: from(random, 1, 50) },
    { minIdle: targetReady, maxLifetime: base, acquireTimeout: random.pick([0, 500, 5_000]) },
    { keeper: { target: targetReady, interval: from(random, 100, 3_000) }, warmup: random.chance(0.5) },
    {
      reservoir: {
        targetReady,
        lowWatermark: random.below(targetReady + 1),
        baseLifetime: base,
        lifetimeJitter: random.below(base),
        guardWindow: random.below(base / 2 - 1),
        initialFillTimeout: from(random, 100, 10_000),
        emptyWait: from(random, 1, 3_000),
      },
    },
  ]);
  return {
    ...size,
    max,
    dialTimeout: from(random, 50, 5_000),
    closeTimeout: from(random, 10, 3_000),
    dialLimit: from(random, 1, 10),
    backoffCap: from(random, 100, 5_000),
    onDialFailure: random.pick(['retry', 'reject']),
    startJitter: random.chance(0.3) ? from(random, 1, 3_000) : 0,
    checkAfterIdle: random.chance(0.3) ? from(random, 10, 3_000) : 0,
    keepalive: random.chance(0.3) ? from(random, 200, 3_000) : 0,
    checkTimeout: from(random, 1, 1_000),
    leakThreshold: random.chance(0.2) ? from(random, 100, 3_000) : 0,
  };
}

function arrival(random: SeededRandom, index: number): ArrivalPlan {
  const isSteady = random.chance(0.5);
  const isLoop = random.chance(0.3);
  return {
    tenant: `tenant-${index}`,
    fromMs: random.below(5_000),
    untilMs: random.chance(0.5) ? Number.POSITIVE_INFINITY : from(random, 5_000, 30_000),
    ...(isLoop && { clients: from(random, 1, 30), think: delay(random, from(random, 1, 2_000)) }),
    ...(random.chance(0.3) && { queryTimeoutMs: from(random, 10, 5_000) }),
    perSecond: isLoop ? undefined : isSteady ? from(random, 1, 100) : undefined,
    everyMs: isLoop || isSteady ? undefined : from(random, 20, 2_000),
    burst: from(random, 1, 20),
    hold: delay(random, random.pick([1, 20, 300, 10_000])),
    maxInUse: random.chance(0.5) ? Number.POSITIVE_INFINITY : from(random, 1, 40),
    maxWaitMs: random.chance(0.5) ? undefined : from(random, 1, 5_000),
  };
}

function anyService(random: SeededRandom, index: number): ServicePlan {
  return {
    name: `service-${index}`,
    group: random.pick(['a', 'b']),
    startDelayMs: random.below(3_000),
    pool: pool(random),
    workload: { arrivals: Array.from({ length: random.below(3) }, (_, n) => arrival(random, n)) },
    clockSkewMs: from(random, -86_400_000, 86_400_000),
    clockDrift: random.chance(0.5) ? 0 : (random.below(400) - 200) / 1_000,
  };
}

function fault(random: SeededRandom, durationMs: number): Partial<FaultPlan> {
  return {
    kind: random.pick([
      'cold_start',
      'rolling_restart',
      'mass_drop',
      'server_down',
      'coordinator_outage',
      'crash',
      'pause',
      'slow_dials',
      'hung_connections',
      'token_failures',
    ]),
    atMs: random.below(durationMs),
    durationMs: from(random, 1, 15_000),
    services: random.pick([[], ['a'], ['b'], ['service-0']]),
    fraction: random.below(101) / 100,
    everyMs: random.below(8_000),
    delay: delay(random, from(random, 10, 20_000)),
  };
}

function anyWorld(seed: number): Scenario {
  const random = seededRandom(seed);
  const durationMs = from(random, 10, 60) * 1_000;
  return scenario({
    seed,
    durationMs,
    server: {
      connectionLimit: from(random, 1, 60),
      perSecond: from(random, 1, 100),
      burst: from(random, 1, 100),
      sessionLifetimeMs: random.chance(0.3) ? from(random, 500, 30_000) : Number.POSITIVE_INFINITY,
      overload: random.pick(['refuse', 'queue']),
      ...(random.chance(0.5) && { refuse: delay(random, from(random, 1, 100)) }),
      dial: delay(random, random.pick([1, 20, 200, 2_000])),
      close: delay(random, random.pick([0, 1, 20, 3_000])),
      dialFailures: random.pick([0, 0, 0.1, 0.5]),
    },
    limiter: random.pick([
      undefined,
      { perSecond: from(random, 1, 100), burst: from(random, 1, 100), scope: 'shared' },
      { perSecond: from(random, 1, 100), burst: from(random, 1, 100), scope: 'perService' },
    ]),
    coordinator: random.pick([
      undefined,
      {
        leaseLimit: from(random, 1, 40),
        latency: delay(random, from(random, 1, 50)),
        timeoutMs: from(random, 20, 1_000),
      },
    ]),
    services: Array.from({ length: from(random, 1, 4) }, (_, index) => anyService(random, index)),
    faults: Array.from({ length: random.below(6) }, () => fault(random, durationMs)),
  });
}

const { seed: firstSeed } = seededRandom();

test.each(Array.from({ length: 40 }, (_, index) => firstSeed + index))(
  'the laws hold in the world of seed %i',
  (seed) => {
    const result = simulate(anyWorld(seed));
    expect(result.laws).toEqual([]);
  },
);

test('a random world is the same each time', () => {
  const run = (): string => JSON.stringify(simulate(anyWorld(firstSeed)));
  expect(run()).toBe(run());
});

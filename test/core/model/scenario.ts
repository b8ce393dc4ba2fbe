// A random life of a pool, as data: drawn from one number, so that it can be replayed, and made of steps that can be left
// out one by one, so that a failure can be made small.

import type { LifetimePolicy } from '../../../src/core/lifetime.js';
import type { PoolPolicy } from '../../../src/core/pool-policy.js';
import type { ReservoirPolicy } from '../../../src/core/reservoir.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { policyOf } from '../../support/virtual-world.js';

/** How the world treats the pool in one sequence. Each number is a probability. */
export interface Weather {
  readonly dialAtOnce: number;
  readonly dialFails: number;
  readonly dialHangs: number;
  /** A dial that was given up goes on as if nothing had been said. */
  readonly dialIgnoresAbandoning: number;
  readonly closeAtOnce: number;
  readonly closeHangs: number;
  readonly checkAtOnce: number;
  readonly checkFails: number;
  readonly checkHangs: number;
  /** How many callers there are for each one who gives back. */
  readonly crowd: number;
  /** Of what stands between the pool and the server, where there is any. */
  readonly leaseRefused: number;
  readonly leaseLater: number;
  readonly limiterThrows: number;
  readonly limiterStalls: number;
  /** A failed dial says what it failed for, or asks for another in its place. */
  readonly dialFailsForNow: number;
}

export const weathers = {
  fair: weather({}),
  flaky: weather({
    dialFails: 0.4,
    checkFails: 0.3,
    dialAtOnce: 0.3,
    closeAtOnce: 0.3,
    leaseRefused: 0.3,
    limiterThrows: 0.2,
    dialFailsForNow: 0.7,
  }),
  hanging: weather({
    dialHangs: 0.5,
    closeHangs: 0.5,
    checkHangs: 0.5,
    dialIgnoresAbandoning: 0.5,
    leaseLater: 0.6,
    limiterStalls: 0.5,
  }),
  down: weather({
    dialFails: 0.9,
    dialAtOnce: 0.4,
    dialHangs: 0.1,
    checkFails: 0.6,
    leaseRefused: 0.7,
    limiterThrows: 0.5,
  }),
  crowded: weather({ crowd: 4, dialFails: 0.1, dialHangs: 0.1 }),
} as const;

export type WeatherName = keyof typeof weathers;

function weather(differences: Partial<Weather>): Weather {
  return {
    dialAtOnce: 0.15,
    dialFails: 0.05,
    dialHangs: 0.03,
    dialIgnoresAbandoning: 0.2,
    closeAtOnce: 0.2,
    closeHangs: 0.05,
    checkAtOnce: 0.3,
    checkFails: 0.1,
    checkHangs: 0.05,
    crowd: 1,
    leaseRefused: 0.05,
    leaseLater: 0.2,
    limiterThrows: 0.05,
    limiterStalls: 0.1,
    dialFailsForNow: 0.2,
    ...differences,
  };
}

const weights = {
  take: 10,
  ask: 12,
  abort: 2,
  withdraw: 1,
  release: 14,
  releaseWithError: 2,
  releaseTwice: 1,
  releaseStale: 1,
  breakOne: 2,
  resize: 2,
  resizeToNonsense: 0.2,
  pause: 0.7,
  resume: 1.5,
  ready: 1,
  drain: 0.6,
  wait: 16,
  waitLong: 2,
  stall: 2,
  creep: 2,
  answerDial: 3,
  failDial: 2,
  answerClose: 2,
  answerCheck: 2,
  // Acts that make sense only with a source.
  askAsUsual: 0,
  waitForScans: 0,
  loseLeases: 0,
  recallLeases: 0,
  leasesAvailable: 0,
  leasesRefused: 0,
} as const;

const weightsWithASource: Readonly<Partial<Record<keyof typeof weights, number>>> = {
  askAsUsual: 5,
  waitForScans: 3,
  loseLeases: 1.5,
  recallLeases: 1.5,
  leasesAvailable: 3,
  leasesRefused: 1.5,
};

export type StepName = keyof typeof weights;

/** `a` and `b` choose among what there is at that moment; `fate` decides how the world answers during the step. */
export interface Step {
  readonly name: StepName;
  readonly a: number;
  readonly b: number;
  readonly fate: number;
}

/**
 * plain: the pool and its server, and perhaps a rate limiter. source: a reservoir, a warmup or a keeper behind a budget
 * and a limiter that may be slow or out of order, any of them or several.
 */
export type Kind = 'plain' | 'source';

/** The part of a policy that a scenario draws; the rest is off. */
export type PolicyDraft = Partial<Omit<PoolPolicy, 'rateLimiter' | 'leases' | 'reservoir'>> & {
  readonly rate?: { readonly perSecond: number; readonly burst: number };
  /** Leases that there are. */
  readonly budget?: number;
  readonly reservoir?: ReservoirPolicy & LifetimePolicy;
};

export interface Scenario {
  readonly seed: number;
  readonly kind: Kind;
  readonly weather: Weather;
  readonly draft: PolicyDraft;
  readonly alarmRingsFirst: boolean;
  readonly alarmIsEarlyBy: number;
  readonly steps: readonly Step[];
}

const names = Object.keys(weights) as StepName[];

export function drawScenario(seed: number, weatherName: WeatherName, kind: Kind): Scenario {
  const random = new SeededRandom(seed);
  const sky = weathers[weatherName];
  const draft = kind === 'plain' ? drawDraft(random) : withSource(drawDraft(random), random);
  const length = 20 + Math.floor(random.next() * 40);
  const total = names.reduce((sum, name) => sum + weightOf(name, sky, kind), 0);
  const steps: Step[] = [];
  for (let n = 0; n < length; n++) {
    let at = random.next() * total;
    let name: StepName = 'wait';
    for (const candidate of names) {
      at -= weightOf(candidate, sky, kind);
      if (at < 0) {
        name = candidate;
        break;
      }
    }
    steps.push({ name, a: random.next(), b: random.next(), fate: Math.floor(random.next() * 2 ** 31) });
  }
  const alarmRingsFirst = random.next() < 0.5;
  const alarmIsEarlyBy = random.next() < 0.3 ? random.next() : 0;
  return { seed, kind, weather: sky, draft, alarmRingsFirst, alarmIsEarlyBy, steps };
}

function weightOf(name: StepName, sky: Weather, kind: Kind): number {
  const weight = (kind === 'source' ? weightsWithASource[name] : undefined) ?? weights[name];
  return name === 'ask' ? weight * sky.crowd : weight;
}

function drawDraft(random: SeededRandom): PolicyDraft {
  const { chance, oneOf } = drawing(random);
  const max = oneOf(1, 1, 2, 3, 4, 6);
  const draft: DraftInTheMaking = { max };
  if (chance(0.4)) draft.minIdle = Math.min(max, oneOf(1, 1, 2, 3));
  if (chance(0.15)) draft.idleFloor = oneOf(1, 2);
  if (chance(0.7)) draft.dialTimeout = oneOf(8, 30, 60);
  if (chance(0.4)) draft.dialLimit = oneOf(1, 2, 3);
  draft.closeTimeout = oneOf(1, 10, 40);
  if (chance(0.4)) draft.idleTimeout = oneOf(10, 30, 80);
  if (chance(0.4)) {
    draft.maxLifetime = oneOf(40, 100);
    if (chance(0.6)) draft.maxLifetimeJitter = oneOf(10, 38);
    if (chance(0.6)) draft.guardWindow = oneOf(1, 10, 20);
  }
  if (chance(0.25)) draft.maxUses = oneOf(1, 2, 5);
  if (chance(0.3)) draft.checkAfterIdle = oneOf(1, 15, 40);
  if (chance(0.3)) draft.keepalive = oneOf(7, 25);
  draft.checkTimeout = oneOf(3, 20);
  if (chance(0.4)) draft.idleOrder = 'fifo';
  if (chance(0.4)) draft.onDialFailure = 'reject';
  draft.base = oneOf(1, 5, 20);
  draft.cap = draft.base * oneOf(1, 4, 16);
  draft.threshold = oneOf(1, 2, 5);
  if (chance(0.2)) draft.leakThreshold = oneOf(5, 40);
  if (chance(0.2)) draft.idleKeepsProcessAlive = true;
  if (chance(0.25)) draft.rate = { perSecond: oneOf(7, 30, 100), burst: oneOf(1, 2, 5) };
  return draft;
}

/** The same with what stands between a pool and a source that is slow or limited. */
function withSource(plain: PolicyDraft, random: SeededRandom): PolicyDraft {
  const { chance, oneOf } = drawing(random);
  const max = chance(0.1) ? 12 : (plain.max ?? 1);
  const draft: DraftInTheMaking = { ...plain, max };
  if (chance(0.7)) draft.reservoir = drawReservoir(max, random);
  else {
    if (chance(0.6)) draft.warmup = { target: Math.min(max, oneOf(1, 2, 6)), retries: oneOf(0, 1, 5) };
    if (chance(0.6))
      draft.keeper = {
        target: Math.min(max, oneOf(1, 2, 6)),
        interval: oneOf(5, 50, 1_000),
        perTick: oneOf(1, 2),
      };
  }
  if (chance(0.6)) draft.budget = chance(0.5) ? max + 3 : oneOf(0, 1, 2, 4);
  if (chance(0.4)) draft.rate = { perSecond: oneOf(7, 30, 100), burst: oneOf(1, 2, 5) };
  if (chance(0.25)) draft.startJitter = oneOf(5, 40, 200);
  if (chance(0.3)) draft.acquireTimeout = oneOf(10, 60);
  return draft;
}

function drawReservoir(max: number, random: SeededRandom): NonNullable<PolicyDraft['reservoir']> {
  const { oneOf } = drawing(random);
  const targetReady = Math.max(1, max - oneOf(0, 0, 1, 2, 3));
  const maxLifetime = oneOf(60, 60, 150, 600, 3_000, 10_000);
  return {
    targetReady,
    lowWatermark: Math.max(0, targetReady - oneOf(0, 0, 1, 2, 6)),
    maxLifetime,
    maxLifetimeJitter: maxLifetime * oneOf(0, 0.2, 0.9),
    guardWindow: maxLifetime * oneOf(0, 0.05, 0.2, 0.5),
    initialFillTimeout: oneOf(10, 50, 300, Number.POSITIVE_INFINITY),
    emptyWait: oneOf(0, 10, 100),
  };
}

type DraftInTheMaking = { -readonly [K in keyof PolicyDraft]: PolicyDraft[K] };

function drawing(random: SeededRandom): {
  chance(probability: number): boolean;
  oneOf<T>(...choices: readonly T[]): T;
} {
  return {
    chance: (probability) => random.next() < probability,
    oneOf: (...choices) => choices[Math.floor(random.next() * choices.length)] as (typeof choices)[number],
  };
}

/** With everything that can be off switched off. */
const plainest: PoolPolicy = policyOf({
  max: 1,
  acquireTimeout: 0,
  dialTimeout: 0,
  dialLimit: Number.POSITIVE_INFINITY,
  idleTimeout: 0,
  maxLifetime: 0,
});

export function completePolicy(
  draft: PolicyDraft,
  rateLimiter: PoolPolicy['rateLimiter'],
  leases: PoolPolicy['leases'],
): PoolPolicy {
  const { rate: _rate, budget: _budget, reservoir: drawn, ...policy } = draft;
  const plain = { ...plainest, ...policy, rateLimiter, leases };
  if (drawn === undefined) return plain;
  // As the options of a reservoir are read: they stand in for those of the same meaning.
  const { maxLifetime, maxLifetimeJitter, guardWindow, ...reservoir } = drawn;
  const { targetReady: minIdle, emptyWait } = reservoir;
  const acquireTimeout = draft.acquireTimeout ?? emptyWait;
  return { ...plain, maxLifetime, maxLifetimeJitter, guardWindow, reservoir, minIdle, acquireTimeout };
}

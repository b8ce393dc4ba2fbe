// How things stand in a pool, for the scanner.
import { expect, test } from 'vitest';
import type { Dialing } from '../../src/core/dialing.js';
import { Ledger } from '../../src/core/ledger.js';
import type { LiveConnections } from '../../src/core/live-connections.js';
import type { ReservoirOptions } from '../../src/core/reservoir.js';
import { PoolSituation } from '../../src/core/scan-situation.js';
import { policyOf } from '../support/virtual-world.js';

interface Numbers {
  readonly max?: number;
  readonly reservoir?: ReservoirOptions;
  readonly dialLimit?: number;
  readonly rate?: number;
  readonly idle?: number;
  /** Of those, so many are to be replaced. */
  readonly marked?: number;
  readonly inUse?: number;
  readonly checking?: number;
  readonly underWay?: number;
  readonly meanDialMs?: number;
}

/** A pool in which these are the numbers. */
function situation(numbers: Numbers): PoolSituation<unknown> {
  const { max = 20, reservoir = { targetReady: 10 }, dialLimit = 8, rate, meanDialMs = 100 } = numbers;
  const { idle = 10, marked = 0, inUse = 0, checking = 0, underWay = 0 } = numbers;
  const rateLimiter = rate === undefined ? undefined : { take: () => 0, rate };
  const ledger = new Ledger(max);
  for (let n = 0; n < idle + inUse + checking; n++) ledger.approve()?.commit();
  for (let n = 0; n < underWay; n++) ledger.approve();
  const connections = { idle: { size: idle, spares: idle - marked }, checking };
  const dialing = { dials: { underWay }, meanDialMs };
  const policy = policyOf({ max, reservoir, dialLimit, rateLimiter });
  return new PoolSituation(
    policy,
    ledger,
    connections as LiveConnections<unknown>,
    dialing as Dialing<unknown>,
  );
}

test.each<[string, Numbers, number]>([
  ['nothing, where as many are ready as are to be', {}, 0],
  ['nothing, where more are', { idle: 12 }, 0],
  ['what is not there', { idle: 7 }, 3],
  ['what is to be replaced as well', { idle: 10, marked: 4 }, 4],
  ['no more than the limit leaves room for beside what is in use', { max: 12, idle: 4, inUse: 7 }, 1],
  ['what is being checked as well', { idle: 8, checking: 2 }, 2],
])('What is missing is %s', (_, numbers, missing) => {
  expect(situation(numbers).missing).toBe(missing);
});

test.each<[string, Numbers, number]>([
  ['what is free', { max: 15 }, 5],
  ['none at the limit', { max: 10 }, 0],
  ['less what is missing and not being opened', { max: 15, idle: 8, underWay: 1 }, 5],
  ['none where all of it is needed for what is missing', { max: 10, idle: 8 }, 0],
])('The room for replacements is %s', (_, numbers, room) => {
  expect(situation(numbers).spareRoom).toBe(room);
});

test.each<[string, Numbers, boolean]>([
  ['would be filled, where nothing is missing', { max: 10 }, true],
  [
    'would be filled, where what is missing is being opened',
    { max: 10, idle: 9, underWay: 1, rate: 50 },
    true,
  ],
  ['would not, where something is missing and not being opened', { max: 10, idle: 9, rate: 50 }, false],
  // Ten a second, each of which takes 100 ms: one, and one whose place is being made.
  [
    'would not, where as many are being opened as keep the source busy',
    { max: 10, idle: 8, underWay: 2, rate: 10 },
    false,
  ],
  [
    'would, where the low watermark leaves a margin for more',
    { max: 10, reservoir: { lowWatermark: 6 }, idle: 8, underWay: 2, rate: 10 },
    true,
  ],
  [
    'would not, where that is used up',
    { max: 10, reservoir: { lowWatermark: 8 }, idle: 8, underWay: 2, rate: 10 },
    false,
  ],
  [
    'would not, where no more dials may be made',
    { max: 10, dialLimit: 2, idle: 8, underWay: 2, rate: 900 },
    false,
  ],
])('A place that is made %s', (_, numbers, would) => {
  expect(situation(numbers).wouldFillAPlace).toBe(would);
});

test.each<[string, Numbers, number]>([
  ['what the limiter permits', { rate: 10 }, 0.01],
  ['what can be opened at the same time, where that is less', { rate: 1_000, dialLimit: 4 }, 0.04],
  [
    'no more than the margin lets be missing',
    { rate: 1_000, reservoir: { targetReady: 10, lowWatermark: 7 } },
    0.03,
  ],
  ['by the number of dials where there is no limiter', { dialLimit: 8 }, 0.08],
  [
    'by the number of dials where the limiter gives no rate that is one',
    { rate: Number.NaN, dialLimit: 8 },
    0.08,
  ],
  ['slower where dials take longer', { dialLimit: 8, meanDialMs: 400 }, 0.02],
  [
    'finite, however many dials may be made and however short they are',
    { dialLimit: Number.POSITIVE_INFINITY, meanDialMs: 0 },
    20,
  ],
])('The speed of the source is %s', (_, numbers, perMs) => {
  expect(situation(numbers).perMs).toBeCloseTo(perMs, 9);
});

/** The words of a scenario file, and how large a scenario may be. The reference in the documentation is checked against these. */

/** The keys of each part of a file. The keys of a pool are the engine's own options. */
export const scenarioKeys = {
  scenario: [
    'name',
    'description',
    'seed',
    'duration',
    'sample',
    'server',
    'limiter',
    'coordinator',
    'budget',
    'defaults',
    'services',
    'faults',
    'assertions',
  ],
  server: [
    'connectionLimit',
    'perSecond',
    'burst',
    'sessionLifetime',
    'overload',
    'dial',
    'refuse',
    'close',
    'dialFailures',
  ],
  limiter: ['perSecond', 'burst', 'scope'],
  coordinator: ['leaseLimit', 'latency', 'timeout', 'dynamodb'],
  dynamodb: [
    'leaseFor',
    'renewEvery',
    'grace',
    'onCoordinatorLoss',
    'lostRequests',
    'lostReplies',
    'conflicts',
    'throttles',
  ],
  budget: ['capacity', 'turn', 'rebalanceInterval', 'demandWindow', 'forecast'],
  defaults: ['kind', 'pool', 'workload'],
  service: [
    'name',
    'count',
    'kind',
    'startDelay',
    'startDelayStep',
    'pool',
    'workload',
    'clockSkew',
    'clockSkewStep',
    'clockDrift',
    'weight',
  ],
  workload: [
    'tenant',
    'perSecond',
    'every',
    'burst',
    'clients',
    'think',
    'hold',
    'queryTimeout',
    'maxInUse',
    'maxWait',
    'from',
    'until',
  ],
  fault: ['kind', 'at', 'for', 'every', 'services', 'fraction', 'delay'],
  assertions: [
    'assertMaxConnectsPerSec',
    'assertConvergeWithin',
    'assertStableFor',
    'assertZeroEmptyEvents',
    'assertRecoverWithin',
    'assertWait',
    'assertFairness',
    'assertMaxFailedCallers',
    'assertMaxOpened',
    'assertMaxEmptyEvents',
  ],
  fairness: ['jain', 'tenantP99'],
} as const;

export type ScenarioPart = keyof typeof scenarioKeys;
export type KeyOf<Part extends ScenarioPart> = (typeof scenarioKeys)[Part][number];

const second = 1_000;
const day = 86_400_000;

/** A scenario beyond these would run for hours, or need more memory than there is, most likely by mistake. */
export const scenarioBounds = {
  durationMs: 7 * day,
  shortestSampleMs: 10,
  /** Services and one for all of them, times the samples of each. */
  recordedRows: 500_000,
  services: 1_000,
  /** Connections of all pools together. */
  connections: 200_000,
  /** Callers of all workloads together, over the whole simulation. */
  callers: 20_000_000,
  workloadsPerService: 50,
  faults: 200,
  delayMs: 3_600 * second,
  clockSkewMs: day,
  clockDrift: 0.5,
  perSecond: 1_000_000,
} as const;

// Scenarios that take milliseconds to simulate, with everything at its simplest until a test says otherwise.
import type { PolicyOptions } from '../../src/core/pool-policy.js';
import type { SimulationResult } from '../../src/simulator/result.js';
import type {
  ArrivalPlan,
  AssertionPlan,
  FaultPlan,
  Scenario,
  ServerPlan,
  ServicePlan,
} from '../../src/simulator/scenario/scenario.js';

export interface SmallScenario extends Partial<Omit<Scenario, 'server' | 'assertions' | 'faults'>> {
  readonly server?: Partial<ServerPlan>;
  readonly assertions?: Partial<AssertionPlan>;
  readonly faults?: readonly Partial<FaultPlan>[];
}

export function scenario(changes: SmallScenario = {}): Scenario {
  return {
    name: 'small',
    description: '',
    seed: 1,
    durationMs: 60_000,
    sampleMs: 1_000,
    limiter: undefined,
    coordinator: undefined,
    services: [service('orders')],
    ...changes,
    server: {
      connectionLimit: 1_000,
      perSecond: 1_000,
      burst: 1_000,
      sessionLifetimeMs: Number.POSITIVE_INFINITY,
      dial: { kind: 'uniform', fromMs: 10, toMs: 30 },
      close: { kind: 'fixed', ms: 2 },
      dialFailures: 0,
      ...changes.server,
    },
    faults: (changes.faults ?? []).map(fault),
    assertions: {
      maxConnectsPerSec: undefined,
      convergeWithinMs: undefined,
      stableForMs: undefined,
      zeroEmptyEvents: false,
      recoverWithinMs: undefined,
      waits: [],
      fairness: undefined,
      maxFailedCallers: undefined,
      maxOpened: undefined,
      maxEmptyEvents: undefined,
      ...changes.assertions,
    },
  };
}

/** Keeps ten connections ready, unless it is told otherwise. */
export function service(
  name: string,
  pool: PolicyOptions = { max: 10, reservoir: true },
  changes: Partial<ServicePlan> = {},
): ServicePlan {
  return {
    name,
    group: name.replace(/-\d+$/, ''),
    startDelayMs: 0,
    pool,
    workload: undefined,
    clockSkewMs: 0,
    clockDrift: 0,
    ...changes,
  };
}

export function services(
  count: number,
  pool?: PolicyOptions,
  changes?: Partial<ServicePlan>,
): readonly ServicePlan[] {
  return Array.from({ length: count }, (_, index) => service(`orders-${index + 1}`, pool, changes));
}

export function callers(...arrivals: readonly Partial<ArrivalPlan>[]): Pick<ServicePlan, 'workload'> {
  return { workload: { arrivals: arrivals.map(arrival) } };
}

function arrival(changes: Partial<ArrivalPlan>): ArrivalPlan {
  return {
    tenant: 'someone',
    fromMs: 0,
    untilMs: Number.POSITIVE_INFINITY,
    perSecond: undefined,
    everyMs: undefined,
    burst: 1,
    hold: { kind: 'fixed', ms: 10 },
    maxInUse: Number.POSITIVE_INFINITY,
    maxWaitMs: undefined,
    ...changes,
  };
}

function fault(changes: Partial<FaultPlan>): FaultPlan {
  return {
    kind: 'mass_drop',
    atMs: 20_000,
    durationMs: 0,
    services: [],
    fraction: 1,
    everyMs: 0,
    delay: undefined,
    ...changes,
  };
}

/** The last sample of a column of all services together. */
export function final(
  result: SimulationResult,
  column: Exclude<keyof SimulationResult['samples'], 'discards'>,
): number {
  return result.samples[column].at(-1) as number;
}

/** All services together at a time. */
export function at(
  result: SimulationResult,
  timeMs: number,
  column: Exclude<keyof SimulationResult['samples'], 'discards'>,
): number {
  const index = result.samples.timeMs.indexOf(timeMs);
  return result.samples[column][index] as number;
}

export function discardsOf(result: SimulationResult): Record<string, number> {
  const counted = Object.entries(result.samples.discards).map(([reason, counts]) => {
    return [reason, counts.at(-1) as number] as const;
  });
  return Object.fromEntries(counted.filter(([, count]) => count > 0));
}

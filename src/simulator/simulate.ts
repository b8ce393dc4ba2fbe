/** Runs a scenario in virtual time. */
import type { SimulationResult } from './result.js';
import type { Scenario } from './scenario/scenario.js';
import { samplesSince, tenantSince } from './watch/samples-since.js';
import { type Sabotage, World } from './world.js';

export interface SimulateOptions {
  /** Told about two hundred times on the way: how much time has passed in the world, and how much has happened in it. */
  readonly onProgress?: ((simulatedMs: number, events: number) => void) | undefined;
  /** Looked at as often as that. What runs does not yield, so it is `onProgress` that would abort it. */
  readonly signal?: AbortSignal | undefined;
}

const steps = 200;

/**
 * Lets the services of a scenario live through it, each with the product's own engine, and judges what happened. The same
 * scenario with the same seed gives the same result, to the last byte.
 *
 * Throws a `PoolOptionsError` when the pool options of a service make no sense, a `RangeError` when time could not pass in
 * it, and the signal's reason when aborted.
 *
 * @example
 * ```ts
 * import { simulate } from 'headgate/simulator';
 *
 * const result = simulate({
 *   name: 'two services',
 *   description: '',
 *   seed: 1,
 *   durationMs: 60_000,
 *   sampleMs: 1_000,
 *   server: {
 *     connectionLimit: 100,
 *     perSecond: 100,
 *     burst: 1_000,
 *     sessionLifetimeMs: 3_600_000,
 *     dial: { kind: 'lognormal', medianMs: 40, p99Ms: 200 },
 *     close: { kind: 'fixed', ms: 2 },
 *     dialFailures: 0,
 *   },
 *   limiter: { perSecond: 10, burst: 10, scope: 'perService' },
 *   coordinator: undefined,
 *   services: ['orders', 'reports'].map((name) => ({
 *     name,
 *     group: name,
 *     startDelayMs: 0,
 *     pool: { max: 20, reservoir: true },
 *     workload: undefined,
 *     clockSkewMs: 0,
 *     clockDrift: 0,
 *   })),
 *   faults: [],
 *   assertions: {
 *     maxConnectsPerSec: 40,
 *     convergeWithinMs: 5_000,
 *     stableForMs: undefined,
 *     zeroEmptyEvents: false,
 *     recoverWithinMs: undefined,
 *     waits: [],
 *     fairness: undefined,
 *     maxFailedCallers: undefined,
 *     maxOpened: undefined,
 *     maxEmptyEvents: undefined,
 *   },
 * });
 *
 * console.log(result.passed); // true
 * ```
 */
export function simulate(scenario: Scenario, options: SimulateOptions = {}): SimulationResult {
  return simulateWith(scenario, options, {});
}

/** As `simulate`, with parts that may be wrong. */
export function simulateWith(
  scenario: Scenario,
  { onProgress, signal }: SimulateOptions,
  sabotage: Sabotage,
): SimulationResult {
  refuseEndless(scenario);
  return live(new World(scenario, sabotage), scenario, { onProgress, signal });
}

/** As `simulate`, with sums, waits and samples of the time from `fromMs` on. Its assertions judge that time alone. */
export function simulateSettled(
  scenario: Scenario,
  fromMs: number,
  options: SimulateOptions = {},
): SimulationResult {
  refuseEndless(scenario);
  const world = new World(scenario);
  world.countFrom(fromMs);
  const result = live(world, scenario, options);
  return {
    ...result,
    samples: samplesSince(result.samples, fromMs),
    services: result.services.map((service) => ({
      ...service,
      samples: samplesSince(service.samples, fromMs),
    })),
    tenantSamples: result.tenantSamples.map((samples) => tenantSince(samples, result.samples.timeMs, fromMs)),
  };
}

function live(
  world: World,
  { durationMs }: Scenario,
  { onProgress, signal }: SimulateOptions,
): SimulationResult {
  for (let step = 1; step <= steps; step++) {
    signal?.throwIfAborted();
    const until = (durationMs * step) / steps;
    withoutStackTraces(() => world.runUntil(until));
    onProgress?.(until, world.events);
  }
  return withoutStackTraces(() => world.finish());
}

/** A scenario from a file has been checked. One that was put together by a program must at least come to an end. */
function refuseEndless({ durationMs, sampleMs, services }: Scenario): void {
  const problems: string[] = [];
  const mustBePositive = (what: string, value: number | undefined): void => {
    if (value === undefined || (value > 0 && Number.isFinite(value))) return;
    problems.push(`${what} must be a finite number above 0, not ${value}`);
  };
  mustBePositive('durationMs', durationMs);
  mustBePositive('sampleMs', sampleMs);
  for (const { name, clockDrift, workload } of services) {
    mustBePositive(`1 + clockDrift of ${name}`, 1 + clockDrift);
    for (const { tenant, perSecond, everyMs, clients } of workload?.arrivals ?? []) {
      mustBePositive(`perSecond of ${tenant} in ${name}`, perSecond);
      mustBePositive(`everyMs of ${tenant} in ${name}`, everyMs);
      mustBePositive(`clients of ${tenant} in ${name}`, clients);
    }
  }
  if (problems.length > 0) throw new RangeError(`This scenario has no end: ${problems.join('; ')}.`);
}

/** Callers are refused by the thousand, each with an error of its own, whose stack trace is not read. */
function withoutStackTraces<T>(run: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

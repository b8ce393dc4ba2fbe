/** The cold start of two runs that are compared: whether it is left out, and what is left out with it. */
import { count, time } from '../format.js';
import type { ServiceResult, SimulationResult } from '../result.js';
import type { Scenario } from '../scenario/scenario.js';
import type { SimulationRun } from './run.js';

/** Where a comparison begins, or why it begins with the start. */
export type ColdStart = { readonly untilMs: number } | { readonly isCompared: string };

/**
 * A cold start lasts until all services of all runs have had all the connections they want, or until the first callers of those that
 * keep nothing ready were served. It is left out unless a scenario asks about it, it never ends, or it takes most of the time.
 */
export function coldStartOf(runs: readonly SimulationRun[]): ColdStart {
  for (const { scenario } of runs) {
    const subject = subjectOf(scenario);
    if (subject !== undefined) return { isCompared: `${scenario.name} has ${subject}` };
  }
  const ends = runs.map(({ result }) => endOf(result));
  const never = runs.find((_, index) => ends[index] === undefined);
  if (never !== undefined)
    return { isCompared: `the services of ${never.scenario.name} never were all full` };
  const untilMs = Math.max(0, ...ends.map((end = 0) => end));
  if (runs.some(({ scenario: { durationMs } }) => untilMs > durationMs / 2))
    return { isCompared: 'it takes more than half of the time' };
  return { untilMs };
}

function subjectOf({ assertions, faults }: Scenario): string | undefined {
  if (assertions.convergeWithinMs !== undefined) return 'assertConvergeWithin';
  if (assertions.maxConnectsPerSec !== undefined) return 'assertMaxConnectsPerSec';
  if (assertions.maxEmptyEvents !== undefined) return 'assertMaxEmptyEvents';
  return faults.find(({ kind }) => kind === 'cold_start') && 'a cold_start';
}

/** Services that begin when the others have long been served are not part of the start. */
function endOf({ services }: SimulationResult): number | undefined {
  const starts = services.map((service) => startOf(service)).sort((one, other) => one.fromMs - other.fromMs);
  let end = starts[0]?.fromMs ?? 0;
  for (const { fromMs, untilMs } of starts) {
    if (fromMs > end) break;
    end = Math.max(end, untilMs);
  }
  return Number.isFinite(end) ? end : undefined;
}

interface Start {
  readonly fromMs: number;
  /** Infinity: it did not end. */
  readonly untilMs: number;
}

/** A pool that keeps nothing ready starts with its first callers, until none of them waits. */
function startOf({ convergedAtMs, samples }: ServiceResult): Start {
  const { target, timeMs, workStarted, waiting, pending } = samples;
  if (target.some((wanted) => wanted > 0))
    return { fromMs: 0, untilMs: convergedAtMs ?? Number.POSITIVE_INFINITY };
  const first = workStarted.findIndex((callers) => callers > 0);
  if (first === -1) return { fromMs: 0, untilMs: 0 };
  const untilMs = timeMs.find((_, row) => row >= first && waiting[row] === 0 && pending[row] === 0);
  return { fromMs: timeMs[first - 1] ?? 0, untilMs: untilMs ?? Number.POSITIVE_INFINITY };
}

/** In a sentence; undefined: there was none. */
export function leftOut(runs: readonly SimulationRun[]): string | undefined {
  const start = coldStartOf(runs);
  if ('isCompared' in start) return `The cold start is compared, too: ${start.isCompared}.`;
  const [first] = runs;
  if (first?.settled === undefined) return undefined;
  const parts = runs.flatMap(({ scenario, result, settled }) => {
    if (settled === undefined) return [];
    const opened = result.server.accepted - settled.result.server.accepted;
    const callers = result.waits.callers - settled.result.waits.callers;
    const { max } = result.waits;
    const longest = max > settled.result.waits.max ? `, whose longest wait was ${time(max)}` : '';
    const waited = callers > 0 ? ` and had ${count(callers)} callers${longest}` : '';
    return [`${scenario.name} opened ${count(opened)} connections${waited}`];
  });
  return `Left out: the cold start, the first ${time(first.settled.fromMs)}, in which ${parts.join(', and ')}.`;
}

/** The numbers that are compared. */
export function withoutColdStart(run: SimulationRun): SimulationRun {
  return run.settled === undefined ? run : { scenario: run.scenario, result: run.settled.result };
}

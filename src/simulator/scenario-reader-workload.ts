/** Reads the workload of a service: when callers come, how many, and for how long. */
import { count } from './report/format.js';
import type { ArrivalPlan, WorkloadPlan } from './scenario.js';
import { readDelay } from './scenario-reader-delay.js';
import type { Fields } from './scenario-reader-fields.js';
import { scenarioBounds } from './scenario-reader-keys.js';

const most = 1_000_000;

/** `tenant`: whose callers they are when the workload does not say. */
export function readWorkload(
  parts: readonly Fields<'workload'>[],
  tenant: string,
  durationMs: number,
): WorkloadPlan | undefined {
  if (parts.length === 0) return undefined;
  return { arrivals: parts.map((fields) => readArrivals(fields, tenant, durationMs)) };
}

function readArrivals(fields: Fields<'workload'>, tenant: string, durationMs: number): ArrivalPlan {
  const perSecond = fields.number('perSecond', { min: 0.001, max: scenarioBounds.perSecond });
  const everyMs = fields.duration('every', { min: 1, max: scenarioBounds.durationMs });
  if (fields.has('perSecond') === fields.has('every')) {
    fields.problems.add(
      fields.path,
      'must have either perSecond (random arrivals) or every (a burst each time)',
    );
  }
  if (fields.has('perSecond') && fields.has('burst'))
    fields.problem('burst', 'belongs to every; callers at a rate of perSecond come one by one');
  const fromMs = fields.duration('from', { min: 0, max: durationMs }) ?? 0;
  const untilMs = fields.duration('until', { min: 0, max: durationMs }) ?? durationMs;
  if (untilMs <= fromMs) fields.problem('until', `is ${untilMs} ms, not after from, which is ${fromMs} ms`);
  const hold = fields.required('hold', () => readDelay(fields, 'hold'), 'such as 20ms or { mean: 20ms }', {
    kind: 'fixed',
    ms: 0,
  });
  return {
    tenant: fields.name('tenant') ?? tenant,
    fromMs,
    untilMs,
    perSecond,
    everyMs,
    burst: fields.integer('burst', { min: 1, max: most }) ?? 1,
    hold,
    maxInUse: fields.integer('maxInUse', { min: 1, max: most }) ?? Number.POSITIVE_INFINITY,
    maxWaitMs: fields.duration('maxWait', { min: 1, max: scenarioBounds.delayMs }),
  };
}

/** How many callers that will be, about. */
export function expectedCallers(workload: WorkloadPlan | undefined): number {
  let callers = 0;
  for (const { fromMs, untilMs, perSecond, everyMs, burst } of workload?.arrivals ?? []) {
    const span = Math.max(0, untilMs - fromMs);
    if (perSecond !== undefined) callers += (perSecond * span) / 1_000;
    else if (everyMs !== undefined) callers += burst * Math.ceil(span / everyMs);
  }
  return callers;
}

export function tooManyCallers(callers: number): string | undefined {
  if (callers <= scenarioBounds.callers) return undefined;
  return `bring about ${count(Math.round(callers))} callers in all, more than the ${count(scenarioBounds.callers)} that can be simulated; make the simulation shorter or the rates lower`;
}

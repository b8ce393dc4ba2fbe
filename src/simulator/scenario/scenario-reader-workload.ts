/** Reads the workload of a service: when callers come, how many, and for how long. */
import { count } from '../format.js';
import { meanOf } from './delay-mean.js';
import type { ArrivalPlan, Delay, WorkloadPlan } from './scenario.js';
import { readDelay } from './scenario-reader-delay.js';
import type { Fields } from './scenario-reader-fields.js';
import { scenarioBounds } from './scenario-reader-keys.js';

const most = 1_000_000;
const noThought: Delay = { kind: 'fixed', ms: 0 };
/** Clients that need no time would come again for ever at one time. */
const shortestRoundMs = 1;

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
  const clients = fields.integer('clients', { min: 1, max: most });
  const ways = (['perSecond', 'every', 'clients'] as const).filter((key) => fields.has(key));
  if (ways.length !== 1) {
    fields.problems.add(
      fields.path,
      'must have one of perSecond (random arrivals), every (a burst each time) and clients (each comes again when it was served)',
    );
  }
  if (!fields.has('every') && fields.has('burst'))
    fields.problem('burst', 'belongs to every; other callers come one by one');
  const think = readDelay(fields, 'think');
  if (!fields.has('clients') && fields.has('think')) fields.problem('think', 'belongs to clients');
  const fromMs = fields.duration('from', { min: 0, max: durationMs }) ?? 0;
  const untilMs = fields.duration('until', { min: 0, max: durationMs }) ?? durationMs;
  if (untilMs <= fromMs) fields.problem('until', `is ${untilMs} ms, not after from, which is ${fromMs} ms`);
  const hold = fields.required('hold', () => readDelay(fields, 'hold'), 'such as 20ms or { mean: 20ms }', {
    kind: 'fixed',
    ms: 0,
  });
  if (clients !== undefined && meanOf(hold) + meanOf(think ?? noThought) < shortestRoundMs)
    fields.problem(
      'clients',
      `must take at least ${shortestRoundMs} ms for hold and think together, on average`,
    );
  const queryTimeoutMs = fields.duration('queryTimeout', { min: 1, max: scenarioBounds.delayMs });
  return {
    tenant: fields.name('tenant') ?? tenant,
    fromMs,
    untilMs,
    perSecond,
    everyMs,
    ...(clients !== undefined && { clients, think: think ?? noThought }),
    ...(queryTimeoutMs !== undefined && { queryTimeoutMs }),
    burst: fields.integer('burst', { min: 1, max: most }) ?? 1,
    hold,
    maxInUse: fields.integer('maxInUse', { min: 1, max: most }) ?? Number.POSITIVE_INFINITY,
    maxWaitMs: fields.duration('maxWait', { min: 1, max: scenarioBounds.delayMs }),
  };
}

/** How many callers that will be, about. */
export function expectedCallers(workload: WorkloadPlan | undefined): number {
  let callers = 0;
  for (const { fromMs, untilMs, perSecond, everyMs, burst, clients, ...plan } of workload?.arrivals ?? []) {
    const span = Math.max(0, untilMs - fromMs);
    if (perSecond !== undefined) callers += (perSecond * span) / 1_000;
    else if (everyMs !== undefined) callers += burst * Math.ceil(span / everyMs);
    else if (clients !== undefined)
      callers +=
        (clients * span) / Math.max(shortestRoundMs, meanOf(plan.hold) + meanOf(plan.think ?? noThought));
  }
  return callers;
}

export function tooManyCallers(callers: number): string | undefined {
  if (callers <= scenarioBounds.callers) return undefined;
  return `bring about ${count(Math.round(callers))} callers in all, more than the ${count(scenarioBounds.callers)} that can be simulated; make the simulation shorter or the rates lower`;
}

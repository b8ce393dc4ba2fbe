/** Reads the assertions of a scenario. One that could not fail is refused. */
import type { AssertionPlan, FaultPlan, ServicePlan } from './scenario.js';
import { Fields, isMapping, readDuration, show } from './scenario-reader-fields.js';
import { scenarioBounds } from './scenario-reader-keys.js';
import { Problems } from './scenario-reader-problems.js';

/** More than a server could accept in a simulation. */
const mostOpened = Number.MAX_SAFE_INTEGER;

type Assertions = Fields<'assertions'>;

export function readAssertions(
  scenario: Fields<'scenario'>,
  services: readonly ServicePlan[],
  faults: readonly FaultPlan[],
  durationMs: number,
): AssertionPlan {
  const fields =
    scenario.group('assertions', 'assertions') ?? new Fields('assertions', {}, 'assertions', new Problems());
  const within = { min: 1, max: durationMs };
  refuseVain(fields, services, faults);
  return {
    maxConnectsPerSec: fields.number('assertMaxConnectsPerSec', { min: 0, max: scenarioBounds.perSecond }),
    convergeWithinMs: fields.duration('assertConvergeWithin', within),
    stableForMs: fields.duration('assertStableFor', within),
    zeroEmptyEvents: fields.flag('assertZeroEmptyEvents') ?? false,
    recoverWithinMs: fields.duration('assertRecoverWithin', within),
    waits: readWaits(fields),
    fairness: readFairness(fields),
    maxFailedCallers: fields.integer('assertMaxFailedCallers', { min: 0, max: scenarioBounds.callers }),
    maxOpened: fields.integer('assertMaxOpened', { min: 0, max: mostOpened }),
    maxEmptyEvents: fields.integer('assertMaxEmptyEvents', { min: 0, max: scenarioBounds.callers }),
  };
}

function refuseVain(
  fields: Assertions,
  services: readonly ServicePlan[],
  faults: readonly FaultPlan[],
): void {
  const arrivals = services.flatMap(({ workload }) => workload?.arrivals ?? []);
  if (fields.has('assertRecoverWithin') && faults.length === 0)
    fields.problem('assertRecoverWithin', 'has nothing to judge: the scenario has no faults');
  for (const key of [
    'assertWait',
    'assertFairness',
    'assertMaxFailedCallers',
    'assertMaxEmptyEvents',
  ] as const) {
    if (fields.has(key) && arrivals.length === 0)
      fields.problem(key, 'has nothing to judge: no service has a workload');
  }
  if (fields.has('assertFairness') && new Set(arrivals.map(({ tenant }) => tenant)).size === 1)
    fields.problem('assertFairness', 'has nothing to judge: there is only one tenant');
}

/** `{ p50: 1ms, p99: 10ms, max: 1s }`. */
function readWaits(fields: Assertions): AssertionPlan['waits'] {
  const value = fields.raw('assertWait');
  if (value === undefined) return [];
  const path = fields.pathOf('assertWait');
  if (!isMapping(value) || Object.keys(value).length === 0) {
    fields.problem(
      'assertWait',
      `must be percentiles and durations, such as { p99: 10ms }, not ${show(value)}`,
    );
    return [];
  }
  return Object.entries(value).flatMap(([name, limit]) => {
    // As text, because 99.9 divided by 100 is not 0.999.
    const percentile = name === 'max' ? 1 : Number(`${/^p(\d{1,2}(?:\.\d{1,3})?)$/.exec(name)?.[1]}e-2`);
    if (!(percentile > 0)) {
      fields.problems.add(`${path}.${name}`, 'is not a percentile; write p50, p99, p99.9 or max');
      return [];
    }
    const range = { min: 0, max: scenarioBounds.delayMs };
    const maxMs = readDuration(limit, range, (message) => fields.problems.add(`${path}.${name}`, message));
    return maxMs === undefined ? [] : [{ percentile, maxMs }];
  });
}

/** `{ jain: 0.9, tenantP99: 50ms }`, or the index alone. */
function readFairness(fields: Assertions): AssertionPlan['fairness'] {
  if (!fields.has('assertFairness')) return undefined;
  const index = { min: 0, max: 1 };
  if (typeof fields.raw('assertFairness') === 'number')
    return { minJain: fields.number('assertFairness', index), maxTenantP99Ms: undefined };
  const inner = fields.group('assertFairness', 'fairness');
  if (inner === undefined) return undefined;
  if (!inner.has('jain') && !inner.has('tenantP99'))
    fields.problem('assertFairness', 'must have jain, tenantP99 or both');
  return {
    minJain: inner.number('jain', index),
    maxTenantP99Ms: inner.duration('tenantP99', { min: 0, max: scenarioBounds.delayMs }),
  };
}

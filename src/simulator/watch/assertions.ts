/** Compares the assertions of a scenario with what happened. */
import { formatDuration } from '../../kernel/duration.js';
import { jainText } from '../format.js';
import { jainOf } from '../measures/fairness.js';
import { toMicroseconds, type WaitHistogram } from '../measures/wait-histogram.js';
import type { TenantTally } from '../measures/work-tally.js';
import type { Service } from '../process/service.js';
import type { AssertionOutcome, FaultRecord } from '../result.js';
import type { AssertionPlan } from '../scenario/scenario.js';
import { type FillWatch, stablePart } from './fill-watch.js';

/** The facts to judge by, at the end. */
export interface Evidence {
  readonly durationMs: number;
  readonly peakPerSecond: number;
  /** Connections that the server accepted. */
  readonly accepted: number;
  readonly fills: FillWatch;
  readonly services: readonly Service[];
  readonly faults: readonly FaultRecord[];
  readonly waits: WaitHistogram;
  readonly tenants: readonly TenantTally[];
}

/** In the order of the plan; what is not asked is not judged. */
export function judge(plan: AssertionPlan, evidence: Evidence): AssertionOutcome[] {
  const outcomes: AssertionOutcome[] = [];
  if (plan.maxConnectsPerSec !== undefined) outcomes.push(judgeRate(plan.maxConnectsPerSec, evidence));
  if (plan.convergeWithinMs !== undefined) outcomes.push(judgeConvergence(plan.convergeWithinMs, evidence));
  if (plan.stableForMs !== undefined) outcomes.push(judgeStability(plan.stableForMs, evidence));
  if (plan.zeroEmptyEvents) outcomes.push(judgeEmptyEvents(evidence));
  if (plan.recoverWithinMs !== undefined) outcomes.push(judgeRecovery(plan.recoverWithinMs, evidence));
  for (const { percentile, maxMs } of plan.waits) outcomes.push(judgeWait(percentile, maxMs, evidence));
  const { minJain, maxTenantP99Ms } = plan.fairness ?? {};
  if (minJain !== undefined) outcomes.push(judgeFairness(minJain, evidence));
  if (maxTenantP99Ms !== undefined) outcomes.push(judgeTenants(maxTenantP99Ms, evidence));
  if (plan.maxFailedCallers !== undefined) outcomes.push(judgeFailures(plan.maxFailedCallers, evidence));
  if (plan.maxOpened !== undefined) outcomes.push(judgeOpened(plan.maxOpened, evidence));
  if (plan.maxEmptyEvents !== undefined) outcomes.push(judgeAllEmptyEvents(plan.maxEmptyEvents, evidence));
  return outcomes;
}

/** By the server, within any second, wherever that begins. */
function judgeRate(max: number, { peakPerSecond }: Evidence): AssertionOutcome {
  return {
    name: 'assertMaxConnectsPerSec',
    passed: peakPerSecond <= max,
    expected: `at most ${max} connections accepted within any one second`,
    actual: `up to ${peakPerSecond}`,
  };
}

function judgeConvergence(withinMs: number, { fills, services }: Evidence): AssertionOutcome {
  const { convergedAt } = fills;
  const expected = `every service has all it wants within ${formatDuration(withinMs)}`;
  const name = 'assertConvergeWithin';
  if (convergedAt !== undefined)
    return { name, passed: convergedAt <= withinMs, expected, actual: `after ${time(convergedAt)}` };
  const missing = services.filter((service) => fills.firstFullAt(service) === undefined);
  const [first] = missing as [Service];
  const actual = `never: ${missing.length} of ${services.length} services did not, such as ${first.plan.name} with ${first.has} of ${first.wanted}`;
  return { name, passed: false, expected, actual };
}

/** From when all have converged; while a fault and its consequences last, nothing is asked. */
function judgeStability(stableForMs: number, { fills, durationMs }: Evidence): AssertionOutcome {
  const { convergedAt, firstDip } = fills;
  const part = `${stablePart * 100}%`;
  const outcome = (passed: boolean, actual: string): AssertionOutcome => ({
    name: 'assertStableFor',
    passed,
    expected: `from then on, no service below ${part} of what it wants for ${formatDuration(stableForMs)}`,
    actual,
  });
  if (convergedAt === undefined) return outcome(false, 'not all services ever had what they want');
  if (firstDip !== undefined) {
    const { service, atMs, has, wanted } = firstDip;
    return outcome(false, `${service} had ${has} of ${wanted} at ${time(atMs)}`);
  }
  const left = durationMs - convergedAt;
  if (left < stableForMs) return outcome(false, `the simulation ended ${time(left)} later`);
  return outcome(true, 'none was');
}

/** Callers who came before a process had all it wants for the first time could not have found more, and do not count. */
function judgeEmptyEvents({ services }: Evidence): AssertionOutcome {
  let late = 0;
  let early = 0;
  for (const service of services) {
    const { emptyEvents, earlyEmptyEvents } = service.totals();
    late += emptyEvents - earlyEmptyEvents;
    early += earlyEmptyEvents;
  }
  return {
    name: 'assertZeroEmptyEvents',
    passed: late === 0,
    expected: 'no checkout finds nothing ready, once a service has been full',
    actual: early === 0 ? `${late} did` : `${late} did, and ${early} before`,
  };
}

/** After each fault on its own. */
function judgeRecovery(withinMs: number, { faults }: Evidence): AssertionOutcome {
  let isAllRight = true;
  const times: string[] = [];
  for (const { kind, fromMs, untilMs, recoveredAtMs } of faults) {
    const tookMs = (recoveredAtMs ?? Number.POSITIVE_INFINITY) - untilMs;
    if (tookMs > withinMs) isAllRight = false;
    const took = recoveredAtMs === undefined ? 'never' : time(tookMs);
    times.push(`${kind} at ${formatDuration(fromMs)}: ${took}`);
  }
  return {
    name: 'assertRecoverWithin',
    passed: isAllRight,
    expected: `within ${formatDuration(withinMs)} of each fault's end, every service has what it had before`,
    actual: times.length === 0 ? 'there was no fault' : times.join(', '),
  };
}

function judgeWait(percentile: number, maxMs: number, { waits }: Evidence): AssertionOutcome {
  const what = percentile >= 1 ? 'max' : `p${Number((percentile * 100).toFixed(3))}`;
  const waited = waits.percentile(percentile);
  return {
    name: `assertWait ${what}`,
    passed: waited <= maxMs,
    expected: `at most ${formatDuration(maxMs)}`,
    actual: time(waited),
  };
}

function judgeFairness(min: number, { tenants }: Evidence): AssertionOutcome {
  const index = jainOf(tenants);
  return {
    name: 'assertFairness jain',
    passed: index >= min,
    expected: `at least ${min}`,
    actual: jainText(index),
  };
}

function judgeTenants(maxMs: number, { tenants }: Evidence): AssertionOutcome {
  let worst = '';
  let longest = -1;
  for (const tenant of tenants) {
    const p99 = tenant.waits.percentile(0.99);
    if (p99 <= longest) continue;
    longest = p99;
    worst = tenant.name;
  }
  return {
    name: 'assertFairness tenantP99',
    passed: longest <= maxMs,
    expected: `at most ${formatDuration(maxMs)} for every tenant`,
    actual: longest < 0 ? 'there was no tenant' : `${time(longest)} for ${worst}`,
  };
}

function judgeFailures(max: number, { waits: { failed, count } }: Evidence): AssertionOutcome {
  return {
    name: 'assertMaxFailedCallers',
    passed: failed <= max,
    expected: `at most ${max} callers without a connection`,
    actual: `${failed} of ${count}`,
  };
}

function judgeOpened(max: number, { accepted }: Evidence): AssertionOutcome {
  return {
    name: 'assertMaxOpened',
    passed: accepted <= max,
    expected: `at most ${max} connections opened`,
    actual: `${accepted}`,
  };
}

function judgeAllEmptyEvents(max: number, { services }: Evidence): AssertionOutcome {
  const count = services.reduce((sum, service) => sum + service.totals().emptyEvents, 0);
  return {
    name: 'assertMaxEmptyEvents',
    passed: count <= max,
    expected: `at most ${max} checkouts find nothing ready`,
    actual: `${count} did`,
  };
}

function time(milliseconds: number): string {
  return formatDuration(toMicroseconds(milliseconds));
}

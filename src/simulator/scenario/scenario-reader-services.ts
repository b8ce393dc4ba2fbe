/** The services of a scenario: several of a kind are written once and multiplied out. */
import { count } from '../format.js';
import { poolKinds } from './products.js';
import type { ServicePlan, WorkloadPlan } from './scenario.js';
import type { Fields } from './scenario-reader-fields.js';
import { scenarioBounds } from './scenario-reader-keys.js';
import { PoolReader, type ReadPool } from './scenario-reader-pools.js';
import { expectedCallers, readWorkload, tooManyCallers } from './scenario-reader-workload.js';

export function readServices(
  scenario: Fields<'scenario'>,
  durationMs: number,
  isDurationKnown: boolean,
): ServicePlan[] {
  const defaults = scenario.group('defaults', 'defaults');
  const usualKind = defaults?.oneOf('kind', poolKinds) ?? 'engine';
  const pools = new PoolReader(defaults?.raw('pool'), usualKind, scenario.has('budget'), scenario.problems);
  const kinds = scenario.groups('services', 'service', scenarioBounds.services);
  if (kinds.length === 0)
    scenario.problem('services', 'is missing: a list with at least one service, such as - name: history');
  const services: ServicePlan[] = [];
  const totals = { connections: 0, callers: 0 };
  for (const fields of kinds) {
    const name = fields.required('name', () => fields.name('name'), 'such as history', 'unnamed');
    const poolKind = fields.oneOf('kind', poolKinds) ?? usualKind;
    const pool = pools.read(fields.raw('pool'), fields.pathOf('pool'), name, poolKind);
    const most = scenarioBounds.workloadsPerService;
    const own = fields.groups('workload', 'workload', most);
    // Defaults are read anew for each kind: the tenant is the service's own where nothing else is said.
    const parts = fields.has('workload') ? own : (defaults?.groups('workload', 'workload', most) ?? []);
    const workload = readWorkload(parts, name, durationMs);
    const made = multiply(fields, name, pool, workload, durationMs, scenario.has('budget'));
    totals.connections += made.length * ((pool.policy?.max ?? 0) + (pool.reserve?.size ?? 0));
    totals.callers += made.length * expectedCallers(workload);
    // Services beyond the bound are reported, not made.
    if (services.length + made.length <= scenarioBounds.services) services.push(...made);
    else tooMany(scenario, services.length + made.length);
  }
  pools.finish();
  refuseTwins(services, scenario);
  if (totals.connections > scenarioBounds.connections)
    scenario.problem(
      'services',
      `have pools for ${count(totals.connections)} connections in all, more than the ${count(scenarioBounds.connections)} that can be simulated`,
    );
  const callers = tooManyCallers(totals.callers);
  if (callers !== undefined && isDurationKnown) scenario.problem('services', callers);
  return services;
}

function multiply(
  fields: Fields<'service'>,
  name: string,
  pool: ReadPool,
  workload: WorkloadPlan | undefined,
  durationMs: number,
  areUsers: boolean,
): ServicePlan[] {
  const aDay = { min: 0, max: durationMs };
  const skew = { min: -scenarioBounds.clockSkewMs, max: scenarioBounds.clockSkewMs };
  const count = fields.integer('count', { min: 1, max: scenarioBounds.services });
  const startDelay = fields.duration('startDelay', aDay) ?? 0;
  const startDelayStep = fields.duration('startDelayStep', aDay) ?? 0;
  const clockSkew = fields.duration('clockSkew', skew) ?? 0;
  const clockSkewStep = fields.duration('clockSkewStep', skew) ?? 0;
  const drift = { min: -scenarioBounds.clockDrift, max: scenarioBounds.clockDrift };
  const clockDrift = fields.number('clockDrift', drift) ?? 0;
  const weight = fields.number('weight', { min: 0.001, max: 1_000 });
  const last = startDelay + startDelayStep * ((count ?? 1) - 1);
  if (last > durationMs)
    fields.problem(
      'startDelayStep',
      `lets the last one start at ${last} ms, after the end of the simulation`,
    );
  return Array.from({ length: count ?? 1 }, (_, index) =>
    count === undefined ? name : `${name}-${index + 1}`,
  ).map((own, index) => ({
    name: own,
    group: name,
    startDelayMs: startDelay + startDelayStep * index,
    pool: pool.options,
    ...(pool.limiter && { limiter: pool.limiter }),
    ...(pool.reserve && { reserve: pool.reserve }),
    workload: areUsers ? asTenant(workload, name, own) : workload,
    clockSkewMs: clockSkew + clockSkewStep * index,
    clockDrift,
    ...(weight !== undefined && { weight }),
  }));
}

/** Each user of a budget is a tenant, also where several are written as one. */
function asTenant(workload: WorkloadPlan | undefined, kind: string, own: string): WorkloadPlan | undefined {
  if (workload === undefined) return undefined;
  const arrivals = workload.arrivals.map((plan) => (plan.tenant === kind ? { ...plan, tenant: own } : plan));
  return { arrivals };
}

function tooMany(scenario: Fields<'scenario'>, made: number): void {
  scenario.problem(
    'services',
    `are ${count(made)} or more in all, more than the ${count(scenarioBounds.services)} that can be simulated`,
  );
}

function refuseTwins(services: readonly ServicePlan[], scenario: Fields<'scenario'>): void {
  const seen = new Set<string>();
  for (const { name } of services) {
    if (seen.has(name)) scenario.problem('services', `has two services named ${name}`);
    seen.add(name);
  }
}

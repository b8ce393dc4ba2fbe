/** A run in a few rows of words and numbers, for every report that is read by people. */
import { refillCauses } from '../../core/reasons.js';
import { count, jainText, percent, short, time } from '../format.js';
import type { FaultRecord, SimulationResult } from '../result.js';
import { occurring } from './charts.js';

export type Row = readonly [label: string, value: string];

export function summaryOf(result: SimulationResult): Row[] {
  const { server, samples } = result;
  return [
    ['connections at most', `${count(server.peakConnections)} of ${count(server.connectionLimit)}`],
    ['opened', count(server.accepted)],
    ['opened in any one second', `${count(server.peakPerSecond)} at most`],
    ['refused by the server', refusals(result)],
    ...queueRows(result),
    ...leaseRows(result),
    ...budgetRows(result),
    ['all services full after', converged(result)],
    ...waitRows(result),
    ...jainRows(result),
    ['nothing ready', `${count(samples.emptyEvents.at(-1) ?? 0)} times`],
    ['discarded', discards(result)],
    ['not opened', refillFailures(result)],
  ];
}

function refusals({ server }: SimulationResult): string {
  if (server.refusedRate + server.refusedFull === 0) return 'none';
  return `${count(server.refusedRate)} too fast, ${count(server.refusedFull)} too many`;
}

function queueRows({ server: { longestQueue } }: SimulationResult): Row[] {
  return longestQueue === undefined ? [] : [['logins that waited', `${count(longestQueue)} at most`]];
}

function leaseRows({ coordinator }: SimulationResult): Row[] {
  if (coordinator === undefined) return [];
  const { leases, peakLeases, leaseLimit } = coordinator;
  return [['leases', `${count(peakLeases)} of ${count(leaseLimit)} at most, ${count(leases)} in the end`]];
}

function budgetRows({ budget }: SimulationResult): Row[] {
  if (budget === undefined) return [];
  const { peak, capacity, recalls, rebalances } = budget;
  return [
    ['budget', `${count(peak)} of ${count(capacity)} at most, ${count(recalls)} asked back`],
    ['shares looked at', `${count(rebalances)} times`],
  ];
}

function converged({ services }: SimulationResult): string {
  const missing = services.filter(({ convergedAtMs }) => convergedAtMs === undefined).length;
  if (missing > 0) return `never (${count(missing)} of ${count(services.length)} services were not)`;
  return time(Math.max(0, ...services.map(({ convergedAtMs }) => convergedAtMs ?? 0)));
}

function waitRows({ waits, ends }: SimulationResult): Row[] {
  const keptAway: Row[] =
    ends.keptAway === 0 ? [] : [['kept away by maxInUse', `${count(ends.keptAway)} callers`]];
  if (waits.callers === 0) return [['callers', 'none'], ...keptAway];
  const { callers, failed, p50, p90, p99, max } = waits;
  const cutOff = ends.cutOff === 0 ? '' : `, ${count(ends.cutOff)} cut off`;
  return [
    ['callers', `${count(callers)}, ${count(failed)} failed (${percent(failed / callers)})${cutOff}`],
    ...keptAway,
    ['waits', `p50 ${time(p50)}, p90 ${time(p90)}, p99 ${time(p99)}, max ${time(max)}`],
  ];
}

function jainRows({ jain }: SimulationResult): Row[] {
  return jain === undefined ? [] : [['Jain index', jainText(jain)]];
}

function discards({ samples }: SimulationResult): string {
  const reasons = occurring(samples).map(
    (reason) => `${reason} ${count(samples.discards[reason].at(-1) ?? 0)}`,
  );
  return reasons.join(', ') || 'none';
}

function refillFailures({ services }: SimulationResult): string {
  const causes = refillCauses.flatMap((cause) => {
    const failures = services.reduce((sum, service) => sum + (service.refillFailures[cause] ?? 0), 0);
    return failures > 0 ? [`${cause} ${count(failures)}`] : [];
  });
  return causes.join(', ') || 'none';
}

export interface FaultRow {
  readonly when: string;
  readonly kind: string;
  readonly whom: string;
  readonly recovered: string;
}

export function faultRow(
  { kind, fromMs, untilMs, services, recoveredAtMs }: FaultRecord,
  all: number,
): FaultRow {
  const few = services.slice(0, 4).join(', ');
  const many = services.length > 4 ? ` and ${count(services.length - 4)} more` : '';
  return {
    when: untilMs > fromMs ? `${time(fromMs)} to ${time(untilMs)}` : time(fromMs),
    kind,
    whom: services.length === 0 || services.length === all ? 'all services' : `${few}${many}`,
    recovered:
      recoveredAtMs === undefined ? 'not recovered' : `recovered ${time(recoveredAtMs - untilMs)} later`,
  };
}

/** The tenants in the order of the scenario, each with its part of the work done. */
export function tenantRows({ tenants }: SimulationResult): readonly (readonly string[])[] {
  const all = tenants.reduce((sum, { completed }) => sum + completed, 0);
  return tenants.map(({ tenant, callers, completed, failed, cutOff, keptAway, p50, p99 }) => [
    tenant,
    count(callers),
    count(completed),
    all === 0 ? '0 %' : percent(completed / all),
    count(failed),
    count(cutOff),
    count(keptAway),
    `${short(p50)} ms`,
    `${short(p99)} ms`,
  ]);
}

export const tenantColumns = [
  'tenant',
  'callers',
  'served',
  'part',
  'failed',
  'cut off',
  'kept away',
  'p50',
  'p99',
] as const;

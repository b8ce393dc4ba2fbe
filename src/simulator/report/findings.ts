/** Sentences that say what is wrong with a run: which numbers do not fit together, and what callers felt of it. */

import { count, percent, short, time } from '../format.js';
import type { SimulationResult } from '../result.js';
import { meanOf } from '../scenario/delay-mean.js';
import type { Scenario, ServicePlan } from '../scenario/scenario.js';
import type { SimulationRun } from './run.js';

/** The most important first; none where nothing stands out. */
export function findingsOf({ scenario, result }: SimulationRun): string[] {
  return [
    ...limitFindings(scenario, result),
    ...demandFindings(scenario, result),
    ...refusalFindings(scenario, result),
    ...callerFindings(result),
    ...failedAssertions(result),
  ];
}

function limitFindings(
  { server, coordinator, budget }: Scenario,
  { services, server: seen }: SimulationResult,
): string[] {
  const pools = services.reduce((sum, { limit }) => sum + limit, 0);
  const { connectionLimit } = server;
  const found: string[] = [];
  const above = [
    { what: 'leases allow', limit: coordinator?.leaseLimit },
    { what: 'budget allows', limit: budget?.capacity },
  ].filter(({ limit }) => limit !== undefined);
  for (const { what, limit = 0 } of above) {
    if (limit > connectionLimit)
      found.push(`The ${what} ${count(limit)} connections on a server of ${count(connectionLimit)}.`);
  }
  if (above.length === 0 && pools > connectionLimit) {
    const refused =
      seen.refusedFull === 0 ? '' : `, which refused ${count(seen.refusedFull)} of their connections`;
    found.push(
      `The pools add up to ${count(pools)} connections on a server of ${count(connectionLimit)}${refused}.`,
    );
  }
  return found;
}

/** Open-loop callers that need more connections than there are wait longer and longer. */
function demandFindings(scenario: Scenario, result: SimulationResult): string[] {
  const { services, server, coordinator, budget, durationMs } = scenario;
  const limits = [
    result.services.reduce((sum, { limit }) => sum + limit, 0),
    server.connectionLimit,
    coordinator?.leaseLimit ?? Number.POSITIVE_INFINITY,
    budget?.capacity ?? Number.POSITIVE_INFINITY,
  ];
  const available = Math.min(...limits);
  const needed = services.reduce((sum, service) => sum + connectionsNeeded(service, durationMs), 0);
  if (needed <= available) return [];
  return [
    `Callers need ${short(needed)} connections on average, and there are at most ${count(available)}: waits grow until callers give up or stay away.`,
  ];
}

/** Little's law, for the callers without a bound of their own. */
function connectionsNeeded({ workload }: ServicePlan, durationMs: number): number {
  let needed = 0;
  for (const { perSecond, everyMs, burst, hold, maxInUse, fromMs, untilMs } of workload?.arrivals ?? []) {
    // Clients of a closed loop come no faster than they are served.
    const isAlways = fromMs === 0 && untilMs >= durationMs;
    const rate = perSecond ?? (everyMs === undefined ? 0 : (burst * 1_000) / everyMs);
    if (isAlways) needed += Math.min(maxInUse, (rate * meanOf(hold)) / 1_000);
  }
  return needed;
}

function refusalFindings(
  { limiter, server, services }: Scenario,
  { server: seen }: SimulationResult,
): string[] {
  if (seen.refusedRate === 0) return [];
  const allowed =
    limiter === undefined
      ? services.some((service) => service.limiter === undefined)
        ? 'nothing limits how fast the pools open connections'
        : 'each pool has a limit for itself alone'
      : `the limiter lets ${limiter.scope === 'perService' ? 'each service open' : 'all of them open'} ${count(limiter.perSecond)} a second`;
  return [
    `The server refused ${count(seen.refusedRate)} connections that came too fast: it takes ${count(server.perSecond)} a second, and ${allowed}.`,
  ];
}

function callerFindings({ waits, ends }: SimulationResult): string[] {
  const found: string[] = [];
  if (waits.failed > 0)
    found.push(
      `${count(waits.failed)} of ${count(waits.callers)} callers (${percent(waits.failed / waits.callers)}) went away without a connection; the longest wait was ${time(waits.max)}.`,
    );
  if (ends.cutOff > 0) found.push(`${callers(ends.cutOff)} lost a connection while using it.`);
  if (ends.keptAway > 0)
    found.push(`${callers(ends.keptAway)} stayed away because of the maxInUse of their tenant.`);
  return found;
}

function callers(number: number): string {
  return number === 1 ? '1 caller' : `${count(number)} callers`;
}

function failedAssertions({ assertions }: SimulationResult): string[] {
  return assertions
    .filter(({ passed }) => !passed)
    .map(({ name, expected, actual }) => `${name} did not hold: ${actual}, expected ${expected}.`);
}

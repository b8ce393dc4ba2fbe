/** Merges the fleet statistics of several processes: the supervisor has the leases, and each worker has a rate limiter. */
import type { CallTally } from '../../coordination/dynamodb/table-calls.js';
import type { TableRateLimiterStats } from '../../coordination/dynamodb/table-rate-limiter.js';
import type { FleetStats } from './fleet.js';

/** Worst state first. */
const states: readonly TableRateLimiterStats['state'][] = ['failing', 'ok', 'unused'];

export function mergeFleet(all: readonly FleetStats[]): FleetStats[] {
  const byServer = new Map<string, FleetStats[]>();
  for (const stats of all) byServer.set(stats.server, [...(byServer.get(stats.server) ?? []), stats]);
  return Array.from(byServer.values(), (same) => {
    const main = same.find(({ leases }) => leases !== undefined) ?? (same[0] as FleetStats);
    const rates = same.flatMap(({ rate }) => (rate === undefined ? [] : [rate]));
    return { ...main, rate: rates.length === 0 ? undefined : rates.reduce(addRates) };
  });
}

function addRates(one: TableRateLimiterStats, other: TableRateLimiterStats): TableRateLimiterStats {
  return {
    inHand: one.inHand + other.inHand,
    taken: one.taken + other.taken,
    postponed: one.postponed + other.postponed,
    denied: one.denied + other.denied,
    refused: one.refused + other.refused,
    expired: one.expired + other.expired,
    batch: Math.max(one.batch, other.batch),
    // Each process can use the whole rate while the others open nothing.
    rate: Math.max(one.rate, other.rate),
    waitMs: Math.max(one.waitMs, other.waitMs),
    state: states.find((state) => one.state === state || other.state === state) ?? 'unused',
    calls: addCalls(one.calls, other.calls),
  };
}

function addCalls(one: CallTally, other: CallTally): CallTally {
  const { conflict, throttled, misconfigured, unavailable } = one.failures;
  return {
    calls: one.calls + other.calls,
    writes: one.writes + other.writes,
    failures: {
      conflict: conflict + other.failures.conflict,
      throttled: throttled + other.failures.throttled,
      misconfigured: misconfigured + other.failures.misconfigured,
      unavailable: unavailable + other.failures.unavailable,
    },
    answered: one.answered + other.answered,
    answeredMs: one.answeredMs + other.answeredMs,
    lastMs: Math.max(one.lastMs, other.lastMs),
  };
}

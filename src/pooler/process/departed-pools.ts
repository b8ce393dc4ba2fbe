/** What pools have counted, and what those have that are no more: without it, totals would fall when a pool is forgotten. */
import { type Counters, noCounters, sumOf } from '../console/counters.js';
import type { BackendPool } from '../servers/backend-pool.js';

export class DepartedPools {
  readonly #databases = new Map<string, Counters>();

  /** By database. Only those that a server has answered for, so that there are no more than the servers have. */
  get databases(): ReadonlyMap<string, Counters> {
    return this.#databases;
  }

  add(pool: BackendPool): void {
    const counters = countersOf(pool);
    if (counters.serverAssignments === 0) return;
    const before = this.#databases.get(pool.database) ?? noCounters;
    this.#databases.set(pool.database, sumOf([before, counters]));
  }
}

export function countersOf(pool: BackendPool): Counters {
  const tally = pool.tally.snapshot();
  const micros = (milliseconds: number): number => Math.round(milliseconds * 1_000);
  return {
    serverAssignments: Math.max(0, pool.totals().acquired - pool.tally.borrowed),
    clientLogins: tally.logins,
    transactions: tally.transactions,
    queries: tally.queries,
    bytesReceived: tally.received,
    bytesSent: tally.sent,
    transactionMicros: micros(tally.transactionMs),
    queryMicros: micros(tally.queryMs),
    waitMicros: micros(tally.waitMs),
    clientParses: tally.clientParses,
    serverParses: tally.serverParses,
    binds: tally.binds,
    sessionChecks: tally.sessionChecks,
    sessionPins: tally.sessionPins,
    swallowed: tally.swallowed,
  };
}

/** What pools have counted, and what those have that are no more: without it, totals would fall when a pool is forgotten. */
import { type Counters, noCounters, sumOf } from '../console/counters.js';
import type { BackendPool } from '../servers/backend-pool.js';

/** Databases come and go on a server; of so many the totals are kept apart. */
const mostDatabases = 1_000;
const otherDatabases = '(others)';

export class DepartedPools {
  readonly #databases = new Map<string, Counters>();

  /** By database. Only those that a server has answered for, and of too many the sum. */
  get databases(): ReadonlyMap<string, Counters> {
    return this.#databases;
  }

  add(pool: BackendPool): void {
    const counters = countersOf(pool);
    if (counters.serverAssignments === 0) return;
    const isApart = this.#databases.has(pool.database) || this.#databases.size < mostDatabases;
    const name = isApart ? pool.database : otherDatabases;
    const before = this.#databases.get(name) ?? noCounters;
    this.#databases.set(name, sumOf([before, counters]));
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
    multiplexed: tally.multiplexed,
    multiplexedAgain: tally.multiplexedAgain,
    swallowed: tally.swallowed,
  };
}

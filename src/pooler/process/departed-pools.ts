/** Counters of pools, including closed ones: without those, totals would fall when a pool is forgotten. */
import { type Counters, noCounters, sumOf } from '../console/counters.js';
import type { BackendPool } from '../servers/backend-pool.js';

/** Limit of databases with totals of their own. Databases may come and go on a server. */
const mostDatabases = 1_000;
const otherDatabases = '(others)';

export class DepartedPools {
  readonly #databases = new Map<string, Counters>();

  /** Totals by database. Only databases that a server has confirmed; beyond the limit, the sum. */
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
    longWaits: tally.longWaits,
    swallowed: tally.swallowed,
  };
}

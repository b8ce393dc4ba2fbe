/** What is counted for each database, and the averages of the last moments. */

/** Since the start. Times are microseconds. */
export interface Counters {
  /** Times that a client got a server. */
  readonly serverAssignments: number;
  /** Clients that were let in. */
  readonly clientLogins: number;
  readonly transactions: number;
  readonly queries: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** In a transaction, busy or not. */
  readonly transactionMicros: number;
  /** Busy with a query. */
  readonly queryMicros: number;
  /** That clients waited for a server. */
  readonly waitMicros: number;
  /** Statements that clients prepared, those that servers were made to prepare, and executions begun. */
  readonly clientParses: number;
  readonly serverParses: number;
  readonly binds: number;
  /** Questions to servers what a client has left there, and those after which the client kept its server. */
  readonly sessionChecks: number;
  readonly sessionPins: number;
  /** Statements that servers would refuse, and that were answered in their place. */
  readonly swallowed: number;
  /** Statements sent behind those of other clients on one connection, and those of them that were sent once more. */
  readonly multiplexed: number;
  readonly multiplexedAgain: number;
}

export const noCounters: Counters = Object.freeze({
  serverAssignments: 0,
  clientLogins: 0,
  transactions: 0,
  queries: 0,
  bytesReceived: 0,
  bytesSent: 0,
  transactionMicros: 0,
  queryMicros: 0,
  waitMicros: 0,
  clientParses: 0,
  serverParses: 0,
  binds: 0,
  sessionChecks: 0,
  sessionPins: 0,
  swallowed: 0,
  multiplexed: 0,
  multiplexedAgain: 0,
});

const names = Object.keys(noCounters) as (keyof Counters)[];

/** One made from each pair. */
function combine(one: Counters, other: Counters, make: (one: number, other: number) => number): Counters {
  return Object.fromEntries(names.map((name) => [name, make(one[name], other[name])])) as unknown as Counters;
}

export function sumOf(all: Iterable<Counters>): Counters {
  let sum = noCounters;
  for (const counters of all) sum = combine(sum, counters, (one, other) => one + other);
  return sum;
}

/** Counts per second; times per query, transaction or wait. Whole numbers, rounded down, as PgBouncer has them. */
export function averagesOf(total: Counters, before: Counters, windowMs: number): Counters {
  if (!(windowMs > 0)) return noCounters;
  const grown = combine(total, before, (now, then) => Math.max(0, now - then));
  const rates = combine(grown, noCounters, (count) => Math.floor((1_000 * count) / windowMs));
  return {
    ...rates,
    transactionMicros: each(grown.transactionMicros, grown.transactions),
    queryMicros: each(grown.queryMicros, grown.queries),
    waitMicros: each(grown.waitMicros, grown.serverAssignments),
  };
}

function each(sum: number, count: number): number {
  return count > 0 ? Math.floor(sum / count) : 0;
}

/**
 * Remembers what was counted some time ago. Told of the counters once in every `stats_period`; averages are made for the
 * time since the last but one, so that they never stand on a moment's worth.
 */
export class StatsWindow {
  #older: ReadonlyMap<string, Counters> = new Map();
  #newer: ReadonlyMap<string, Counters> = new Map();
  #olderAt: number;
  #newerAt: number;

  constructor(now: number) {
    this.#olderAt = this.#newerAt = now;
  }

  /** A period is over. */
  roll(now: number, counters: Iterable<readonly [database: string, counters: Counters]>): void {
    this.#older = this.#newer;
    this.#olderAt = this.#newerAt;
    this.#newer = new Map(Array.from(counters, ([database, counted]) => [database, { ...counted }]));
    this.#newerAt = now;
  }

  lengthAt(now: number): number {
    return now - this.#olderAt;
  }

  before(database: string): Counters {
    return this.#older.get(database) ?? noCounters;
  }
}

/** Counters of each database, and recent averages. */

/** Counters since the start. Times are microseconds. */
export interface Counters {
  /** Number of checkouts of a server connection. */
  readonly serverAssignments: number;
  /** Clients that have logged in. */
  readonly clientLogins: number;
  readonly transactions: number;
  readonly queries: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** Time in transactions, busy or not. */
  readonly transactionMicros: number;
  /** Time busy with queries. */
  readonly queryMicros: number;
  /** Time that clients have waited for a server. */
  readonly waitMicros: number;
  /** Statements that clients prepared, statements prepared on servers, and Binds. */
  readonly clientParses: number;
  readonly serverParses: number;
  readonly binds: number;
  /** Session checks, and those after which the client was pinned. */
  readonly sessionChecks: number;
  readonly sessionPins: number;
  /** Statements that the pooler answered because the server would refuse them. */
  readonly swallowed: number;
  /** Statements sent behind those of other clients on one connection, and those of them that were sent again. */
  readonly multiplexed: number;
  readonly multiplexedAgain: number;
  /** Long statements that had to wait because connections are left to short ones. */
  readonly longWaits: number;
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
  longWaits: 0,
});

const names = Object.keys(noCounters) as (keyof Counters)[];

/** Combines each pair of counters. */
function combine(one: Counters, other: Counters, make: (one: number, other: number) => number): Counters {
  return Object.fromEntries(names.map((name) => [name, make(one[name], other[name])])) as unknown as Counters;
}

export function sumOf(all: Iterable<Counters>): Counters {
  let sum = noCounters;
  for (const counters of all) sum = combine(sum, counters, (one, other) => one + other);
  return sum;
}

/** Counts per second; times per query, transaction or wait. Rounded down to whole numbers, as in PgBouncer. */
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
 * Keeps earlier counters for averages. `roll()` is called once per `stats_period`; averages cover the time since the last call
 * but one, so that their window is never too short.
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

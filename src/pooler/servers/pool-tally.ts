/** Counters of a pool since it was made, for the console and for metrics. Times are milliseconds. */
import { TimeHistogram } from '../../observe/time-histogram.js';
import { type MemoryLimit, memoryLimits } from '../config/memory-limits.js';

/** Limit of SQLSTATE classes per pool. There are few; a server that sends more invents them. */
const mostClasses = 100;
/** Class for errors without an SQLSTATE, and for classes beyond the limit. */
const otherClass = 'other';

export class PoolTally {
  /** Clients that have logged in. */
  logins = 0;
  /** Connections checked out for the pooler's own queries. */
  borrowed = 0;
  /** Bytes received from clients, and bytes sent to them. */
  received = 0;
  sent = 0;
  /** Time of the last answered query, by the clock of the process; undefined where none was answered. */
  answeredAt: number | undefined;
  /** Time with a server connection, and time until its answer. */
  readonly transactionTimes = new TimeHistogram();
  readonly queryTimes = new TimeHistogram();
  /** Wait times for a server connection, including waits that failed. */
  readonly waitTimes = new TimeHistogram();
  readonly dialTimes = new TimeHistogram();
  /** Parses from clients, Parses sent to servers, and Binds. */
  clientParses = 0;
  serverParses = 0;
  binds = 0;
  /** Connections cleaned after a client, and connections whose cleaning failed. */
  cleaned = 0;
  notCleaned = 0;
  /** How often a server was asked what a client had left in the session, and how often that was something. */
  sessionChecks = 0;
  sessionPins = 0;
  /** Statements sent behind those of other clients, and those of them that had to be sent again. */
  multiplexed = 0;
  multiplexedAgain = 0;
  /** Long statements that had to wait because connections are left to short ones. */
  longWaits = 0;
  /** Errors from servers that clients were told, by SQLSTATE class. */
  readonly serverErrors = new Map<string, number>();
  /** Errors that the pooler itself told clients, by SQLSTATE class and reason, separated by a space. */
  readonly ownErrors = new Map<string, number>();

  /** Statements that the pooler answered because the server would refuse them, by subject. */
  readonly swallowed = new Map<string, number>();

  /** How often a client or a server met a bound of memory. */
  readonly limitsReached = Object.fromEntries(memoryLimits.map((limit) => [limit, 0])) as Record<
    MemoryLimit,
    number
  >;

  limitReached(limit: MemoryLimit): void {
    this.limitsReached[limit]++;
  }

  /** Returns true for the first statement of its kind. */
  swallowedOne(what: string): boolean {
    addOne(this.swallowed, what);
    return this.swallowed.get(what) === 1;
  }

  /** The server told a client an error. */
  errorCame(sqlState: string): void {
    const { serverErrors } = this;
    const known = classOf(sqlState);
    addOne(serverErrors, serverErrors.has(known) || serverErrors.size < mostClasses ? known : otherClass);
  }

  /** The pooler told a client an error. `reason` has few distinct values. */
  ownErrorCame(sqlState: string, reason: string): void {
    addOne(this.ownErrors, `${classOf(sqlState)} ${reason}`);
  }

  snapshot(): PoolTallySnapshot {
    const { received, sent, clientParses, serverParses, binds, cleaned, notCleaned } = this;
    const { sessionChecks, sessionPins, multiplexed, multiplexedAgain, longWaits, logins } = this;
    return {
      logins,
      transactions: this.transactionTimes.count,
      queries: this.queryTimes.count,
      received,
      sent,
      transactionMs: this.transactionTimes.sumMs,
      queryMs: this.queryTimes.sumMs,
      waitMs: this.waitTimes.sumMs,
      clientParses,
      serverParses,
      binds,
      cleaned,
      notCleaned,
      sessionChecks,
      sessionPins,
      multiplexed,
      multiplexedAgain,
      longWaits,
      swallowed: [...this.swallowed.values()].reduce((sum, count) => sum + count, 0),
    };
  }
}

function classOf(sqlState: string): string {
  return /^[0-9A-Z]{5}$/.test(sqlState) ? sqlState.slice(0, 2) : otherClass;
}

function addOne(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

export interface PoolTallySnapshot {
  readonly logins: number;
  readonly transactions: number;
  readonly queries: number;
  readonly received: number;
  readonly sent: number;
  readonly transactionMs: number;
  readonly queryMs: number;
  readonly waitMs: number;
  readonly clientParses: number;
  readonly serverParses: number;
  readonly binds: number;
  readonly cleaned: number;
  readonly notCleaned: number;
  readonly sessionChecks: number;
  readonly sessionPins: number;
  readonly multiplexed: number;
  readonly multiplexedAgain: number;
  readonly longWaits: number;
  readonly swallowed: number;
}

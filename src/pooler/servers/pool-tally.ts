/** What has happened in a pool since it was made, for the console and for metrics. Times are milliseconds. */
import { TimeHistogram } from '../../observe/time-histogram.js';
import { type MemoryLimit, memoryLimits } from '../config/memory-options.js';

/** SQLSTATEs have few classes. Whoever sends more of them than this makes them up. */
const mostClasses = 100;
/** The class of what has no SQLSTATE, and of classes that are too many. */
const otherClass = 'other';

/** Errors of the pooler's own that alerts look at: they are counted from 0 on, so that the first one is seen. */
const watchedErrors: readonly (readonly [string, number])[] = [
  ['08 server_lost', 0],
  ['53 query_wait_timeout', 0],
];

export class PoolTally {
  /** Clients that were let in. */
  logins = 0;
  /** Connections taken for something of the pooler's own. */
  borrowed = 0;
  /** Bytes from clients, and bytes for them. */
  received = 0;
  sent = 0;
  /** When a query was answered last, by the clock of the process; undefined where none was. */
  answeredAt: number | undefined = undefined;
  /** With a server, and waiting for its answer. */
  readonly transactionTimes = new TimeHistogram();
  readonly queryTimes = new TimeHistogram();
  /** Of those who had to wait for a server, also in vain. */
  readonly waitTimes = new TimeHistogram();
  readonly dialTimes = new TimeHistogram();
  /** Statements that clients prepared, those that a server had to be told of, and those bound. */
  clientParses = 0;
  serverParses = 0;
  binds = 0;
  /** Connections that were cleaned after a client, and those that could not be. */
  cleaned = 0;
  notCleaned = 0;
  /** How often a server was asked what a client has left there, and how often that was something. */
  sessionChecks = 0;
  sessionPins = 0;
  /** Statements that were sent behind those of other clients, and those of them that had to be sent once more. */
  multiplexed = 0;
  multiplexedAgain = 0;
  /** Errors that the server told clients, by the class of their SQLSTATE. */
  readonly serverErrors = new Map<string, number>();
  /** Errors that clients were told by the pooler itself, by the class of their SQLSTATE and the reason, with a space between. */
  readonly ownErrors = new Map(watchedErrors);

  /** Statements that the server would refuse and that were answered in its place, by what they are about. */
  readonly swallowed = new Map<string, number>();

  /** How often a client or a server met a bound of memory. */
  readonly limitsReached = Object.fromEntries(memoryLimits.map((limit) => [limit, 0])) as Record<
    MemoryLimit,
    number
  >;

  limitReached(limit: MemoryLimit): void {
    this.limitsReached[limit]++;
  }

  /** True for the first one of its kind. */
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

  /** The pooler told a client an error. The reasons are few. */
  ownErrorCame(sqlState: string, reason: string): void {
    addOne(this.ownErrors, `${classOf(sqlState)} ${reason}`);
  }

  snapshot(): PoolTallySnapshot {
    const { received, sent, clientParses, serverParses, binds, cleaned, notCleaned } = this;
    const { sessionChecks, sessionPins, multiplexed, multiplexedAgain, logins } = this;
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
  readonly swallowed: number;
}

/** Numbers of one moment, told to the page once a second. Counters count from the start. */

/** Times are milliseconds; points in time are milliseconds since 1970. */
export interface Observation {
  readonly at: number;
  readonly startedAt: number;
  readonly version: string;
  readonly state: SubjectState;
  /** Databases that are paused by themselves. */
  readonly pausedDatabases: readonly string[];
  readonly budgets: readonly BudgetRecord[];
  readonly callers: CallerCounts;
  readonly connections: ConnectionCounts;
  readonly counters: CounterRecord;
  /** The busiest pools; `poolCount` is how many there are. */
  readonly pools: readonly PoolRecord[];
  readonly poolCount: number;
  readonly pins: PinsRecord;
  readonly reservoirs: readonly ReservoirRecord[];
  readonly lives: LivesRecord | undefined;
  readonly rates: readonly RateRecord[];
  /** The latest first. */
  readonly rebalances: readonly RebalanceRecord[];
  readonly fleet: readonly FleetRecord[];
  readonly workers: readonly WorkerRecord[];
  /** The costliest, then the slowest of the others. Undefined where statistics of statements are off. */
  readonly statements: readonly StatementRecord[] | undefined;
  readonly running: readonly RunningRecord[];
  /** Why the last attempt to open a connection failed, while that goes on. */
  readonly dialError: string | undefined;
}

export type SubjectState = 'active' | 'paused' | 'suspended' | 'draining' | 'closed';

/** A limit of connections, and who has what part of it. */
export interface BudgetRecord {
  /** `total`, `server db:5432`, `database app`, `user app`, or the name of a pool. */
  readonly name: string;
  /** Kind of the parts: users of a budget, or states of the connections of one pool. */
  readonly parts: 'users' | 'databases' | 'states';
  readonly capacity: number;
  readonly held: number;
  /** Leases granted beyond the capacity since the start. Above 0 there is a mistake in Headgate. */
  readonly exceeded: number;
  /** The most that were ever held at once. */
  readonly peak: number;
  readonly waiting: number;
  readonly recalls: number;
  readonly users: readonly ShareRecord[];
  /** Users that hold and need nothing, beyond those that are listed, and their shares together. */
  readonly unlisted?: { readonly count: number; readonly share: number } | undefined;
}

export interface ShareRecord {
  readonly user: string;
  readonly held: number;
  readonly demand: number;
  readonly share: number;
  readonly weight: number;
  readonly recalled: number;
  /** Wait of the request that waits longest; 0 without waiters. */
  readonly waitedMs: number;
}

export interface CallerCounts {
  readonly active: number;
  readonly waiting: number;
  readonly idle: number;
  readonly loggingIn: number;
  /** Infinity: none. */
  readonly limit: number;
  readonly longestWaitMs: number;
}

export interface ConnectionCounts {
  readonly opening: number;
  readonly idle: number;
  readonly active: number;
  readonly checking: number;
  readonly closing: number;
}

export interface CounterRecord {
  readonly queries: number;
  readonly transactions: number;
  readonly opened: number;
  readonly openFailures: number;
  readonly waitTimeouts: number;
  /** Errors that callers were told, by SQLSTATE class or reason. */
  readonly errors: Readonly<Record<string, number>>;
  readonly discards: Readonly<Record<string, number>>;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** One count for each bound of `timeBounds`, and one for what is longer. */
  readonly queryTimes: readonly number[];
  readonly waitTimes: readonly number[];
}

/** The pool of a user in a database, or a pool of a program. */
export interface PoolRecord {
  readonly user: string;
  readonly database: string;
  readonly active: number;
  readonly waiting: number;
  readonly idle: number;
  readonly connections: number;
  readonly limit: number;
  readonly longestWaitMs: number;
  readonly isPaused: boolean;
  /** Which budget has nothing for it, with its numbers. */
  readonly shortage: string | undefined;
  readonly queries: number;
  readonly errors: number;
  readonly queryTimes: readonly number[];
  readonly waitTimes: readonly number[];
}

export interface PinsRecord {
  readonly count: number;
  readonly byReason: Readonly<Record<string, number>>;
  /** The clients pinned for longest. */
  readonly longest: readonly PinRecord[];
}

export interface PinRecord {
  readonly client: number;
  readonly user: string;
  readonly database: string;
  readonly application: string;
  readonly reason: string;
  readonly since: number;
}

export interface ReservoirRecord {
  readonly pool: string;
  readonly ready: number;
  readonly target: number;
  readonly lowWatermark: number;
  readonly isFilled: boolean;
  /** Callers who found nothing ready, since the start. */
  readonly foundEmpty: number;
}

/** How old connections are, and how long they have left. */
export interface LivesRecord {
  /** Upper ends of the ages in milliseconds, and how many connections are that old; the last count is of older ones. */
  readonly ageBounds: readonly number[];
  readonly ages: readonly number[];
  /** Bounds and counts of the time to the end of life; connections without an end are in no count. */
  readonly remainingBounds: readonly number[];
  readonly remaining: readonly number[];
  readonly nextExpiryMs: number | undefined;
}

/** How fast connections to a server may be opened. */
export interface RateRecord {
  readonly server: string;
  /** Permits a second at the present speed, and at full speed. */
  readonly rate: number;
  readonly fullRate: number;
  readonly tokens: number;
  readonly burst: number;
  /** How often the server found that connections are opened too fast. */
  readonly refused: number;
}

export interface RebalanceRecord {
  readonly at: number;
  readonly budget: string;
  readonly cause: string;
  readonly user: string;
  readonly from: number;
  readonly to: number;
  readonly demand: number;
  readonly reason: string;
}

export interface FleetRecord {
  readonly server: string;
  readonly instance: string;
  readonly state: string;
  readonly limit: number;
  readonly active: number;
  readonly owned: number;
  readonly held: number;
  readonly waiting: number;
  readonly instances: number;
}

export interface WorkerRecord {
  readonly number: number;
  readonly processId: number;
  readonly state: string;
  readonly startedAt: number;
  readonly restarts: number;
  readonly clients: number;
  readonly servers: number;
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

/** A normalised statement. */
export interface StatementRecord {
  readonly text: string;
  readonly user: string;
  readonly database: string;
  readonly calls: number;
  readonly errors: number;
  readonly rows: number;
  readonly totalMs: number;
  readonly meanMs: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  readonly waitMs: number;
}

/** A caller that has a connection. */
export interface RunningRecord {
  readonly client: number;
  readonly user: string;
  readonly database: string;
  readonly application: string;
  readonly server: number | undefined;
  /** Has a transaction open, and runs nothing. */
  readonly isIdle: boolean;
  /** Undefined where texts are not kept. */
  readonly text: string | undefined;
  readonly since: number;
}

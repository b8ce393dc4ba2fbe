/** Message to the page: an observation with rates, percentiles and a verdict, each list no longer than a screen. */
import type {
  BudgetRecord,
  CallerCounts,
  ConnectionCounts,
  FleetRecord,
  LivesRecord,
  PinsRecord,
  RateRecord,
  RebalanceRecord,
  ReservoirRecord,
  RunningRecord,
  ShareRecord,
  StatementRecord,
  SubjectState,
  WorkerRecord,
} from './observation.js';
import type { ActionName } from './source.js';

/** Sections change one by one: a delta has those that did. Infinity is null in JSON. */
export interface Snapshot {
  readonly subject: SubjectSection;
  readonly now: NowSection;
  readonly verdict: Verdict;
  readonly budgets: readonly BudgetSection[];
  readonly pools: PoolsSection;
  readonly pins: PinsRecord;
  readonly reservoirs: readonly ReservoirRecord[];
  readonly lives: LivesRecord | null;
  readonly rates: readonly RateRecord[];
  readonly rebalances: readonly RebalanceRecord[];
  readonly fleet: readonly FleetRecord[];
  readonly workers: readonly WorkerRecord[];
  readonly statements: readonly StatementRecord[] | null;
  readonly running: readonly RunningRecord[];
  readonly errors: ErrorsSection;
  readonly audit: readonly AuditRecord[];
}

export interface SubjectSection {
  readonly id: string;
  readonly name: string;
  readonly kind: 'pooler' | 'pool';
  readonly version: string;
  readonly startedAt: number;
  readonly state: SubjectState;
  readonly pausedDatabases: readonly string[];
  readonly actions: readonly ActionName[];
  /** Why the numbers are not those of now. */
  readonly stale: string | null;
}

/** The numbers of the last seconds. */
export interface NowSection {
  readonly at: number;
  readonly callers: CallerCounts;
  readonly connections: ConnectionCounts;
  /** A second. */
  readonly queriesPerSecond: number;
  readonly transactionsPerSecond: number;
  readonly openedPerSecond: number;
  readonly errorsPerSecond: number;
  readonly receivedPerSecond: number;
  readonly sentPerSecond: number;
  readonly query: Percentiles | null;
  readonly wait: Percentiles | null;
  readonly totals: {
    readonly queries: number;
    readonly transactions: number;
    readonly opened: number;
    readonly openFailures: number;
    readonly waitTimeouts: number;
  };
}

/** Percentiles of the last seconds, in milliseconds, estimated from classes of times. */
export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface BudgetSection extends Omit<BudgetRecord, 'users'> {
  /** The users that hold or need most; `others` is the sum of the rest. */
  readonly users: readonly ShareRecord[];
  readonly others: (Omit<ShareRecord, 'user' | 'weight'> & { readonly count: number }) | null;
  readonly demand: number;
  /** How even the parts are that users have of what they are entitled to: 1 is even; null without demand. */
  readonly jain: number | null;
}

export interface PoolsSection {
  readonly count: number;
  readonly rows: readonly PoolRow[];
}

export interface PoolRow {
  readonly user: string;
  readonly database: string;
  readonly active: number;
  readonly waiting: number;
  readonly idle: number;
  readonly connections: number;
  readonly limit: number;
  readonly longestWaitMs: number;
  readonly isPaused: boolean;
  readonly shortage: string | null;
  readonly queriesPerSecond: number;
  readonly errorsPerSecond: number;
  readonly query: Percentiles | null;
  readonly wait: Percentiles | null;
}

/** The reason that holds things up now, in one sentence, and what to do about it. */
export interface Verdict {
  readonly level: 'good' | 'busy' | 'bad';
  /** The word for what binds: `nothing`, `budget`, `pool_size`, `rate`, `server`, `paused`, ... */
  readonly what: string;
  readonly sentence: string;
  readonly advice: string;
}

export interface ErrorsSection {
  /** Errors that callers were told, by SQLSTATE class or reason, since the start. */
  readonly byClass: Readonly<Record<string, number>>;
  readonly recent: readonly EventRecord[];
}

/** A line of the log; the same one again is counted. */
export interface EventRecord {
  readonly at: number;
  readonly level: string;
  readonly message: string;
  readonly details: string;
  readonly count: number;
}

/** An action on the page, done or tried. */
export interface AuditRecord {
  readonly at: number;
  readonly who: string;
  readonly from: string;
  readonly action: string;
  readonly outcome: 'done' | 'refused' | 'failed';
  readonly detail: string;
}

/** One moment of a chart. Names stand in `HistoryChunk`, so that a sample is numbers only. */
export interface HistorySample {
  readonly at: number;
  readonly queriesPerSecond: number;
  readonly waiting: number;
  readonly active: number;
  readonly queryP99: number | null;
  readonly waitP99: number | null;
  readonly budgets: Readonly<Record<string, BudgetSample>>;
}

export interface BudgetSample {
  readonly capacity: number;
  readonly held: number;
  readonly demand: number;
  readonly waiting: number;
  /** Held by those who held most at that moment. */
  readonly users: Readonly<Record<string, number>>;
}

/** Content of the stream of live events. */
export type Frame =
  | {
      readonly kind: 'full';
      readonly number: number;
      readonly snapshot: Snapshot;
      readonly history: readonly HistorySample[];
    }
  | {
      readonly kind: 'delta';
      readonly number: number;
      readonly changed: Partial<Snapshot>;
      readonly sample: HistorySample | null;
    };

/** First message to the page: who looks, and what there is to look at. */
export interface SessionAnswer {
  readonly role: 'viewer' | 'operator';
  readonly who: string;
  readonly csrf: string;
  readonly subjects: readonly {
    readonly id: string;
    readonly name: string;
    readonly kind: 'pooler' | 'pool';
  }[];
}

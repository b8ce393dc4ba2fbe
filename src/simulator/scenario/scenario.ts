/** A scenario: complete, checked, in milliseconds. scenario-file.ts reads it from a file. */
import type { PolicyOptions } from '../../core/pool-policy.js';

export interface Scenario {
  readonly name: string;
  readonly description: string;
  readonly seed: number;
  readonly durationMs: number;
  /** How often the state of everything is recorded. */
  readonly sampleMs: number;
  readonly server: ServerPlan;
  readonly limiter: LimiterPlan | undefined;
  readonly coordinator: CoordinatorPlan | undefined;
  /** Shared fairly by the pools of all services; none: each has its own size, and nothing else. */
  readonly budget?: BudgetPlan | undefined;
  /** One entry for each service that runs, after `count` has been multiplied out. */
  readonly services: readonly ServicePlan[];
  /** In the order of their times. */
  readonly faults: readonly FaultPlan[];
  readonly assertions: AssertionPlan;
}

/** How long something takes, drawn anew each time. */
export type Delay =
  | { readonly kind: 'fixed'; readonly ms: number }
  | { readonly kind: 'uniform'; readonly fromMs: number; readonly toMs: number }
  /** Many short ones, few long ones: given by the middle and by what one in a hundred exceeds. */
  | { readonly kind: 'lognormal'; readonly medianMs: number; readonly p99Ms: number }
  | { readonly kind: 'exponential'; readonly meanMs: number }
  /** As measured: `part` of all are not longer than `ms`, in order. Between two points, lengths are spread evenly. */
  | {
      readonly kind: 'percentiles';
      readonly points: readonly { readonly part: number; readonly ms: number }[];
    }
  /** As counted: each length as often as its weight says. */
  | {
      readonly kind: 'counted';
      readonly lengths: readonly { readonly ms: number; readonly weight: number }[];
    };

/** The database server: what it lets in, and how fast. Its limits are its own, not those that the services know of. */
export interface ServerPlan {
  /** Connections at the same time. */
  readonly connectionLimit: number;
  /** New connections: a bucket of `burst`, filled at `perSecond`. Beyond it a dial is refused as 53400. */
  readonly perSecond: number;
  readonly burst: number;
  /** The server ends older sessions; Infinity: never. */
  readonly sessionLifetimeMs: number;
  /** Logins beyond the rate or the limit: refused (default), or served in order as soon as there is room. */
  readonly overload?: 'refuse' | 'queue' | undefined;
  readonly dial: Delay;
  /** How long it takes to be refused; undefined: as long as to be let in. */
  readonly refuse?: Delay | undefined;
  readonly close: Delay;
  /** The part of dials that fail for no reason, from 0 to 1. */
  readonly dialFailures: number;
}

/** The rate limiter that services are given: the product's token bucket. */
export interface LimiterPlan {
  readonly perSecond: number;
  readonly burst: number;
  /** One bucket for all services, one for each, or one for all in the coordinator's table. */
  readonly scope: 'shared' | 'perService' | 'dynamodb';
}

/** The coordinator that hands out leases to all services, over a network. */
export interface CoordinatorPlan {
  readonly leaseLimit: number;
  readonly latency: Delay;
  /** A call without an answer for so long has failed. */
  readonly timeoutMs: number;
  /** The leases are kept in a table, as `headgate/dynamodb` does; undefined: by someone who never forgets. */
  readonly table?: TablePlan | undefined;
}

/** How leases are kept in a table, and what goes wrong with calls of it, each a part from 0 to 1. */
export interface TablePlan {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly graceMs: number;
  readonly onCoordinatorLoss: 'hold' | 'shed';
  readonly lostRequests: number;
  readonly lostReplies: number;
  readonly conflicts: number;
  readonly throttles: number;
}

/** One budget for the pools of all services, as for those of the users of one pooler: the product's fair shares. */
export interface BudgetPlan {
  readonly capacity: number;
  readonly turnMs: number;
  readonly rebalanceIntervalMs: number;
  readonly demandWindowMs: number;
  readonly foresees: boolean;
}

export interface ServicePlan {
  readonly name: string;
  /** Name that several of a kind share, for faults and reports: `history` of `history-3`. */
  readonly group: string;
  readonly startDelayMs: number;
  /** The engine's own options, as a program would write them; limiter and leases are added by the simulator. */
  readonly pool: PolicyOptions;
  /** The rate limiter that its pool has by default; the scenario's stands in for it. */
  readonly limiter?: Pick<LimiterPlan, 'perSecond' | 'burst'> | undefined;
  /** Connections on top of the pool's size while a caller waits for long. */
  readonly reserve?: ReservePlan | undefined;
  readonly workload: WorkloadPlan | undefined;
  /** Added to this service's clock; its clock runs faster by `drift` (0.01: one percent). */
  readonly clockSkewMs: number;
  readonly clockDrift: number;
  /** Twice the weight is twice the share of the budget. Default 1. */
  readonly weight?: number | undefined;
}

/** The reserve of a pooler's pool. */
export interface ReservePlan {
  readonly size: number;
  /** How long a caller waits until it opens. */
  readonly afterMs: number;
  /** How often the pooler looks after it. */
  readonly everyMs: number;
}

/** The callers of a service, of one kind or several. */
export interface WorkloadPlan {
  readonly arrivals: readonly ArrivalPlan[];
}

export interface ArrivalPlan {
  /** Names who these callers are, for reports by tenant. */
  readonly tenant: string;
  readonly fromMs: number;
  readonly untilMs: number;
  /**
   * Open loop, where callers come whether or not the ones before have been served: random arrivals at this mean rate a second,
   * or `burst` of them together each `everyMs`.
   */
  readonly perSecond: number | undefined;
  readonly everyMs: number | undefined;
  /** Closed loop: so many clients, each of which comes again when it was done and has thought. */
  readonly clients?: number | undefined;
  readonly think?: Delay | undefined;
  readonly burst: number;
  readonly hold: Delay;
  /** Such a caller stays away while so many of its tenant are being served or waiting; Infinity: never. */
  readonly maxInUse: number;
  /** How long it waits; undefined: as the pool's options say. */
  readonly maxWaitMs: number | undefined;
  /** How long it waits for an answer of a connection that hangs; undefined: for ever. */
  readonly queryTimeoutMs?: number | undefined;
}

export type FaultKind =
  | 'cold_start'
  | 'rolling_restart'
  | 'mass_drop'
  | 'server_down'
  | 'coordinator_outage'
  | 'crash'
  | 'pause'
  | 'slow_dials'
  | 'hung_connections'
  | 'token_failures';

export interface FaultPlan {
  readonly kind: FaultKind;
  readonly atMs: number;
  /** How long it lasts; 0 for what happens in a moment. */
  readonly durationMs: number;
  /** Names of services or of groups; empty: all. */
  readonly services: readonly string[];
  /**
   * mass_drop: the part of connections dropped, those in use included. hung_connections: the part that stops answering. slow_dials: the part of dials that are slow.
   * token_failures: the part of dials that get no token.
   */
  readonly fraction: number;
  /** rolling_restart: the time between one service and the next. crash, cold_start: down for so long. */
  readonly everyMs: number;
  /** slow_dials: how long those take. */
  readonly delay: Delay | undefined;
}

/** Assertions. Undefined: not asked. */
export interface AssertionPlan {
  /** Accepted by the server within any one second, wherever that begins. */
  readonly maxConnectsPerSec: number | undefined;
  /** By then every service has had all the connections it wants, those in use included. */
  readonly convergeWithinMs: number | undefined;
  /** From when all have converged: no service has less than nine of ten for so long, but for the consequences of faults. */
  readonly stableForMs: number | undefined;
  /** No checkout of any service finds nothing ready. Those before a process was full for the first time do not count. */
  readonly zeroEmptyEvents: boolean;
  /** Within so long of the end of each fault, every service has what it had before it. */
  readonly recoverWithinMs: number | undefined;
  /** Percentile (as 0.99; 1 is the longest) to milliseconds. Those who failed waited too. */
  readonly waits: readonly { readonly percentile: number; readonly maxMs: number }[];
  /**
   * `minJain`: Jain's index of the connection time that each tenant was given, in proportion to its max-min fair share of
   * all that was given. `maxTenantP99Ms`: the wait of which 99 of 100 of each tenant stay short.
   */
  readonly fairness:
    | { readonly minJain: number | undefined; readonly maxTenantP99Ms: number | undefined }
    | undefined;
  /** Callers who went away without a connection. */
  readonly maxFailedCallers: number | undefined;
  /** Connections that the server accepted in all. */
  readonly maxOpened: number | undefined;
  /** Checkouts of all services that found nothing ready, from the beginning. */
  readonly maxEmptyEvents: number | undefined;
}

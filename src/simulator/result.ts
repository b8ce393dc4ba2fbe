/** The result of a simulation: plain data, identical to the last byte for one scenario and seed. */
import type { DiscardReason, RefillCause } from '../core/reasons.js';
import type { FaultKind } from './scenario/scenario.js';

export interface SimulationResult {
  readonly scenario: string;
  readonly seed: number;
  readonly durationMs: number;
  /** Events of the virtual world; for "events per second". */
  readonly events: number;
  readonly services: readonly ServiceResult[];
  /** All services together, one row for each sample. */
  readonly samples: Samples;
  readonly faults: readonly FaultRecord[];
  readonly assertions: readonly AssertionOutcome[];
  readonly laws: readonly LawBreach[];
  readonly waits: WaitSummary;
  readonly ends: CallerEnds;
  readonly tenants: readonly TenantResult[];
  /** Jain's index of what tenants were given of their fair shares; 1 is even. Undefined when there is only one tenant. */
  readonly jain: number | undefined;
  /** In the order of the scenario, at the times of `samples`. Empty when there is only one tenant. */
  readonly tenantSamples: readonly TenantSamples[];
  readonly server: ServerRecord;
  /** Where there is one. */
  readonly coordinator?: CoordinatorRecord | undefined;
  readonly budget?: BudgetRecord | undefined;
  /** No law broken and every assertion held. */
  readonly passed: boolean;
}

/** Columns of equal length: index i is what was so at `timeMs[i]`. Totals go up from the start. */
export interface Samples {
  readonly timeMs: readonly number[];
  readonly ready: readonly number[];
  readonly inUse: readonly number[];
  readonly pending: readonly number[];
  readonly closing: readonly number[];
  readonly waiting: readonly number[];
  readonly target: readonly number[];
  /** Connections that the server accepted in the second before the sample. */
  readonly connectsPerSec: readonly number[];
  readonly checkouts: readonly number[];
  readonly emptyEvents: readonly number[];
  readonly refills: readonly number[];
  readonly refillFailures: readonly number[];
  readonly limiterDenies: readonly number[];
  readonly workStarted: readonly number[];
  readonly workCompleted: readonly number[];
  /** Wait of callers that were answered since the sample before; 0 without any. */
  readonly waitP99Ms: readonly number[];
  readonly discards: Readonly<Record<DiscardReason, readonly number[]>>;
}

export interface ServiceResult {
  readonly name: string;
  readonly group: string;
  readonly samples: Samples;
  /** When it first had all it wanted; undefined: never. */
  readonly convergedAtMs: number | undefined;
  readonly refillFailures: Readonly<Record<RefillCause, number>>;
  readonly peak: number;
  readonly limit: number;
}

export interface FaultRecord {
  readonly kind: FaultKind;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly services: readonly string[];
  /** When all services had again what they had before it; undefined: not within the simulation. */
  readonly recoveredAtMs: number | undefined;
}

export interface AssertionOutcome {
  /** As written in the scenario: `assertConvergeWithin`. */
  readonly name: string;
  readonly passed: boolean;
  readonly expected: string;
  readonly actual: string;
}

/** One of the five laws, or a limit of the server, did not hold. */
export interface LawBreach {
  readonly law: string;
  readonly atMs: number;
  readonly service: string | undefined;
  readonly message: string;
}

/**
 * Milliseconds, from when a caller came, whether or not its process was able to notice. Those who were refused or gave up
 * waited too. Who was in a process that crashed has no answer, and is not counted.
 */
export interface WaitSummary {
  readonly callers: number;
  readonly failed: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Callers whose trouble was not a wait. */
export interface CallerEnds {
  /** Their connection broke while they had it. They were served before, and so are not among the failed. */
  readonly cutOff: number;
  /** Turned away by `maxInUse` before they asked for a connection. They are not among the callers. */
  readonly keptAway: number;
}

export interface TenantResult extends WaitSummary, CallerEnds {
  readonly tenant: string;
  readonly completed: number;
}

/** Columns as long as those of all services together. */
export interface TenantSamples {
  /** Undefined: all those together who have no series of their own. */
  readonly tenant: string | undefined;
  /** Connections that its callers had, on average since the sample before. */
  readonly inUse: readonly number[];
  /** Goes up from the start. */
  readonly workCompleted: readonly number[];
  /** The tenant's fair share, where there is a budget. */
  readonly share?: readonly number[] | undefined;
}

/** As the server's own oracle saw it. */
export interface ServerRecord {
  readonly accepted: number;
  readonly refusedRate: number;
  readonly refusedFull: number;
  readonly peakConnections: number;
  readonly connectionLimit: number;
  /** The most logins that waited at once, on a server that queues them. */
  readonly longestQueue?: number | undefined;
  /** The most it accepted within any one second. */
  readonly peakPerSecond: number;
}

/** As counted at the coordinator. Leases of a process that crashed are among them: it can't give them back. */
export interface CoordinatorRecord {
  readonly leaseLimit: number;
  readonly peakLeases: number;
  /** Held at the end. */
  readonly leases: number;
}

/** The budget that all services share fairly. */
export interface BudgetRecord {
  readonly capacity: number;
  /** The most that were held at once. */
  readonly peak: number;
  /** Connections that were asked back for someone else. */
  readonly recalls: number;
  /** How often the shares were looked at. */
  readonly rebalances: number;
}

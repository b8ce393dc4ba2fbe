/** The rules by which budgets are shared fairly. Times are milliseconds. */
import { hangsAfterMs } from '../../core/dials.js';

/** Claims of one user, apart from its need. */
export interface UserTerms {
  /** Twice the weight is twice the share. */
  readonly weight: number;
  /** Connections that it has a claim to as soon as it needs them, whatever others need. */
  readonly minimum: number;
  /** Upper bound of the share. */
  readonly maximum: number;
}

export const usualTerms: UserTerms = { weight: 1, minimum: 0, maximum: Number.POSITIVE_INFINITY };

/** The size of one budget, and the terms of its users. */
export interface BudgetTerms {
  /** Number of leases. Infinity: no limit. */
  readonly capacity: number;
  readonly termsOf: (user: string) => UserTerms;
}

/** Rules for all budgets that share a queue. */
export interface FairPolicy {
  /** Interval between computations of the shares, and the window in which a demand counts. */
  readonly rebalanceInterval: number;
  readonly demandWindow: number;
  /** Shares are also computed when something has happened, but no more often than this. */
  readonly debounce: number;
  /** Demand is forecast from the usual demand at this time of day and from its trend. */
  readonly foresees: boolean;
  /** How long a user keeps its last connection although others have none; less where there are many of them. */
  readonly turn: number;
  /** Minimum turn, once the connection is open, so that opening it is worth it. */
  readonly shortestTurn: number;
  /**
   * How long a connection may be idle while others wait; the short one applies if they have none, or if its user has no
   * share. Less would close connections that are needed again at once, and more would leave idle what others need.
   */
  readonly idleGrace: number;
  readonly shortIdleGrace: number;
  /** How long the needs of a user count after its last client has left. */
  readonly clientGrace: number;
  /** A connection that is not open after this time hangs: it may be given up for others, and only one pool probes its server. */
  readonly hangsAfter: number;
  /** A connection that was asked back and has not come by then is not counted on: another is asked back. */
  readonly patience: number;
  /** Recall interval while a user below its share waits; and the interval otherwise. */
  readonly lookInterval: number;
  readonly wishInterval: number;
  /** Part of the capacity: after this many releases, the shares are out of date. */
  readonly largeRelease: number;
}

export const usualPolicy: FairPolicy = {
  rebalanceInterval: 10_000,
  demandWindow: 30_000,
  debounce: 50,
  foresees: false,
  turn: 500,
  shortestTurn: 200,
  idleGrace: 250,
  shortIdleGrace: 20,
  clientGrace: 250,
  hangsAfter: hangsAfterMs,
  patience: 100,
  lookInterval: 10,
  wishInterval: 50,
  largeRelease: 0.25,
};

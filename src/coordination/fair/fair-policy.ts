/** The rules by which budgets are shared fairly. Times are milliseconds. */
import { hangsAfterMs } from '../../core/dials.js';

/** Claims of one user, apart from what it needs. */
export interface UserTerms {
  /** Twice the weight is twice the share. */
  readonly weight: number;
  /** Connections that it has a claim to as soon as it needs them, whatever others need. */
  readonly minimum: number;
  /** Its share is never more. */
  readonly maximum: number;
}

export const usualTerms: UserTerms = { weight: 1, minimum: 0, maximum: Number.POSITIVE_INFINITY };

/** How much there is of one budget, and for whom. */
export interface BudgetTerms {
  /** So many leases there are. Infinity: as many as anybody wants. */
  readonly capacity: number;
  readonly termsOf: (user: string) => UserTerms;
}

/** Rules for all budgets that share a queue. */
export interface FairPolicy {
  /** Shares are looked at this often; and so far back a demand counts. */
  readonly rebalanceInterval: number;
  readonly demandWindow: number;
  /** And besides when something has happened, but no more often than this. */
  readonly debounce: number;
  /** Demand is foreseen from what was seen at this time of day, and where it is going. */
  readonly foresees: boolean;
  /** So long someone keeps its last connection although others have none; less where they are many. */
  readonly turn: number;
  /** But not so little that a new connection is not worth it: so long it is used at least, once it is open. */
  readonly shortestTurn: number;
  /**
   * A connection may be idle for so long while others wait; the short one if they have none, or if its user has no share. Less
   * would close connections that are needed again at once, and more would leave idle what others need.
   */
  readonly idleGrace: number;
  readonly shortIdleGrace: number;
  /** So long the needs of a user count whose last client has left. */
  readonly clientGrace: number;
  /** A connection that is not open after so long hangs: it may be given up for others, and its server is probed by one pool only. */
  readonly hangsAfter: number;
  /** A connection that was asked back and has not come by then is not counted on: another is asked back. */
  readonly patience: number;
  /** While someone waits that has a claim to more, it is looked this often what can be asked back; otherwise this often. */
  readonly lookInterval: number;
  readonly wishInterval: number;
  /** Of the capacity: when so much was given back, the shares are old. */
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

/** A pool that shares budgets fairly with others: what it tells about itself, and can be told. */
import type { LeaseHolder } from '../../core/leases.js';

/** A `ConnectionPool` is one; so is whoever speaks for a pool in another process. */
export interface FairHolder extends LeaseHolder {
  /** Connections that are lent, and callers that wait, at this moment. */
  readonly demand: number;
  /** The highest `demand` since the last call. */
  takeDemandPeak(): number;
  /** Since when the connection is idle that nobody has used for longest; undefined where none is idle. By the clock of the budgets. */
  readonly longestIdleSince: number | undefined;
  /** Connections that are being opened; undefined where that is not known. */
  readonly pending?: number | undefined;
  /** Since when the one is being opened that takes longest; undefined where none is. By the clock of the budgets. */
  readonly dialingSince?: number | undefined;
  /** When one was opened last; undefined where none ever was. By the same clock. */
  readonly openedAt?: number | undefined;
  /** So many are its own now, counted already. Answers how many of them it takes: what it has no use for any more is not given. */
  leasesGranted(count: number): number;
  /**
   * Others have a better claim to so many of the leases held, in all: connections are to be closed, idle ones now and lent
   * ones when they come back. 0: to none any more. `hanging`: for so many of them, dials that hang may be given up.
   */
  leasesRecalled(count: number, hanging: number): void;
}

/** The owner of a pool's connections. */
export interface Tenant {
  readonly user: string;
  readonly database: string;
  /** Where the connections lead: one that does not answer is probed by one pool at a time. Left out: nobody knows. */
  readonly server?: string | undefined;
  /** Whether anyone is there who could use them. Left out: always. */
  readonly hasClients?: (() => boolean) | undefined;
}

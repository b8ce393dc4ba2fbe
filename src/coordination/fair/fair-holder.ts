/** What someone who shares a budget fairly with others tells about itself, and can be told. */
import type { LeaseHolder } from '../../core/leases.js';

/** A `ConnectionPool` is one; so is whoever speaks for a pool in another process. */
export interface FairHolder extends LeaseHolder {
  /** Connections that are lent, and callers that wait, at this moment. */
  readonly demand: number;
  /** The highest `demand` since the last call. */
  takeDemandPeak(): number;
  /** Since when the connection is idle that nobody has used for longest; undefined where none is idle. By the clock of the budget. */
  readonly longestIdleSince: number | undefined;
  /** Connections that are being opened; undefined where that is not known. */
  readonly pending?: number | undefined;
  /**
   * Others have a better claim to so many of the leases held, in all: connections are to be closed, idle ones now and lent
   * ones when they come back. 0: to none any more.
   */
  leasesRecalled(count: number): void;
}

/** Whose connections these are. */
export interface Tenant {
  readonly user: string;
  readonly database: string;
}

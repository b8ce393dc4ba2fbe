/** A pool that shares budgets fairly with others: its state, and the calls it accepts. */
import type { LeaseHolder } from '../../core/leases.js';

/** A `ConnectionPool`, or a proxy for a pool in another process. */
export interface FairHolder extends LeaseHolder {
  /** Connections in use plus waiting callers, at this moment. */
  readonly demand: number;
  /** The highest `demand` since the last call. */
  takeDemandPeak(): number;
  /** Start of the longest idle time of a connection; undefined if none is idle. By the clock of the budgets. */
  readonly longestIdleSince: number | undefined;
  /** Connections that are being opened; undefined where that is not known. */
  readonly pending?: number | undefined;
  /** Start of the oldest dial under way; undefined if there is none. By the clock of the budgets. */
  readonly dialingSince?: number | undefined;
  /** Time of the last successful dial; undefined before the first. By the same clock. */
  readonly openedAt?: number | undefined;
  /** `count` leases are granted and already counted. Returns the number taken; leases that are no longer needed are not given. */
  leasesGranted(count: number): number;
  /**
   * Others have a better claim to `count` of the held leases, in all: close connections, idle ones now and those in use
   * when they are released. 0: none are recalled any more. `hanging`: for this many of them, hanging dials may be given
   * up.
   */
  leasesRecalled(count: number, hanging: number): void;
}

/** The owner of a pool's connections. */
export interface Tenant {
  readonly user: string;
  readonly database: string;
  /** The server of the connections: one that does not answer is probed by one pool at a time. Left out: unknown. */
  readonly server?: string | undefined;
  /** True if there are clients that could use the connections. Left out: always. */
  readonly hasClients?: (() => boolean) | undefined;
}

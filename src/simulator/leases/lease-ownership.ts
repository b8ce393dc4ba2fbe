/** The leases that one process has of a coordinator, as the coordinator knows them. */

/** A process as the coordinator knows it. */
export class LeaseOwnership {
  /** Granted to it and not given back. */
  leases = 0;
  /** Leases granted by requests that can still be cancelled. */
  readonly granted = new Map<string, number>();
  /** Ids of what was done and of what must never be done. */
  readonly done = new Set<string>();
}

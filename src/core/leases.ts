/**
 * "May I hold one more connection?", the question to a budget above the pool's own limit. A lease is held from before
 * the dial until the socket is closed.
 */

/**
 * `asking`: an answer will come by one of the holder's calls. A `LeaseWait`: none is free, and the request waits in the budget's
 * queue until `leasesGranted`. An error: no, and why.
 */
export type LeaseAnswer = 'granted' | 'asking' | LeaseWait | Error;

/** A request that keeps its place in the budget's queue. */
export interface LeaseWait {
  /** Why no lease is free. */
  readonly reason: Error;
}

/** The budget above a pool. All calls return at once; slow work runs behind them. */
export interface Leases {
  /**
   * Grants all of `count`, or none. One request per holder: a holder that waits and asks again keeps its place. A holder
   * that releases a lease while it waits asks again, since the budget can't grant it that lease from inside its own
   * call.
   */
  acquire(count: number, holder: LeaseHolder): LeaseAnswer;
  /**
   * True if `count` would be granted at once. If this method exists, connections that no caller waits for (those of a
   * `keeper`) are not asked for while it returns false: a fair budget would take them from others.
   */
  isFree?(count: number): boolean;
  /** Releases leases whose connections are closed. Never fails and is never waited for: slow work runs behind it. */
  release(count: number, holder: LeaseHolder): void;
}

/** A pool as its budget sees it. Never called from inside one of the pool's own calls to `Leases`. */
export interface LeaseHolder {
  /** Names the holder in messages. */
  readonly name: string;
  /** Need of callers: connections in use and waiting callers. A budget that shares by need reads it. */
  readonly demand?: number | undefined;
  /**
   * Need of ready connections, on top of `demand`: connections for a reservoir, `minIdle`, a warmup or a keeper that no
   * caller asks for. Served after the callers of all holders. Default 0.
   */
  readonly readyDemand?: number | undefined;
  /** Users behind this holder, by weight: a fair share is in proportion to it. Default 1. */
  readonly claimants?: number | undefined;
  /** Leases may be free. The request, if there is one, is void: ask again if a lease is still wanted. */
  leasesAvailable(): void;
  /** Answers the request: `count` leases are held from now on. Returns the number taken; the others are not given. */
  leasesGranted(count: number): number;
  /**
   * No lease is free: the request waits in the budget's queue until `leasesGranted`, and need not be repeated. A holder
   * without this method learns nothing of the delay.
   */
  leasesDelayed?(reason: Error): void;
  /** The request was refused or got no answer. */
  leasesRefused(error: Error): void;
  /** `count` of the held leases belong to someone else now: close their connections and do not release these leases. */
  leasesLost(count: number): void;
  /**
   * Asks for `count` of the held leases back, in all, because others have a better claim: close their connections, idle
   * ones now and those in use when they are released, and release the leases as usual. 0: none are asked back any more.
   * Only a budget that shares fairly calls this. Each lease released or granted from then on is one less to give back.
   * `hanging`: this many are for connections to other servers; long dials may be given up for them.
   */
  leasesRecalled?(count: number, hanging?: number): void;
}

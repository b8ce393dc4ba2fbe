/**
 * "May I hold one more connection?", asked of whoever keeps a budget above the pool's own limit. A lease is held from
 * before the dial until the socket is gone.
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

/** The budget above a pool. All calls answer at once; slow work goes on behind them. */
export interface Leases {
  /**
   * All of `count`, or none. One request for each holder: a holder that waits and asks again keeps its place. It asks again when it
   * has released a lease while it waited, since it can't be granted that one from inside its own call.
   */
  acquire(count: number, holder: LeaseHolder): LeaseAnswer;
  /**
   * Whether `count` would be granted at once. Where it is there, connections that nobody waits for (those of a `keeper`)
   * are not asked for while this is false: a fair budget would take them from others.
   */
  isFree?(count: number): boolean;
  /** Gives leases back whose connections are gone. Never fails and is never waited for: what it takes is done behind it. */
  release(count: number, holder: LeaseHolder): void;
}

/** A pool as its budget sees it. Never called from inside one of the pool's own calls to `Leases`. */
export interface LeaseHolder {
  /** Names the holder in messages. */
  readonly name: string;
  /** Need of callers: connections in use and waiting callers. A budget that shares by need reads it. */
  readonly demand?: number | undefined;
  /**
   * Need of ready connections, on top of `demand`: those that a reservoir, `minIdle`, a warmup or a keeper wants and no caller
   * asks for. Served after the callers of all holders. Default 0.
   */
  readonly readyDemand?: number | undefined;
  /** Users that stand behind this holder, by weight: a fair share is in proportion to it. Default 1. */
  readonly claimants?: number | undefined;
  /** Leases may be free. The request, if there is one, is void: ask again if a lease is still wanted. */
  leasesAvailable(): void;
  /** Answers the request: `count` leases are held from now on. Returns how many are taken; the others are not given. */
  leasesGranted(count: number): number;
  /**
   * None is free for what was being asked: the request waits in the budget's queue until `leasesGranted`, and need not be repeated.
   * A holder without this call learns nothing of the delay.
   */
  leasesDelayed?(reason: Error): void;
  /** The answer to what was being asked is no, or there was none. */
  leasesRefused(error: Error): void;
  /** So many of those held belong to someone else now: their connections must go, and are not to be released. */
  leasesLost(count: number): void;
  /**
   * Others have a better claim to so many of those held, in all: their connections are to be closed, idle ones now and lent
   * ones when they come back, and the leases released as ever. 0: to none any more. Only a budget that shares fairly asks.
   * Each lease that is released or granted from then on is one less to be given back. `hanging`: so many of them are for connections to
   * other servers, and dials that have been under way for long may be given up for them.
   */
  leasesRecalled?(count: number, hanging?: number): void;
}

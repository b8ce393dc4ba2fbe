/** The numbers of a pool at one instant. */

/** open: in service; paused: hands out nothing; draining: serves the queue and closes; closed: no connection left. */
export type PoolState = 'open' | 'paused' | 'draining' | 'closed';
/** The counts at one instant. `pending + live + closing <= limit`, and `live = idle + inUse + checking`. */
export interface PoolCounts {
  readonly limit: number;
  /** Being opened. */
  readonly pending: number;
  /** Open and not being closed. */
  readonly live: number;
  /** Being closed; counted until the socket is closed. */
  readonly closing: number;
  /** Ready for the next caller. */
  readonly idle: number;
  /** In use. */
  readonly inUse: number;
  /** Undergoing a health check. */
  readonly checking: number;
  /** Callers in the queue. */
  readonly waiting: number;
}

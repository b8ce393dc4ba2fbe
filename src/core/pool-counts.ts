/** The numbers of a pool at one instant. */

/** open: in service; paused: hands out nothing; draining: finishes what it has; closed: nothing left. */
export type PoolState = 'open' | 'paused' | 'draining' | 'closed';
/** The numbers of one instant. `pending + live + closing <= limit`, and `live = idle + lent + checking`. */
export interface PoolCounts {
  readonly limit: number;
  /** Being opened. */
  readonly pending: number;
  /** Open and not being closed. */
  readonly live: number;
  /** Being closed; they count until the socket is gone. */
  readonly closing: number;
  /** Ready for the next caller. */
  readonly idle: number;
  /** With a caller. */
  readonly lent: number;
  /** Undergoing a health check. */
  readonly checking: number;
  /** Callers in the queue. */
  readonly waiting: number;
}

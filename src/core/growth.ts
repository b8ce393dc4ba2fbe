/**
 * When to open another connection. Two reasons, kept apart because they answer different needs:
 *
 * - bulk: baseline health. Enough spares for `minIdle`, at the start and after retirements.
 * - trickle: demand. One more while more callers wait than connections are on their way to them.
 *
 * Neither stops a herd by itself (a thousand callers are a thousand reasons); the dial limit and the rate limiter do.
 */

/** One if more callers wait than connections are on their way, otherwise none. */
export function trickle(waiting: number, underWay: number): 0 | 1 {
  return waiting > underWay ? 1 : 0;
}

/**
 * Number of dials missing to have `minIdle` spares, after those under way have served the waiters. At the limit no slot
 * is free and the ledger grants none: `minIdle` never pushes past `max`.
 */
export function bulk(minIdle: number, spares: number, waiting: number, underWay: number): number {
  const unclaimed = Math.max(0, underWay - waiting);
  return Math.max(0, minIdle - spares - unclaimed);
}

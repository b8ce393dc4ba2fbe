/** Why a connection was discarded, in the one word that logs, metrics, events and reports all use. */

export const discardReasons = [
  /** Idle for longer than `idleTimeout`, and more than the minimum were there. */
  'idle_timeout',
  /** Lived its `maxLifetime`. */
  'max_lifetime',
  /** Was lent `maxUses` times. */
  'max_uses',
  /** Its socket failed or was closed from the other side. */
  'broken',
  /** Answered a health check with an error, with no, or too late. */
  'failed_check',
  /** Came back with an error, or was destroyed by its borrower. */
  'released_with_error',
  /** The limit was lowered. */
  'over_limit',
  /** The pool is closing. */
  'drained',
  /** Still lent when the deadline of the closing passed. */
  'drain_deadline',
  /** Was opened, but only after its dial had been given up. */
  'late_dial',
] as const;

/** Why a connection was discarded, in one word. */
export type DiscardReason = (typeof discardReasons)[number];

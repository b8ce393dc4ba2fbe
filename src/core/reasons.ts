/** Why a connection was discarded or could not be opened, in the one word that logs, metrics, events and reports all use. */
export const discardReasons = [
  /** Idle for longer than `idleTimeout`, and more than the minimum were there. */
  'idle_timeout',
  /** Lived its `maxLifetime`. */
  'max_lifetime',
  /** Reached `maxUses`. */
  'max_uses',
  /** The socket failed or was closed from the other side. */
  'broken',
  /** Answered a health check with an error, with no, or too late. */
  'failed_check',
  /** Released with an error, or destroyed by its caller. */
  'released_with_error',
  /** The limit was lowered. */
  'over_limit',
  /** The pool is closing. */
  'drained',
  /** Still in use at the deadline of the drain. */
  'drain_deadline',
  /** Opened after its dial had been given up. */
  'late_dial',
  /** The budget above the pool took its lease away. */
  'lease_lost',
  /** Others had a better claim to its lease, which was released. */
  'lease_recalled',
  /** Reservoir: inside the guard window at checkout or release. */
  'insufficient_remaining_lifetime',
  /** Reservoir: past its end at checkout. */
  'expired_on_checkout',
  /** Reservoir: reached its end while in use. */
  'expired_on_return',
  /** Reservoir: the scanner found it past its end. */
  'expired_on_scan',
  /** Reservoir: the scanner found it inside the guard window, or replaced it ahead of a time when many would end. */
  'expiring_soon_on_scan',
  /** Reservoir: released when enough were ready. */
  'reservoir_full',
] as const;

/** Why a connection was discarded, in one word. */
export type DiscardReason = (typeof discardReasons)[number];

/** Reasons of connections at or near the end of their life. */
export const endsOfLife: readonly DiscardReason[] = [
  'max_lifetime',
  'insufficient_remaining_lifetime',
  'expired_on_checkout',
  'expired_on_return',
  'expired_on_scan',
  'expiring_soon_on_scan',
];

export const refillCauses = [
  /** The budget above the pool has no lease to give, or can't be asked. */
  'lease_acquire',
  /** The server refused the speed of opening, or the rate limiter failed. */
  'rate_limit',
  /** The token provider returned no credential; nothing was dialed. */
  'token_provider',
  /** The dial itself failed. */
  'connection_open',
] as const;

/** Why a connection was not opened, in one word. */
export type RefillCause = (typeof refillCauses)[number];

/** The reason for which a dial is made. */
export type DialPurpose = 'caller' | 'spare' | 'warmup' | 'keeper';

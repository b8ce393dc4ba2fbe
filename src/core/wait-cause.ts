/** The cause for which waiters wait: one word shared by errors, warnings, metrics and statistics, and a sentence. */
import type { PoolCounts, PoolState } from './pool-counts.js';

export const waitCauses = [
  /** The pool is paused. */
  'paused',
  /** The limit is 0. */
  'no_limit',
  /** Every connection is in use. */
  'in_use',
  /** Dials keep failing, and the next attempt is not due yet. */
  'breaker_open',
  /** A dial failed, and the next attempt is not due yet. */
  'dial_failed',
  /** The budget above the pool has no lease. */
  'lease',
  /** The rate limiter has no permit to open a connection. */
  'permit',
  /** Connections are being opened. */
  'opening',
  /** Connections are being checked or closed. */
  'checking_or_closing',
] as const;

/** One word for the cause of a wait. */
export type WaitCause = (typeof waitCauses)[number];

/** The parts of a pool that decide about it. */
export interface WaitSigns {
  readonly state: PoolState;
  readonly counts: PoolCounts;
  readonly isBreakerOpen: boolean;
  readonly isBackingOff: boolean;
  readonly isShortOfLeases: boolean;
  readonly isShortOfPermits: boolean;
}

/** Call it only while a caller waits: a pool without waiters has no cause. */
export function waitCause(signs: WaitSigns): WaitCause {
  const { limit, inUse, pending, live, closing } = signs.counts;
  if (signs.state === 'paused') return 'paused';
  if (limit === 0) return 'no_limit';
  if (pending + live + closing >= limit) {
    if (pending > 0) return 'opening';
    return inUse > 0 && inUse + closing >= limit ? 'in_use' : 'checking_or_closing';
  }
  if (signs.isBreakerOpen) return 'breaker_open';
  if (signs.isBackingOff) return 'dial_failed';
  if (signs.isShortOfLeases) return 'lease';
  if (signs.isShortOfPermits) return 'permit';
  return pending > 0 ? 'opening' : 'in_use';
}

/** The meaning of each word, as the end of a sentence about the pool. */
export const waitCauseTexts: Readonly<Record<WaitCause, string>> = {
  paused: 'is paused',
  no_limit: 'has a limit of 0, so that no caller is served',
  in_use: 'has all its connections in use',
  breaker_open: 'fails to connect, and tries again only now and then',
  dial_failed: 'could not connect, and tries again soon',
  lease: 'gets no lease: the budget above it is used up or cannot be asked',
  permit: 'may not open connections faster: it waits for its rate limiter',
  opening: 'is opening connections',
  checking_or_closing: 'is checking or closing connections',
};

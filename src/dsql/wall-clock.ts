/**
 * The time of day as a clock. The server judges a token by it, and a process that was frozen for an hour (a laptop, a
 * Lambda) must notice: the monotonic clock stands still meanwhile. Should it be set back, a token that is too old is
 * refused by the server, and replaced.
 */
import type { Clock } from '../kernel/clock.js';

/** Milliseconds since 1970, as `Date.now()` gives them. */
export type TimeOfDay = Pick<Clock, 'now'>;

export const wallClock: TimeOfDay = { now: () => Date.now() };

/**
 * The waits of a pool for permits of its rate limiter. A wait lasts from the first refusal to the permit, or until no
 * connection is wanted any more.
 */
import { formatDuration } from '../kernel/duration.js';
import { HeadgateError } from '../kernel/errors.js';

/** A longer wait is reported as a connection that could not be opened, and again after each further such time. */
const longWaitMs = 1_000;

/** Connections are wanted, but the rate limiter has given no permit yet. */
export class PermitWaitError extends HeadgateError {
  constructor(waitMs: number) {
    const wait = Number.isFinite(waitMs) ? ` for another ${formatDuration(Math.ceil(waitMs))}` : '';
    super(
      'HG_RATE_LIMITED',
      `The rate limiter lets no connection be opened${wait}. Raise its rate, or find out why so many are opened.`,
    );
  }
}

export class PermitWaits {
  /** Waits that began. */
  count = 0;
  #waitedMs = 0;
  #since: number | undefined;
  #seenAt = 0;
  #toldAt = 0;

  /** Start of the current wait for a permit; undefined while none waits. */
  get since(): number | undefined {
    return this.#since;
  }

  /** Milliseconds of all waits together. */
  waitedMs(now: number): number {
    return this.#waitedMs + (this.#since === undefined ? 0 : Math.max(0, now - this.#seenAt));
  }

  /** The limiter asked to wait for `waitMs`. Returns the error to report if the wait is long and was not reported lately. */
  refused(now: number, waitMs: number): PermitWaitError | undefined {
    if (this.#since === undefined) {
      this.#since = now;
      this.#seenAt = now;
      this.#toldAt = now;
      this.count++;
      return waitMs > longWaitMs ? new PermitWaitError(waitMs) : undefined;
    }
    this.#waitedMs += Math.max(0, now - this.#seenAt);
    this.#seenAt = now;
    if (now - this.#toldAt <= longWaitMs) return undefined;
    this.#toldAt = now;
    return new PermitWaitError(waitMs);
  }

  /** A permit was taken. */
  granted(now: number): void {
    if (this.#since === undefined) return;
    this.#waitedMs += Math.max(0, now - this.#seenAt);
    this.#since = undefined;
  }

  /** No connection is wanted any more: the time since the limiter was last asked is not counted. */
  forgotten(): void {
    this.#since = undefined;
  }
}

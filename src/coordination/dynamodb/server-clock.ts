/**
 * The time at the table's server, as two bounds between which it surely is. Replies give it in whole seconds, and were
 * made at some moment between request and reply; each narrows the bounds, down to about a round trip.
 *
 * No local time of day is used, so that a wrong clock does no harm. Code that must not be early uses `earliest`, code
 * that must not be late uses `latest`.
 */

/** A header of HTTP has no fractions. */
const resolutionMs = 1_000;
/** Assumed maximum drift of a clock, fast or slow: far more than that of quartz. */
const drift = 1 / 2_000;

export class ServerClock {
  /** Bounds of the difference between the server's clock and ours, as of `#notedAt`. */
  #low = Number.NEGATIVE_INFINITY;
  #high = Number.POSITIVE_INFINITY;
  #notedAt = 0;

  get isSet(): boolean {
    return this.#high !== Number.POSITIVE_INFINITY;
  }

  /** A reply has come. The two moments are by our own clock, which need only be steady. */
  note(servedAtMs: number, sentAt: number, receivedAt: number): void {
    const low = servedAtMs - receivedAt;
    const high = servedAtMs + resolutionMs - sentAt;
    const slack = this.#slack(receivedAt);
    const narrowLow = Math.max(this.#low - slack, low);
    const narrowHigh = Math.min(this.#high + slack, high);
    const agrees = narrowLow <= narrowHigh;
    this.#low = agrees ? narrowLow : low;
    this.#high = agrees ? narrowHigh : high;
    this.#notedAt = receivedAt;
  }

  /** The server's time is at least this. */
  earliest(now: number): number {
    return now + this.#low - this.#slack(now);
  }

  /** The server's time is at most this. */
  latest(now: number): number {
    return now + this.#high + this.#slack(now);
  }

  /** Distance between the two bounds. */
  widthMs(now: number): number {
    return this.#high - this.#low + 2 * this.#slack(now);
  }

  #slack(now: number): number {
    return Math.max(0, now - this.#notedAt) * drift;
  }
}

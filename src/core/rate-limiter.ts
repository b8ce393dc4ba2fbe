/** "May I open a connection now?", asked last before a dial because the answer can't be given back. */

export interface RateLimiter {
  /**
   * Takes one permit and answers 0, or takes none and answers the milliseconds after which asking again makes sense.
   * `now` is monotonic, in milliseconds.
   */
  take(now: number): number;
  /** The server says that connections are opened too fast. */
  refused?(now: number): void;
  /** A connection was opened. */
  opened?(now: number): void;
}

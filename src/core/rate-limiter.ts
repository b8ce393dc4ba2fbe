/** "May I open a connection now?", asked last before a dial because a permit can't be given back. */

export interface RateLimiter {
  /**
   * Takes one permit and returns 0, or takes none and returns the milliseconds after which to ask again. `now` is
   * monotonic, in milliseconds. `isUrgent`: the asking pool has fewer connections than it needs to be of use; where
   * several pools ask, such a pool goes first. An exception counts as a refusal: the pool asks again after a backoff.
   */
  take(now: number, isUrgent?: boolean): number;
  /** Permits a second that can be counted on at present, where that is known: replacements are planned by it. */
  readonly rate?: number | undefined;
  /** The server refused a connection because they are opened too fast. */
  refused?(now: number): void;
  /** A connection was opened. */
  opened?(now: number): void;
}

/** Time as the engine sees it: something that is handed in, so that the same code runs in real and in virtual time. */

/** A monotonic clock. Its origin has no meaning; only differences count. */
export interface Clock {
  /** Milliseconds, exact. */
  now(): number;
  /**
   * Milliseconds, possibly as old as the current turn of the event loop. For the hot path, where an exact reading
   * would cost more than everything else together.
   */
  coarse(): number;
  /** Like `coarse()`, for times that must not be too early: if the turn turns out to have been long, the listener is told at its end. */
  arrival(listener: LongTurnListener): number;
}

export interface LongTurnListener {
  /** Times from `turnBegan` on may be wrong: it may have been as late as `turnEnded`. */
  turnWasLong(turnBegan: number, turnEnded: number): void;
}

/** One wake-up call. Setting it again replaces the earlier time. */
export interface Alarm {
  /** Granularity: everything due within this time of its ringing counts as due. */
  readonly granularityMs: number;
  /** The set time may have been lost without a sign, so that it must be set again. Only under a test's timers. */
  readonly mayBeLost?: boolean;
  /** Rings at `at`, or a little before or after. With `keepsProcessAlive`, the program does not exit before that. */
  set(at: number, keepsProcessAlive: boolean): void;
  /** Changes the value given when it was set. */
  keepProcessAlive(keepsProcessAlive: boolean): void;
  clear(): void;
}

/** Makes the alarm that calls `ring`. */
export type AlarmFactory = (ring: () => void) => Alarm;

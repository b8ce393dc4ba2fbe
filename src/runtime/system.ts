/** The program's time in the form that the engine needs: a monotonic clock, one timer, and randomness. */
import type { Alarm, AlarmFactory, Clock, LongTurnListener } from '../kernel/clock.js';
import type { Random } from '../kernel/random.js';
import { setWithoutContext } from './async-context.js';
import {
  isOwnTime,
  lookForReplacement,
  mayHaveLostTimers,
  onTimeReplaced,
  ProgramTimer,
  readTime,
} from './time-source.js';
import { afterTurn, type Task } from './turn.js';

/**
 * `performance.now()`, which costs about 50 ns: more than a whole checkout. `coarse()` reads it once in a turn of the
 * event loop and forgets it when the turn's callbacks and microtasks are done.
 */
class SystemClock implements Clock {
  #reading = 0;
  #isFresh = false;
  #turnBegan = 0;
  /** The first that asked for the time of an arrival in this turn; nearly always the only one. Others are in a list. */
  #listener: LongTurnListener | undefined;
  #otherListeners = new Set<LongTurnListener>();
  readonly #forget: Task = {
    run: () => {
      this.#isFresh = false;
      if (this.#listener !== undefined) this.#tellOfLongTurn(this.#listener);
    },
  };

  constructor() {
    // A test may replace time within a turn.
    onTimeReplaced.add(() => {
      this.#isFresh = false;
    });
  }

  now(): number {
    const reading = readTime();
    this.#reading = reading;
    return reading;
  }

  coarse(): number {
    if (this.#isFresh) return this.#reading;
    this.#turnBegan = this.now();
    // Time that a test sets may go on within a turn.
    if (isOwnTime()) {
      this.#isFresh = true;
      afterTurn(this.#forget);
    }
    return this.#turnBegan;
  }

  arrival(listener: LongTurnListener): number {
    if (this.#listener === undefined) this.#listener = listener;
    else if (listener !== this.#listener) this.#otherListeners.add(listener);
    // An alarm that was set for this arrival's deadline or an earlier one may have been lost with a test's timers.
    lookForReplacement();
    return this.coarse();
  }

  #tellOfLongTurn(first: LongTurnListener): void {
    const others = this.#otherListeners;
    this.#listener = undefined;
    if (others.size > 0) this.#otherListeners = new Set();
    const turnEnded = this.now();
    if (turnEnded - this.#turnBegan < longTurnMs) return;
    first.turnWasLong(this.#turnBegan, turnEnded);
    for (const listener of others) listener.turnWasLong(this.#turnBegan, turnEnded);
  }
}

/** Timers are no more exact than this, so a shorter turn makes no difference. */
const longTurnMs = 1;

/** A timer can't be set further away than this. */
const longestTimeoutMs = 2 ** 31 - 1;

class SystemAlarm implements Alarm {
  /** Timers count in whole milliseconds, of a clock that is read at another moment than ours. */
  readonly granularityMs = 1;
  readonly #ring: () => void;
  #at = Number.NaN;
  #timer: ProgramTimer | undefined;
  #keepsProcessAlive = false;
  readonly #arm = (): void => {
    // First, because finding that time was replaced arms the alarm as well.
    const delay = Math.max(0, Math.ceil(this.#at - readTime()));
    this.#timer?.clear();
    this.#timer =
      delay <= longestTimeoutMs
        ? new ProgramTimer(this.#rang, delay)
        : new ProgramTimer(this.#arm, longestTimeoutMs);
    if (!this.#keepsProcessAlive) this.#timer.keepProcessAlive(false);
  };
  readonly #rang = (): void => {
    this.#timer = undefined;
    onTimeReplaced.delete(this.#arm);
    this.#ring();
  };

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  get mayBeLost(): boolean {
    return mayHaveLostTimers();
  }

  set(at: number, keepsProcessAlive: boolean): void {
    this.#at = at;
    this.#keepsProcessAlive = keepsProcessAlive;
    setWithoutContext(this.#arm);
    onTimeReplaced.add(this.#arm);
  }

  keepProcessAlive(keepsProcessAlive: boolean): void {
    this.#keepsProcessAlive = keepsProcessAlive;
    this.#timer?.keepProcessAlive(keepsProcessAlive);
  }

  clear(): void {
    this.#timer?.clear();
    onTimeReplaced.delete(this.#arm);
  }
}

export const systemClock: Clock = new SystemClock();

/** For turns that are short by nature, such as those of one socket: no listener needs to know whether one was long. */
export const shortTurnClock: Clock = {
  now: () => systemClock.now(),
  coarse: () => systemClock.coarse(),
  arrival: () => systemClock.coarse(),
};

export const systemAlarm: AlarmFactory = (ring) => new SystemAlarm(ring);

export const systemRandom: Random = { next: Math.random };

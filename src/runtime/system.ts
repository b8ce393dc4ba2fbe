/** The real world, as the engine wants it: a monotonic clock, one timer, and randomness. */
import { performance } from 'node:perf_hooks';
import type { Alarm, AlarmFactory, Clock, LongTurnListener } from '../kernel/clock.js';
import type { Random } from '../kernel/random.js';
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

  now(): number {
    const reading = performance.now();
    this.#reading = reading;
    return reading;
  }

  coarse(): number {
    if (this.#isFresh) return this.#reading;
    this.#isFresh = true;
    afterTurn(this.#forget);
    this.#turnBegan = this.now();
    return this.#turnBegan;
  }

  arrival(listener: LongTurnListener): number {
    if (this.#listener === undefined) this.#listener = listener;
    else if (listener !== this.#listener) this.#otherListeners.add(listener);
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

/** Timers are no more exact than this, so nobody can tell. */
const longTurnMs = 1;

/** A timer can't be set further away than this. */
const longestTimeoutMs = 2 ** 31 - 1;

class SystemAlarm implements Alarm {
  /** Timers count in whole milliseconds, of a clock that is read at another moment than ours. */
  readonly granularityMs = 1;
  readonly #clock: Clock;
  readonly #ring: () => void;
  #timer: NodeJS.Timeout | undefined;
  #keepsProcessAlive = false;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  set(at: number, keepsProcessAlive: boolean): void {
    clearTimeout(this.#timer);
    this.#keepsProcessAlive = keepsProcessAlive;
    const delay = Math.max(0, Math.ceil(at - this.#clock.now()));
    this.#timer =
      delay <= longestTimeoutMs
        ? setTimeout(this.#ring, delay)
        : setTimeout(() => this.set(at, this.#keepsProcessAlive), longestTimeoutMs);
    if (!keepsProcessAlive) this.#timer.unref();
  }

  keepProcessAlive(keepsProcessAlive: boolean): void {
    this.#keepsProcessAlive = keepsProcessAlive;
    if (keepsProcessAlive) this.#timer?.ref();
    else this.#timer?.unref();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

export const systemClock: Clock = new SystemClock();

/** For turns that are short by themselves, as those of one socket are: nobody wants to know whether one was long. */
export const shortTurnClock: Clock = {
  now: () => systemClock.now(),
  coarse: () => systemClock.coarse(),
  arrival: () => systemClock.coarse(),
};

export const systemAlarm: AlarmFactory = (ring) => new SystemAlarm(systemClock, ring);

export const systemRandom: Random = { next: Math.random };

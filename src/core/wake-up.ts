/** The one alarm of a pool, set for the earliest of all the times at which something is due. */
import type { Alarm, AlarmFactory } from '../kernel/clock.js';

const never = Infinity;

export class WakeUp {
  readonly #alarm: Alarm;
  #at = never;
  /** Keeps the process alive until the alarm rings, because of what it is set for. */
  #isHeld = false;
  /** Keeps the process alive until the alarm rings, because a caller waits for the pool. */
  #isAwaited = false;

  constructor(alarm: AlarmFactory, ring: () => void) {
    this.#alarm = alarm(ring);
  }

  /** The time at which it rings. */
  get at(): number {
    return this.#at;
  }

  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** Makes it ring at `at` or before. A needless ring is cheaper than an exact time. */
  by(at: number, keepsProcessAlive = false): void {
    if (at === never) return;
    if (at >= this.#at && (!keepsProcessAlive || this.#isHeld) && !this.#alarm.mayBeLost) return;
    this.#at = Math.min(at, this.#at);
    this.#isHeld ||= keepsProcessAlive;
    this.#alarm.set(this.#at, this.#isHeld || this.#isAwaited);
  }

  /** While a caller waits for the pool, the process stays alive until the alarm has rung, whatever it is set for. */
  setAwaited(isAwaited: boolean): void {
    if (isAwaited === this.#isAwaited) return;
    this.#isAwaited = isAwaited;
    this.#alarm.keepProcessAlive(this.#isHeld || isAwaited);
  }

  /** Call it when the alarm has rung. Handle everything that is due by the returned time. */
  rang(now: number): number {
    const due = (this.#at === never ? now : Math.max(now, this.#at)) + this.#alarm.granularityMs;
    this.#at = never;
    this.#isHeld = false;
    return due;
  }

  /** Never rings again. */
  stop(): void {
    this.#at = -Infinity;
    this.#isHeld = true;
    this.#alarm.clear();
  }
}

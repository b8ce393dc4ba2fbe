/** The one alarm of a pool, set for the earliest of all the times at which something is due. */
import type { Alarm, AlarmFactory } from '../kernel/clock.js';

const never = Number.POSITIVE_INFINITY;

export class WakeUp {
  readonly #alarm: Alarm;
  #at = never;
  #keepsProcessAlive = false;

  constructor(alarm: AlarmFactory, ring: () => void) {
    this.#alarm = alarm(ring);
  }

  /** When it will ring. */
  get at(): number {
    return this.#at;
  }

  get keepsProcessAlive(): boolean {
    return this.#keepsProcessAlive;
  }

  /** Makes sure that it rings at `at` or before. Ringing in vain is cheaper than keeping it exact. */
  by(at: number, keepsProcessAlive = false): void {
    if (at === never || (at >= this.#at && (!keepsProcessAlive || this.#keepsProcessAlive))) return;
    this.#at = Math.min(at, this.#at);
    this.#keepsProcessAlive ||= keepsProcessAlive;
    this.#alarm.set(this.#at, this.#keepsProcessAlive);
  }

  /** It rang: nothing is set any more, and what is due by the time returned is to be done now. */
  rang(now: number): number {
    const due = (this.#at === never ? now : Math.max(now, this.#at)) + this.#alarm.granularityMs;
    this.#at = never;
    this.#keepsProcessAlive = false;
    return due;
  }

  /** Never rings again. */
  stop(): void {
    this.#at = Number.NEGATIVE_INFINITY;
    this.#keepsProcessAlive = true;
    this.#alarm.clear();
  }
}

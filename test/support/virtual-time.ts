// Time that passes when the test says so, and the one alarm in it.
import type { Alarm, Clock } from '../../src/kernel/clock.js';

const never = Number.POSITIVE_INFINITY;

interface TimedEvent {
  readonly at: number;
  readonly run: () => void;
}

/** Virtual time: events in the order of their time, those of the same time in the order in which they were planned. */
export class VirtualTime implements Clock {
  time = 1_000;
  #reading = 0;
  #readInThisTurn = false;
  #events: TimedEvent[] = [];

  now(): number {
    this.#reading = this.time;
    return this.time;
  }

  /** As old as this turn of the event loop, but never older than the last exact reading. */
  coarse(): number {
    if (!this.#readInThisTurn) {
      this.#readInThisTurn = true;
      this.#reading = this.time;
    }
    return this.#reading;
  }

  /** Exact, so that there is nothing to be told at the end of a turn. */
  arrival(): number {
    return this.now();
  }

  newTurn(): void {
    this.#readInThisTurn = false;
  }

  plan(at: number, run: () => void): void {
    let index = this.#events.length;
    while (index > 0 && (this.#events[index - 1] as TimedEvent).at > at) index--;
    this.#events.splice(index, 0, { at, run });
  }

  get nextEventAt(): number {
    return this.#events[0]?.at ?? never;
  }

  runNextEvent(): void {
    this.#events.shift()?.run();
  }
}

export class VirtualAlarm implements Alarm {
  at = never;
  granularityMs = 0;
  /** So much of its granularity it makes use of to ring early. */
  earlyBy = 0;
  /** When it was set. */
  setAt = Number.NEGATIVE_INFINITY;
  keepsProcessAlive = false;
  readonly ring: () => void;
  readonly #time: VirtualTime;

  constructor(ring: () => void, time: VirtualTime) {
    this.ring = ring;
    this.#time = time;
  }

  /** When it will really ring: with a granularity, up to that much before or after. */
  get ringsAt(): number {
    if (this.granularityMs === 0 || this.at <= this.setAt || this.at === never) return this.at;
    const steps = Math.ceil((this.at - this.setAt) / this.granularityMs);
    return this.setAt + steps * this.granularityMs - this.earlyBy;
  }

  get isArmed(): boolean {
    return this.at !== never;
  }

  keepProcessAlive(keepsProcessAlive: boolean): void {
    this.keepsProcessAlive = keepsProcessAlive;
  }

  set(at: number, keepsProcessAlive: boolean): void {
    this.at = at;
    this.setAt = this.#time.time;
    this.keepsProcessAlive = keepsProcessAlive;
  }

  clear(): void {
    this.at = never;
    this.keepsProcessAlive = false;
  }
}

/** The clock and the alarm of one process, which need not agree with the world's. */
import type { Alarm, Clock } from '../../kernel/clock.js';
import { Planned, type Timeline } from './timeline.js';

/** Where clocks start: far enough from zero that none is ever negative, as no real monotonic clock is. */
const originMs = 1e9;

export class ServiceClock implements Clock {
  readonly #timeline: Timeline;
  readonly #skewMs: number;
  readonly #pace: number;

  constructor(timeline: Timeline, skewMs: number, drift: number) {
    this.#timeline = timeline;
    this.#skewMs = originMs + skewMs;
    this.#pace = 1 + drift;
  }

  now(): number {
    return this.#timeline.now * this.#pace + this.#skewMs;
  }

  /** Within an event no time passes, so that every reading is exact. */
  coarse(): number {
    return this.now();
  }

  arrival(): number {
    return this.now();
  }

  /** How long the world waits while this clock advances by so much. */
  worldMs(milliseconds: number): number {
    return milliseconds / this.#pace;
  }
}

/**
 * Rings as the system's timers do: after a whole number of milliseconds, at least one, and never early. That keeps the
 * waits as coarse as they really are, and no process can keep time from moving on.
 */
export class ServiceAlarm implements Alarm {
  readonly granularityMs = 1;
  readonly #timeline: Timeline;
  readonly #clock: ServiceClock;
  readonly #planned: Planned;
  /** Counts the settings, so that one that was replaced is known when it comes up late. */
  #setting = 0;
  #isSet = false;

  /** `deliver`: takes what is to happen in the process, now or when it is able to. */
  constructor(
    timeline: Timeline,
    clock: ServiceClock,
    ring: () => void,
    deliver: (action: () => void) => void,
  ) {
    this.#timeline = timeline;
    this.#clock = clock;
    this.#planned = new Planned(0, () => {
      const setting = this.#setting;
      deliver(() => {
        if (!this.#isSet || setting !== this.#setting) return;
        this.#isSet = false;
        ring();
      });
    });
  }

  get isSet(): boolean {
    return this.#isSet;
  }

  set(at: number): void {
    this.#setting++;
    this.#isSet = true;
    const delay = Math.max(1, Math.ceil(at - this.#clock.now()));
    this.#timeline.replan(this.#planned, this.#timeline.now + this.#clock.worldMs(delay));
  }

  /** The world does not end with a process. */
  keepProcessAlive(): void {}

  clear(): void {
    this.#isSet = false;
    this.#timeline.cancel(this.#planned);
  }
}

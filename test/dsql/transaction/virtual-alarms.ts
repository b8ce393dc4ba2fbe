// Any number of alarms in virtual time, for code that waits with promises.
import type { AlarmFactory } from '../../../src/kernel/clock.js';
import { nextTurn } from '../../support/outcomes.js';
import { VirtualAlarm, VirtualTime } from '../../support/virtual-time.js';

export class VirtualAlarms {
  readonly clock = new VirtualTime();
  readonly #alarms = new Set<VirtualAlarm>();

  readonly make: AlarmFactory = (ring) => {
    const alarm = new VirtualAlarm(ring, this.clock);
    this.#alarms.add(alarm);
    return alarm;
  };

  /** Alarms that are set. */
  get armed(): number {
    return [...this.#alarms].filter(({ isArmed }) => isArmed).length;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.make(resolve).set(this.clock.time + ms, false));
  }

  /** Lets time pass until the promise is settled. Fails when nothing is left that could settle it. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const note = (): void => {
      isSettled = true;
    };
    promise.then(note, note);
    for (;;) {
      await nextTurn();
      if (isSettled) return promise;
      if (!this.ringNext()) throw new Error('nothing is left to wait for');
    }
  }

  /** Goes to the next alarm and rings it; false where none is set. */
  ringNext(): boolean {
    let next: VirtualAlarm | undefined;
    for (const alarm of this.#alarms) if (alarm.isArmed && alarm.at < (next?.at ?? Infinity)) next = alarm;
    if (next === undefined) return false;
    this.clock.time = Math.max(this.clock.time, next.at);
    next.clear();
    next.ring();
    return true;
  }

  /** Everything that is due until then. */
  async advance(ms: number): Promise<void> {
    let isThere = false;
    this.make(() => {
      isThere = true;
    }).set(this.clock.time + ms, false);
    while (!isThere) {
      this.ringNext();
      await nextTurn();
    }
  }
}

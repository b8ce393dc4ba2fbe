// Virtual time for code that uses promises and several alarms: between two moments, all that is due in a turn has run.
import type { AlarmFactory } from '../../src/kernel/clock.js';
import { nextTurn } from '../support/outcomes.js';
import { VirtualAlarm, VirtualTime } from '../support/virtual-time.js';

export class VirtualCoordination {
  readonly time = new VirtualTime();
  readonly #alarms: VirtualAlarm[] = [];

  readonly alarm: AlarmFactory = (ring) => {
    const alarm = new VirtualAlarm(ring, this.time);
    this.#alarms.push(alarm);
    return alarm;
  };

  get now(): number {
    return this.time.time;
  }

  /** Those that will ring, the next first. */
  get armed(): readonly VirtualAlarm[] {
    return this.#alarms.filter((alarm) => alarm.isArmed).sort((one, other) => one.at - other.at);
  }

  plan(delayMs: number, run: () => void): void {
    this.time.plan(this.now + delayMs, run);
  }

  /** Everything that needs no time to happen has happened. */
  settle(): Promise<void> {
    return nextTurn();
  }

  /** Lets time pass, one event after the other, each at its moment. `check` runs after each of them. */
  async advance(milliseconds: number, check: () => void = () => {}): Promise<void> {
    const until = this.now + milliseconds;
    await this.settle();
    check();
    for (;;) {
      const alarm = this.armed[0];
      const eventAt = this.time.nextEventAt;
      const next = Math.min(eventAt, alarm?.at ?? Number.POSITIVE_INFINITY);
      if (next > until) break;
      this.time.time = Math.max(this.now, next);
      if (alarm !== undefined && alarm.at < eventAt) {
        alarm.clear();
        alarm.ring();
      } else this.time.runNextEvent();
      await this.settle();
      check();
    }
    this.time.time = until;
  }
}

/**
 * The system's clock plus the time for which the machine was asleep. The steady clock of a machine, or of a virtual one
 * that was moved, stands still meanwhile; its time of day does not, and a lease must not seem younger than it is. A time
 * of day that is set forward therefore makes leases older than they are, once, which is harmless.
 */
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';

/** Less than this is the two clocks' own inaccuracy. */
const noticeableMs = 500;

export interface WakingClock {
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: AlarmFactory;
}

export function wakingClock(
  steady: Pick<Clock, 'now'>,
  alarm: AlarmFactory,
  timeOfDay: () => number,
): WakingClock {
  let difference = timeOfDay() - steady.now();
  let asleepMs = 0;
  const now = (): number => {
    const steadyNow = steady.now();
    const ahead = timeOfDay() - steadyNow - difference;
    // Set back, or a little forward: that is the difference from here on.
    if (ahead < 0 || ahead > noticeableMs) difference += ahead;
    if (ahead > noticeableMs) asleepMs += ahead;
    return steadyNow + asleepMs;
  };
  return { clock: { now }, alarm: (ring) => new ShiftedAlarm(alarm(ring), () => now() - steady.now()) };
}

/** Rings by the steady clock, and is set by the other one. */
class ShiftedAlarm implements Alarm {
  readonly #alarm: Alarm;
  readonly #shift: () => number;

  constructor(alarm: Alarm, shift: () => number) {
    this.#alarm = alarm;
    this.#shift = shift;
  }

  get granularityMs(): number {
    return this.#alarm.granularityMs;
  }

  set(at: number, keepsProcessAlive: boolean): void {
    this.#alarm.set(at - this.#shift(), keepsProcessAlive);
  }

  keepProcessAlive(keepsProcessAlive: boolean): void {
    this.#alarm.keepProcessAlive(keepsProcessAlive);
  }

  clear(): void {
    this.#alarm.clear();
  }
}

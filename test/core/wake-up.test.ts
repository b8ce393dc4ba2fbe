// The one alarm of a pool.
import { expect, test } from 'vitest';
import { WakeUp } from '../../src/core/wake-up.js';
import { VirtualAlarm, VirtualTime } from '../support/virtual-time.js';

const never = Number.POSITIVE_INFINITY;

function setUp(): { wakeUp: WakeUp; alarm: VirtualAlarm } {
  let alarm: VirtualAlarm | undefined;
  const wakeUp = new WakeUp(
    (ring) => {
      alarm = new VirtualAlarm(ring, new VirtualTime());
      return alarm;
    },
    () => {},
  );
  return { wakeUp, alarm: alarm as unknown as VirtualAlarm };
}

test('The alarm of a pool is set for the earliest time that anything asked for', () => {
  const { wakeUp, alarm } = setUp();
  for (const at of [500, 300, never, 400]) wakeUp.by(at, false);
  expect([wakeUp.at, alarm.at]).toEqual([300, 300]);
});

test('The alarm of a pool is set anew after it rang', () => {
  const { wakeUp, alarm } = setUp();
  wakeUp.by(300, false);
  alarm.clear();
  expect(wakeUp.rang(310)).toBe(310);
  expect(wakeUp.at).toBe(never);
  wakeUp.by(900, false);
  expect(alarm.at).toBe(900);
});

test('The alarm of a pool that rings a little early is on time', () => {
  const { wakeUp, alarm } = setUp();
  alarm.granularityMs = 1;
  wakeUp.by(300, false);
  expect(wakeUp.rang(299.4)).toBeGreaterThanOrEqual(300);
});

test('The alarm of a pool keeps the program running when anything it is set for asks for that', () => {
  const { wakeUp, alarm } = setUp();
  wakeUp.by(300, false);
  expect(alarm.keepsProcessAlive).toBe(false);
  wakeUp.by(500, true);
  expect(alarm).toMatchObject({ at: 300, keepsProcessAlive: true });
  wakeUp.by(200, false);
  expect(alarm).toMatchObject({ at: 200, keepsProcessAlive: true });
});

test('The alarm of a pool does not ring any more once it was stopped', () => {
  const { wakeUp, alarm } = setUp();
  wakeUp.by(300, false);
  wakeUp.stop();
  expect(alarm.isArmed).toBe(false);
  wakeUp.by(400, true);
  expect(alarm.isArmed).toBe(false);
});

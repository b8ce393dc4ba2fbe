// The real clock and alarm. Nothing here depends on how fast the machine is.
import { expect, test } from 'vitest';
import { systemAlarm, systemClock, systemRandom } from '../../src/runtime/system.js';
import { nextTurn } from '../support/outcomes.js';
import { gate } from './fake-connections.js';

function spin(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

test('The coarse clock is read once in a turn of the event loop, and fresh in the next', async () => {
  await nextTurn();
  const first = systemClock.coarse();
  spin(2);
  expect(systemClock.coarse()).toBe(first);
  const exact = performance.now();
  await nextTurn();
  expect(systemClock.coarse()).toBeGreaterThanOrEqual(exact);
});

test('The coarse clock is fresh after each kind of wait', async () => {
  for (const wait of [
    nextTurn,
    () => new Promise<void>((resolve) => setTimeout(resolve, 0)),
    () => new Promise<void>((resolve) => process.nextTick(resolve)),
  ]) {
    systemClock.coarse();
    spin(2);
    const exact = performance.now();
    await wait();
    await nextTurn();
    expect(systemClock.coarse()).toBeGreaterThanOrEqual(exact);
  }
});

test('The coarse clock is never behind an exact reading that was taken before', () => {
  for (let n = 0; n < 100; n++) {
    const coarse = systemClock.coarse();
    const exact = systemClock.now();
    expect(exact).toBeGreaterThanOrEqual(coarse);
    expect(systemClock.coarse()).toBeGreaterThanOrEqual(exact);
  }
});

test('The time of an arrival is put right at the end of a long turn, once for each who asked, and not after a short one', async () => {
  await nextTurn();
  const told: [string, number, number][] = [];
  const listener = (name: string) => ({
    turnWasLong: (began: number, ended: number) => void told.push([name, began, ended]),
  });
  const [one, other] = [listener('one'), listener('other')];
  const arrived = systemClock.arrival(one);
  spin(3);
  expect(systemClock.arrival(other)).toBe(arrived);
  expect(systemClock.arrival(one)).toBe(arrived);
  const before = performance.now();
  await nextTurn();
  expect(told.map(([name, began]) => [name, began])).toEqual([
    ['one', arrived],
    ['other', arrived],
  ]);
  for (const [, , ended] of told) expect(ended).toBeGreaterThanOrEqual(before);
});

test('The alarm rings no earlier than its granularity allows', async () => {
  const rang = gate<number>();
  const alarm = systemAlarm(() => rang.open(systemClock.now()));
  const at = systemClock.now() + 7.3;
  alarm.set(at, true);
  expect(await rang.promise).toBeGreaterThanOrEqual(at - alarm.granularityMs);
});

test('The alarm rings once, at the time that was set last', async () => {
  const rings: string[] = [];
  const done = gate();
  const alarm = systemAlarm(() => {
    rings.push('rang');
    done.open();
  });
  alarm.set(systemClock.now() + 60_000, true);
  alarm.set(systemClock.now() + 1, true);
  await done.promise;
  await nextTurn();
  expect(rings).toEqual(['rang']);
});

test('The alarm does not ring after it was cleared', async () => {
  const rings: string[] = [];
  const alarm = systemAlarm(() => rings.push('rang'));
  const other = gate();
  alarm.set(systemClock.now() + 1, true);
  alarm.clear();
  const later = systemAlarm(() => other.open());
  later.set(systemClock.now() + 5, true);
  await other.promise;
  expect(rings).toEqual([]);
});

test('The alarm takes a time so far away that no timer reaches it', async () => {
  const rings: string[] = [];
  const alarm = systemAlarm(() => rings.push('rang'));
  const done = gate();
  alarm.set(systemClock.now() + 2 ** 40, false);
  const other = systemAlarm(() => done.open());
  other.set(systemClock.now() + 5, true);
  await done.promise;
  expect(rings).toEqual([]);
  alarm.clear();
});

test('Randomness is in [0, 1) and not always the same', () => {
  const numbers = Array.from({ length: 100 }, () => systemRandom.next());
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
  expect(new Set(numbers).size).toBeGreaterThan(1);
});

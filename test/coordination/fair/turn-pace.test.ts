import { expect, test } from 'vitest';
import { TurnPace } from '../../../src/coordination/fair/turn-pace.js';
import { Town } from './town.js';

/** How many may end at this moment. */
function endsAt(pace: TurnPace, now: number, apartMs: number, lateMs: number): number {
  let ends = 0;
  while (ends < 100 && pace.mayEnd(now, apartMs, lateMs)) ends++;
  return ends;
}

test('turns that began together end so far apart, however often it is looked', () => {
  const pace = new TurnPace();
  const ends = Array.from({ length: 100 }, (_, ms) => endsAt(pace, ms, 25, 0));
  expect(ends.flatMap((count, ms) => (count === 0 ? [] : [[ms, count]]))).toEqual([
    [0, 1],
    [25, 1],
    [50, 1],
    [75, 1],
  ]);
});

test('turns that began together end as fast where looks are further apart than they', () => {
  const pace = new TurnPace();
  endsAt(pace, 0, 5, 20);
  expect([10, 20, 30].map((ms) => endsAt(pace, ms, 5, 20))).toEqual([2, 2, 2]);
});

test('turns that began together do not all end at once after a rest', () => {
  const pace = new TurnPace();
  endsAt(pace, 0, 5, 20);
  expect(endsAt(pace, 60_000, 5, 20)).toBe(5);
});

test('turns that began together do not leave a server without work while connections change hands', () => {
  const town = new Town({ capacity: 20 });
  for (let n = 0; n < 50; n++) town.arrive(`user ${n}`, { clients: 4, queryMs: 10 });
  town.run(400);
  let fewest = Number.POSITIVE_INFINITY;
  for (let ms = 0; ms < 2_000; ms++) {
    town.run(1);
    fewest = Math.min(fewest, town.connections);
  }
  expect(fewest).toBeGreaterThanOrEqual(15);
});

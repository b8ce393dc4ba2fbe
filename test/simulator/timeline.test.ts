import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InvariantError } from '../../src/kernel/errors.js';
import { Timeline } from '../../src/simulator/time/timeline.js';

test('things happen in the order of their times, and at the same time in the order in which they were planned', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (times) => {
      const timeline = new Timeline();
      const happened: { at: number; index: number }[] = [];
      times.forEach((at, index) => {
        timeline.plan(at, () => happened.push({ at: timeline.now, index }));
      });
      timeline.runUntil(20);
      const expected = times
        .map((at, index) => ({ at, index }))
        .sort((a, b) => a.at - b.at || a.index - b.index);
      expect(happened).toEqual(expected);
    }),
  );
});

test('a cancelled event of the timeline does not happen, and one that is planned anew happens once, at its new time', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ at: fc.nat(50), cancel: fc.boolean(), again: fc.option(fc.nat(50)) })),
      (plans) => {
        const timeline = new Timeline();
        const happened: number[] = [];
        const planned = plans.map(({ at }, index) => timeline.plan(at, () => happened.push(index)));
        const times = plans.map(({ at, cancel, again }, index) => {
          const one = planned[index] as (typeof planned)[number];
          if (cancel) timeline.cancel(one);
          if (again !== null) timeline.replan(one, again);
          return again ?? (cancel ? undefined : at);
        });
        timeline.runUntil(50);
        const kept = times.flatMap((at, index) => (at === undefined ? [] : [{ at, index }]));
        expect(happened.length).toBe(kept.length);
        expect(happened.map((index) => times[index])).toEqual(kept.map(({ at }) => at).sort((a, b) => a - b));
      },
    ),
  );
});

test('an event of the timeline may plan more, also for the same moment, and time does not go back', () => {
  const timeline = new Timeline();
  const happened: string[] = [];
  timeline.plan(5, () => {
    happened.push('first');
    timeline.plan(5, () => happened.push('same moment'));
    timeline.plan(1, () => happened.push(`late at ${timeline.now}`));
  });
  timeline.plan(6, () => happened.push('last'));
  timeline.runUntil(10);
  expect(happened).toEqual(['first', 'same moment', 'late at 5', 'last']);
  expect(timeline.now).toBe(10);
  expect(timeline.events).toBe(4);
});

test('a time that is no number is refused, since nothing after it would ever happen', () => {
  expect(() => new Timeline().plan(Number.NaN, () => {})).toThrow(InvariantError);
});

test('a plan that plans itself for now is refused after a million times, since time would stand still', () => {
  const timeline = new Timeline();
  const again = (): void => void timeline.plan(timeline.now, again);
  timeline.plan(3, again);
  expect(() => timeline.runUntil(10)).toThrow(/Time stands still at 3/u);
});

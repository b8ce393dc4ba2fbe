/** Repeated events are logged less often, and never silenced. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Repetition } from '../../src/observe/repetition.js';

test('the log of a row of the same tells the 1st, 2nd, 4th, 8th and so on', () => {
  const row = new Repetition<string>();
  const told = Array.from({ length: 20 }, () => row.add('same')).filter((number) => number !== undefined);
  expect(told).toEqual([1, 2, 4, 8, 16]);
});

test('the log tells the first of each kind, and counts each kind for itself', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c')), (kinds) => {
      const rows = new Repetition<string>();
      const told = kinds.map((kind) => [kind, rows.add(kind)] as const);
      for (const kind of new Set(kinds)) {
        const numbers = told.filter(([which]) => which === kind).map(([, number]) => number);
        expect(numbers[0]).toBe(1);
        numbers.forEach((number, index) => {
          const isPowerOfTwo = ((index + 1) & index) === 0;
          expect(number).toBe(isPowerOfTwo ? index + 1 : undefined);
        });
      }
    }),
  );
});

test('the log begins anew when the row was ended', () => {
  const row = new Repetition<string>();
  const told = (times: number) => Array.from({ length: times }, () => row.add('same'));
  expect(told(3)).toEqual([1, 2, undefined]);
  row.end();
  expect(told(3)).toEqual([1, 2, undefined]);
});

test('the log begins anew after a time without any, if it was given one', () => {
  const clock = { time: 0, now: () => clock.time };
  const row = new Repetition<string>(1_000, clock);
  const at = (time: number) => {
    clock.time = time;
    return row.add('same');
  };
  expect([at(0), at(999), at(1_998), at(2_997), at(3_997), at(4_000)]).toEqual([1, 2, undefined, 4, 1, 2]);
});

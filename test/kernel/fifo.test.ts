import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fifo } from '../../src/kernel/fifo.js';

test('a Fifo gives items back in the order in which they came, whatever comes and goes in between', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -200, max: 200 }), { maxLength: 60 }), (steps) => {
      const fifo = new Fifo<number>();
      const model: number[] = [];
      let next = 0;
      for (const step of steps) {
        for (let n = 0; n < step; n++) {
          fifo.push(next);
          model.push(next++);
        }
        for (let n = 0; n > step; n--) expect(fifo.shift()).toBe(model.shift());
        expect(fifo.size).toBe(model.length);
      }
    }),
  );
});

test('a Fifo that was cleared is empty and can be used again', () => {
  const fifo = new Fifo<string | undefined>();
  for (let n = 0; n < 100; n++) fifo.push('old');
  fifo.shift();
  fifo.clear();
  expect([fifo.size, fifo.shift()]).toEqual([0, undefined]);
  fifo.push(undefined);
  fifo.push('new');
  expect([fifo.size, fifo.shift(), fifo.shift(), fifo.shift()]).toEqual([2, undefined, 'new', undefined]);
});

/** How much heavy work is done before the event loop looks at the sockets again. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HeavyRounds, type HeavyWork } from '../../../src/pooler/servers/heavy-work.js';

/** A clock that goes on with work only, and an event loop that is run by hand. */
class Loop {
  time = 0;
  #next: (() => void) | undefined;
  readonly rounds = new HeavyRounds(
    () => this.time,
    (run) => {
      expect(this.#next, 'rounds that are due').toBeUndefined();
      this.#next = run;
    },
  );

  get isIdle(): boolean {
    return this.#next === undefined;
  }

  round(): void {
    const run = this.#next as () => void;
    this.#next = undefined;
    run();
  }
}

class Flooder implements HeavyWork {
  portions = 0;
  readonly #loop: Loop;
  readonly #cost: number;
  #left: number;

  constructor(loop: Loop, cost: number, portions: number) {
    this.#loop = loop;
    this.#cost = cost;
    this.#left = portions;
    loop.rounds.add(this);
  }

  nextPortion(): void {
    this.portions++;
    this.#loop.time += this.#cost;
    if (--this.#left > 0) this.#loop.rounds.add(this);
  }
}

test('heavy work of any number of clients takes one limited time between two looks at the sockets', () => {
  const cost = fc.double({ min: 0.001, max: 0.15, noNaN: true });
  const flooders = fc.array(fc.tuple(cost, fc.integer({ min: 1, max: 40 })), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(flooders, (shapes) => {
      const loop = new Loop();
      const all = shapes.map(([each, portions]) => new Flooder(loop, each, portions));
      while (!loop.isIdle) {
        const began = loop.time;
        loop.round();
        expect(loop.time).toBeGreaterThan(began);
        expect(loop.time - began).toBeLessThan(0.2 + 0.15);
      }
      expect(all.map(({ portions }) => portions)).toEqual(shapes.map(([, portions]) => portions));
    }),
  );
});

test('heavy clients have their portions in turn', () => {
  const loop = new Loop();
  const all = Array.from({ length: 7 }, () => new Flooder(loop, 0.09, 20));
  while (!loop.isIdle) {
    loop.round();
    const counts = all.map(({ portions }) => portions);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  }
});

test('heavy work that fails does not keep other heavy work from going on', () => {
  const loop = new Loop();
  loop.rounds.add({
    nextPortion() {
      throw new Error('broken');
    },
  });
  const other = new Flooder(loop, 0.01, 2);
  expect(() => loop.round()).toThrow('broken');
  expect(loop.isIdle).toBe(false);
  loop.round();
  expect(other.portions).toBe(2);
  expect(loop.isIdle).toBe(true);
});

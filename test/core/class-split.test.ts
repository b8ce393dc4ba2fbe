// One budget, two kinds of work: by need, and by the ratio where there is not enough.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClassSplit } from '../../src/core/class-split.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';

const ratios = fc.oneof(fc.constantFrom(0, 0.2, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }));
const numbers = fc.nat({ max: 60 });

/** The slow way: one slot after the other, to whichever class is further below its part. */
function slowSplit(ratio: number, capacity: number, regularDemand: number, reservedDemand: number): number {
  const share = { regular: 0, reserved: 0 };
  const give = (
    wanted: { regular: number; reserved: number },
    isReserved: (left: number) => boolean,
  ): void => {
    let left = capacity - share.regular - share.reserved;
    for (; left > 0; left--) {
      const regularWants = share.regular < wanted.regular;
      const reservedWants = share.reserved < wanted.reserved;
      if (!regularWants && !reservedWants) return;
      if (reservedWants && (!regularWants || isReserved(left))) share.reserved++;
      else share.regular++;
    }
  };
  if (capacity >= 2) {
    share.regular = Math.min(1, regularDemand);
    share.reserved = Math.min(1, reservedDemand);
  }
  const target = Math.round(capacity * ratio);
  give({ regular: regularDemand, reserved: reservedDemand }, () => share.reserved < target);
  const before = share.reserved;
  const spare = Math.round((capacity - share.regular - share.reserved) * ratio);
  give({ regular: capacity, reserved: capacity }, () => share.reserved < before + spare);
  return share.reserved;
}

test('The split of a budget between regular and reserved work adds up, and gives each class the smaller of its need and its part', () => {
  fc.assert(
    fc.property(
      ratios,
      numbers,
      numbers,
      numbers,
      (reservedRatio, capacity, regularDemand, reservedDemand) => {
        const { regular, reserved } = new ClassSplit({ reservedRatio }).split(
          capacity,
          regularDemand,
          reservedDemand,
        );
        expect(regular + reserved).toBe(capacity);
        const part = Math.round(capacity * reservedRatio);
        const floor = capacity >= 2 ? 1 : 0;
        const certain = (demand: number, target: number, other: number): number =>
          Math.min(demand, Math.max(floor, Math.min(target, capacity - Math.min(floor, other))));
        expect(reserved).toBeGreaterThanOrEqual(certain(reservedDemand, part, regularDemand));
        expect(regular).toBeGreaterThanOrEqual(certain(regularDemand, capacity - part, reservedDemand));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('The split of a budget between regular and reserved work is that of giving one slot after the other', () => {
  fc.assert(
    fc.property(ratios, numbers, numbers, numbers, (reservedRatio, capacity, regular, reserved) => {
      const split = new ClassSplit({ reservedRatio }).split(capacity, regular, reserved);
      expect(split.reserved).toBe(slowSplit(reservedRatio, capacity, regular, reserved));
    }),
    { numRuns: 1_000 },
  );
});

test('The split of a budget between regular and reserved work never gives a class less for asking for more, nor either of them less when there is more', () => {
  fc.assert(
    fc.property(ratios, numbers, numbers, numbers, (reservedRatio, capacity, regular, reserved) => {
      const split = new ClassSplit({ reservedRatio });
      const now = split.split(capacity, regular, reserved);
      const roomier = split.split(capacity + 1, regular, reserved);
      expect(split.split(capacity, regular + 1, reserved).regular).toBeGreaterThanOrEqual(now.regular);
      expect(split.split(capacity, regular, reserved + 1).reserved).toBeGreaterThanOrEqual(now.reserved);
      expect(roomier.regular).toBeGreaterThanOrEqual(now.regular);
      expect(roomier.reserved).toBeGreaterThanOrEqual(now.reserved);
    }),
    { numRuns: 1_000 },
  );
});

test('The split of a budget between regular and reserved work says why', () => {
  const split = new ClassSplit();
  expect(split.split(100, 40, 10)).toEqual({ regular: 80, reserved: 20, reason: 'demand_fits' });
  expect(split.split(100, 200, 90)).toEqual({ regular: 80, reserved: 20, reason: 'by_ratio' });
  expect(split.split(40, 0, 64)).toEqual({ regular: 0, reserved: 40, reason: 'lent_to_reserved' });
  expect(split.split(40, 8, 64)).toEqual({ regular: 8, reserved: 32, reason: 'lent_to_reserved' });
  expect(split.split(40, 64, 3)).toEqual({ regular: 37, reserved: 3, reason: 'lent_to_regular' });
});

test('The split of a budget between regular and reserved work loses no slot to rounding, and leaves one to each class that needs any', () => {
  expect(new ClassSplit({ reservedRatio: 0.3 }).split(90, 900, 900)).toMatchObject({
    regular: 63,
    reserved: 27,
  });
  expect(new ClassSplit({ reservedRatio: 0 }).split(10, 99, 99)).toMatchObject({ regular: 9, reserved: 1 });
  expect(new ClassSplit({ reservedRatio: 1 }).split(10, 99, 99)).toMatchObject({ regular: 1, reserved: 9 });
  expect(new ClassSplit().split(2, 9, 9)).toMatchObject({ regular: 1, reserved: 1 });
  expect(new ClassSplit().split(1, 9, 9)).toMatchObject({ regular: 1, reserved: 0 });
  expect(new ClassSplit().split(0, 9, 9)).toMatchObject({ regular: 0, reserved: 0 });
});

test('The split of a budget between regular and reserved work refuses a wrong ratio and a wrong number of connections, by name', () => {
  expect(() => new ClassSplit({ reservedRatio: 1.1 })).toThrow(PoolOptionsError);
  expect(() => new ClassSplit({ reservedRatio: Number.NaN })).toThrow(
    /reservedRatio: must be a number from 0 to 1/,
  );
  expect(() => new ClassSplit({ reservedRation: 1 } as never)).toThrow(/did you mean reservedRatio/);
  expect(() => new ClassSplit().split(-1, 0, 0)).toThrow(/capacity must be/);
  expect(() => new ClassSplit().split(1, 0.5, 0)).toThrow(/regularDemand must be/);
  expect(() => new ClassSplit().split(1, 0, Number.NaN)).toThrow(/reservedDemand must be/);
});

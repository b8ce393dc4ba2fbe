// When to open another connection.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bulk, trickle } from '../../src/core/growth.js';

test('Trickle gives one while more wait than are on their way, and none otherwise', () => {
  fc.assert(
    fc.property(fc.nat({ max: 100 }), fc.nat({ max: 100 }), (waiting, underWay) => {
      expect(trickle(waiting, underWay)).toBe(waiting > underWay ? 1 : 0);
    }),
  );
});

test('Trickle repeated until it gives none, ends with one on its way to each caller', () => {
  let underWay = 3;
  while (trickle(10, underWay) === 1) underWay++;
  expect(underWay).toBe(10);
});

test('Bulk opens the missing spares, not counting dials for callers', () => {
  expect(bulk(5, 0, 0, 0)).toBe(5);
  expect(bulk(5, 2, 0, 0)).toBe(3);
  expect(bulk(5, 2, 0, 2)).toBe(1);
  expect(bulk(5, 2, 2, 2)).toBe(3);
  expect(bulk(5, 9, 0, 0)).toBe(0);
  expect(bulk(0, 0, 7, 3)).toBe(0);
});

test('Bulk done at once, leaves nothing missing', () => {
  const small = fc.nat({ max: 50 });
  fc.assert(
    fc.property(small, small, small, small, (minIdle, spares, waiting, underWay) => {
      const missing = bulk(minIdle, spares, waiting, underWay);
      expect(missing).toBeGreaterThanOrEqual(0);
      expect(missing).toBeLessThanOrEqual(minIdle);
      const covered = Math.max(underWay, waiting);
      expect(bulk(minIdle, spares, waiting, covered + missing)).toBe(0);
    }),
  );
});

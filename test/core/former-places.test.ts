// Where items of a list were in the list before.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formerPlaces } from '../../src/core/former-places.js';

const lists = fc.uniqueArray(fc.nat({ max: 12 }));

test('formerPlaces says for each item where it was before, or that it was nowhere', () => {
  fc.assert(
    fc.property(lists, lists, (before, now) => {
      expect([...formerPlaces(before, now)]).toEqual(now.map((item) => before.indexOf(item)));
    }),
    { numRuns: 1_000 },
  );
});

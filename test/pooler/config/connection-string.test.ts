// Connection strings: whatever a value holds, it can be written and is read again.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Misread } from '../../../src/pooler/config/config-problems.js';
import { parseConnection, parsePairs } from '../../../src/pooler/config/connection-string.js';

test('A connection string gives back every value that was written between quotes', () => {
  const key = fc.stringMatching(/^[a-z_]{1,12}$/);
  const value = fc.string({ minLength: 1, unit: 'grapheme' });
  const space = fc.constantFrom(' ', '  ', '\t');
  fc.assert(
    fc.property(fc.dictionary(key, value, { noNullPrototype: true }), space, (pairs, between) => {
      const written = Object.entries(pairs).map(
        ([name, text]) => `${name} = '${text.replaceAll("'", "''")}'`,
      );
      expect(Object.fromEntries(parsePairs(written.join(between)))).toEqual(pairs);
    }),
  );
});

test('A connection string is read or refused, and never anything else', () => {
  const pieces = fc.constantFrom(
    "'",
    "''",
    '=',
    ' ',
    'a',
    'host',
    '\\',
    '\n',
    '%',
    '://',
    'postgres://',
    '@',
    '[',
    ':',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 20 }), (parts) => {
      try {
        parseConnection(parts.join(''));
      } catch (error) {
        expect(error).toBeInstanceOf(Misread);
      }
    }),
  );
});

test('A connection string takes quotes in the middle of a value, and space around =, as they are', () => {
  expect([...parsePairs("a=it's  b = 'x y' c=d=e")]).toEqual([
    ['a', "it's"],
    ['b', 'x y'],
    ['c', 'd=e'],
  ]);
});

test('A connection string that is endless is refused', () => {
  expect(() => parsePairs(`a=${'x'.repeat(70_000)}`)).toThrow('is longer than 65536 characters');
});

// How passwords are prepared, by the examples of RFC 4013 and by what PostgreSQL does beyond them.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { preparePassword } from '../../../src/pooler/auth/saslprep.js';

const prepared = (password: string): string => preparePassword(password).toString();

test.each([
  ['a soft hyphen is left out', 'I\u00adX', 'IX'],
  ['an ASCII text stays as it is', 'user', 'user'],
  ['case stays as it is', 'USER', 'USER'],
  ['a feminine ordinal is a letter', '\u00aa', 'a'],
  ['a roman nine is two letters', '\u2168', 'IX'],
  ['a wide space is a space', 'a\u3000b', 'a b'],
  ['a letter and its accent are one', 'e\u0301', '\u00e9'],
  ['right to left, from end to end', '\u0627\u0031\u0628', '\u0627\u0031\u0628'],
])('a password %s', (_, password, result) => {
  expect(prepared(password)).toBe(result);
});

test.each([
  ['a control character', '\u0007\u2168'],
  ['a private character', '\ue000\u2168'],
  ['a character that is newer than Unicode 3.2', '\u{1f600}\u2168'],
  ['right to left that does not end so', '\u0627\u2168'],
  ['right to left mixed with left to right', '\u0627\u2168\u0628'],
])('a password with %s is used as it is', (_, password) => {
  expect(prepared(password)).toBe(password);
});

test('a password that would be empty is used as it is', () => {
  expect(prepared('\u00ad')).toBe('\u00ad');
});

test('a password that is no UTF-8 is used as it is', () => {
  const bytes = Buffer.from([0xe9, 0xad, 0x41]);
  expect(preparePassword(bytes)).toEqual(bytes);
});

test('a password in ASCII is never changed, control characters included', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), (password) => {
      expect(prepared(password)).toBe(password);
    }),
  );
});

test('a password that was prepared is the same when it is prepared again, unless it was used as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (password) => {
      const once = prepared(password);
      expect([once, password]).toContain(prepared(once));
    }),
  );
});

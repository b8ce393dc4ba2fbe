// Durations as people write them.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, parseDuration } from '../../src/kernel/duration.js';

test.each([
  [0, 0],
  ['0', 0],
  [1.5, 1.5],
  ['500ms', 500],
  ['45s', 45_000],
  ['1.5s', 1_500],
  ['11m', 660_000],
  ['1m30s', 90_000],
  ['2h', 7_200_000],
  ['1d', 86_400_000],
  ['1d2h3m4s5ms', 93_784_005],
])('A duration %j is %d ms', (text, milliseconds) => {
  expect(parseDuration(text)).toBe(milliseconds);
});

test.each([
  ...['', '5', 's', '-5s', '5 s', '5x', '5s5', 'Infinity', '1e3s', '5S', '.5s', '5.s', ' 5s', '5s '],
  ...[-1, Number.NaN, Number.POSITIVE_INFINITY, null, undefined, {}, [], true, '9'.repeat(50)],
])('A duration %j is none', (value) => {
  expect(parseDuration(value)).toBeUndefined();
});

test('A duration is read again after a wrong one as if nothing had been', () => {
  expect(parseDuration('10s!')).toBeUndefined();
  expect(parseDuration('10s')).toBe(10_000);
});

test('A duration is written so that reading it gives the same number', () => {
  fc.assert(
    fc.property(fc.nat({ max: 10 * 86_400_000 }), (milliseconds) => {
      expect(parseDuration(formatDuration(milliseconds))).toBe(milliseconds);
    }),
  );
});

test.each([
  [0, '0ms'],
  [1.5, '1.5ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [90_000, '1m30s'],
  [660_000, '11m'],
  [93_784_005, '1d2h3m4.005s'],
  [Number.POSITIVE_INFINITY, 'no limit'],
])('A duration of %d ms is written %s', (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

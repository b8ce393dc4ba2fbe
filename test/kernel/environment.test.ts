// Environment variables: what is read, and what is said about what can't be.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration } from '../../src/kernel/duration.js';
import { EnvironmentReader, parseGoDuration } from '../../src/kernel/environment.js';

const variable = { name: 'X', default: 'the usual' };

function reading(text: string): EnvironmentReader {
  return new EnvironmentReader({ X: text });
}

test.each([
  ['0', 0],
  ['+0', 0],
  ['11m', 660_000],
  ['11m0s', 660_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['.5s', 500],
  ['5.s', 5_000],
  ['500ms', 500],
  ['250us', 0.25],
  ['250\u00b5s', 0.25],
  ['250\u03bcs', 0.25],
  ['1500000ns', 1.5],
  ['+2m', 120_000],
  ['-2m', -120_000],
  ['-0s', 0],
  ['1d', 86_400_000],
])('A duration as Go writes it %s is %d ms', (text, milliseconds) => {
  expect(parseGoDuration(text)).toBeCloseTo(milliseconds, 9);
});

test.each([
  '',
  '11',
  '-',
  '+',
  'm',
  '11 m',
  '11x',
  '11m5',
  '--1s',
  '1m-1s',
  '1e3s',
  '.s',
  'Infinity',
  '1'.repeat(50),
])("A duration as Go writes it '%s' is none", (text) => {
  expect(parseGoDuration(text)).toBeUndefined();
});

test('A duration as Go writes it is the same as one that this library writes', () => {
  fc.assert(
    fc.property(fc.nat(10 * 86_400_000), (milliseconds) => {
      expect(parseGoDuration(formatDuration(milliseconds))).toBe(milliseconds);
    }),
  );
});

test.each(['', ' ', '\t\n'])('A variable that says %j is not set', (text) => {
  const read = reading(text);
  expect(read.text('X')).toBeUndefined();
  expect(read.boolean(variable)).toBeUndefined();
  expect(read.integer(variable)).toBeUndefined();
  expect(read.duration(variable)).toBeUndefined();
  expect(read.names()).toEqual([]);
  expect(read.warnings).toEqual([]);
});

test.each(['true', 'TRUE', 'True', 't', 'T', '1', ' true '])('A variable that says %j is true', (text) => {
  expect(reading(text).boolean(variable)).toBe(true);
});

test.each(['false', 'FALSE', 'f', '0'])('A variable that says %j is false', (text) => {
  expect(reading(text).boolean(variable)).toBe(false);
});

test.each([
  ['50', 50],
  [' 50 ', 50],
  ['+5', 5],
  ['-5', -5],
  ['007', 7],
])('A variable that says %j is the number %d', (text, value) => {
  expect(reading(text).integer(variable)).toBe(value);
  expect(reading(text).number(variable)).toBe(value);
});

test('A variable may say a number with a fraction where that makes sense', () => {
  expect(reading('2.5').number(variable)).toBe(2.5);
  expect(reading('2.5').integer(variable)).toBeUndefined();
});

test.each<[string, (read: EnvironmentReader) => unknown, string]>([
  [
    'yes',
    (read) => read.boolean(variable),
    "is 'yes', neither true nor false: the default, the usual, is used",
  ],
  ['5O', (read) => read.integer(variable), "is '5O', no whole number: the default, the usual, is used"],
  ['1e3', (read) => read.number(variable), "is '1e3', no number: the default, the usual, is used"],
  [
    '11',
    (read) => read.duration(variable),
    "is '11', no duration such as '11m' or '45s': the default, the usual, is used",
  ],
  ['0', (read) => read.integer(variable, { min: 1 }), "is '0', less than 1: the default, the usual, is used"],
  [
    '0s',
    (read) => read.duration(variable, { above: 0 }),
    "is '0s', not more than 0: the default, the usual, is used",
  ],
])('A variable that says %j and can’t is left aside, and it is said', (text, ask, warning) => {
  const read = reading(text);
  expect(ask(read)).toBeUndefined();
  expect(read.warnings).toEqual([{ variable: 'X', text: warning }]);
});

test('A variable below its floor is at its floor, and it is said', () => {
  const read = reading('-2m');
  expect(read.duration(variable, { floor: 0 })).toBe(0);
  expect(read.warnings).toEqual([{ variable: 'X', text: "is '-2m', less than 0: 0 is used" }]);
});

test('A variable whatever it says is read or warned of, in one line of bounded length', () => {
  const anything = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'0123456789.+-smhn tru') }),
  );
  fc.assert(
    fc.property(anything, (said) => {
      for (const ask of ['boolean', 'integer', 'number', 'duration'] as const) {
        const read = reading(said);
        const value = read[ask](variable, { floor: 0 });
        if (value === undefined) expect(read.warnings).toHaveLength(said.trim() === '' ? 0 : 1);
        else if (typeof value === 'number') expect(value).toBeGreaterThanOrEqual(0);
        for (const { text } of read.warnings) expect(text).toMatch(/^[^\n\r]{1,150}$/);
      }
    }),
  );
});

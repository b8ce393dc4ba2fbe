// Reading options: what is right comes through, what is wrong is told all at once.
import { expect, test } from 'vitest';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { OptionReader } from '../../src/kernel/option-reader.js';

/** What the reader complains about. */
function problemsOf(options: object, read: (reader: OptionReader) => void): Record<string, string> {
  const reader = new OptionReader(options);
  read(reader);
  try {
    reader.throwIfAnyProblem();
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    return Object.fromEntries(error.problems.map(({ path, message }) => [path, message]));
  }
  return {};
}

test('An option that is left out, or undefined, has its default', () => {
  const reader = new OptionReader({ max: undefined });
  expect(reader.integer('max', 10, { min: 1 })).toBe(10);
  expect(reader.duration('timeout', 30_000, 0)).toBe(30_000);
  expect(reader.boolean('flag', true)).toBe(true);
  expect(reader.string('name', 'pool')).toBe('pool');
  expect(reader.oneOf('order', 'lifo', ['lifo', 'fifo'])).toBe('lifo');
  expect(reader.callback('connect', false)).toBeUndefined();
  expect(reader.object('limiter', [])).toBeUndefined();
  reader.throwIfAnyProblem();
});

test('An option that is a number keeps its range', () => {
  const range = { min: 0, max: 2 };
  expect(new OptionReader({ ratio: 0.5 }).number('ratio', 1, range)).toBe(0.5);
  expect(new OptionReader({}).number('ratio', 1, range)).toBe(1);
  for (const ratio of [-1, 3, Number.NaN, '1']) {
    expect(problemsOf({ ratio }, (reader) => reader.number('ratio', 1, range))).toHaveProperty('ratio');
  }
});

test('An option that is right comes through', () => {
  const connect = (): void => {};
  const limiter = { take: () => 0 };
  const options = { max: 3, uses: Number.POSITIVE_INFINITY, timeout: '5s', off: 0, flag: false, name: 'a' };
  const reader = new OptionReader({ ...options, order: 'fifo', connect, limiter, rate: 0.5 });
  expect(reader.integer('max', 10, { min: 1 })).toBe(3);
  expect(reader.integer('uses', 1, { min: 1, orInfinity: true })).toBe(Number.POSITIVE_INFINITY);
  expect(reader.duration('timeout', 1, 0)).toBe(5_000);
  expect(reader.duration('off', 1, Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
  expect(reader.boolean('flag', true)).toBe(false);
  expect(reader.string('name', 'pool')).toBe('a');
  expect(reader.oneOf('order', 'lifo', ['lifo', 'fifo'])).toBe('fifo');
  expect(reader.callback('connect', true)).toBe(connect);
  expect(reader.object('limiter', [])).toBe(limiter);
  expect(reader.positive('rate')).toBe(0.5);
  reader.refuseUnknown();
  reader.throwIfAnyProblem();
});

test.each<[string, object, (reader: OptionReader) => void, string]>([
  [
    'below its range',
    { n: 0 },
    (r) => r.integer('n', 1, { min: 1 }),
    'must be a whole number of at least 1, not 0',
  ],
  [
    'broken',
    { n: 1.5 },
    (r) => r.integer('n', 1, { min: 1 }),
    'must be a whole number of at least 1, not 1.5',
  ],
  [
    'a text',
    { n: '5' },
    (r) => r.integer('n', 1, { min: 1 }),
    "must be a whole number of at least 1, not '5'",
  ],
  [
    'outside its range',
    { n: 99 },
    (r) => r.integer('n', 1, { min: 1, max: 9 }),
    'must be a whole number from 1 to 9, not 99',
  ],
  [
    'endless where it may be, but not a number',
    { n: Number.NaN },
    (r) => r.integer('n', 1, { min: 1, orInfinity: true }),
    'must be a whole number of at least 1, or Infinity, not NaN',
  ],
  [
    'no duration',
    { n: 'soon' },
    (r) => r.duration('n', 1, 0),
    "must be a duration such as 500 (ms), '500ms', '45s' or '11m', not 'soon'",
  ],
  ['no choice', { n: 'x' }, (r) => r.oneOf('n', 'a', ['a', 'b']), "must be one of 'a', 'b', not 'x'"],
  ['neither true nor false', { n: 1 }, (r) => r.boolean('n', true), 'must be true or false, not 1'],
  ['an empty text', { n: '' }, (r) => r.string('n', 'a'), "must be a text that is not empty, not ''"],
  ['no function', { n: {} }, (r) => r.callback('n', false), 'must be a function, not an object'],
  ['missing', {}, (r) => r.callback('n', true), 'is missing: it must be a function'],
  ['not positive', { n: 0 }, (r) => r.positive('n'), 'must be a number above 0, not 0'],
  [
    'an object without the method',
    { n: {} },
    (r) => r.object<{ take(): void }>('n', ['take']),
    'must be an object with take(), not an object',
  ],
  [
    'null',
    { n: null },
    (r) => r.object<{ take(): void }>('n', ['take']),
    'must be an object with take(), not null',
  ],
])('An option that is %s is told', (_what, options, read, message) => {
  expect(problemsOf(options, read)).toEqual({ n: message });
});

test('An unknown option is reported, with the name that was probably meant', () => {
  const problems = problemsOf({ maks: 5, colour: 'red', gone: undefined }, (reader) => {
    reader.integer('max', 1, { min: 1 });
    reader.refuseUnknown();
  });
  expect(problems).toEqual({ maks: 'is not an option; did you mean max?', colour: 'is not an option' });
});

test('An option that is a secret is not repeated', () => {
  const problems = problemsOf({ n: { password: 'hunter2' } }, (reader) => reader.integer('n', 1, { min: 1 }));
  expect(JSON.stringify(problems)).not.toContain('hunter2');
});

test('All problems are told together, in one error', () => {
  const reader = new OptionReader({ max: 0, order: 'x' });
  reader.integer('max', 1, { min: 1 });
  reader.oneOf('order', 'a', ['a']);
  expect(() => reader.throwIfAnyProblem()).toThrow(
    "2 problems with the pool's options:\n" +
      '  max: must be a whole number of at least 1, not 0\n' +
      "  order: must be one of 'a', not 'x'",
  );
});

test('A group of options that is left out, undefined or false is not there', () => {
  for (const options of [{}, { inner: undefined }, { inner: false }]) {
    const reader = new OptionReader(options);
    expect(reader.has('inner')).toBe(false);
    expect(reader.group('inner')).toBeUndefined();
    reader.refuseUnknown();
    reader.throwIfAnyProblem();
  }
});

test('A group of options that is true has all its defaults', () => {
  const reader = new OptionReader({ inner: true });
  expect(reader.has('inner')).toBe(true);
  const inner = reader.group('inner');
  expect(inner?.integer('size', 7, { min: 1 })).toBe(7);
  reader.throwIfAnyProblem();
});

test('A group of options is read like any other options', () => {
  const inner = new OptionReader({ inner: { size: 3, wait: '2s' } }).group('inner');
  expect(inner?.integer('size', 7, { min: 1 })).toBe(3);
  expect(inner?.duration('wait', 1, 0)).toBe(2_000);
});

test('A group of options tells its problems with the path to them, together with all others', () => {
  const problems = problemsOf({ max: 0, inner: { size: 'big', deeper: { name: 3 } }, other: 1 }, (reader) => {
    reader.integer('max', 1, { min: 1 });
    const inner = reader.group('inner');
    inner?.integer('size', 7, { min: 1 });
    inner?.group('deeper')?.string('name', 'x');
    inner?.refuseUnknown();
    reader.refuseUnknown();
  });
  expect(Object.keys(problems)).toEqual(['max', 'inner.size', 'inner.deeper.name', 'other']);
});

test('A group of options knows its own names only: one of the outer ones is a mistake inside', () => {
  const problems = problemsOf({ max: 3, inner: { max: 3, sise: 2 } }, (reader) => {
    reader.integer('max', 1, { min: 1 });
    const inner = reader.group('inner');
    inner?.integer('size', 7, { min: 1 });
    inner?.refuseUnknown();
    reader.refuseUnknown();
  });
  expect(problems).toEqual({
    'inner.max': 'is not an option',
    'inner.sise': 'is not an option; did you mean size?',
  });
});

test('A group of options that is something else is told, and read as if it were empty', () => {
  for (const value of ['yes', 1, [], null]) {
    let size = 0;
    const problems = problemsOf({ inner: value }, (reader) => {
      size = reader.group('inner')?.integer('size', 7, { min: 1 }) ?? 0;
    });
    expect(problems).toEqual({ inner: expect.stringContaining('must be an object or true, not ') });
    expect(size).toBe(7);
  }
});

test('A group of options is named as the user names it', () => {
  const reader = new OptionReader({ inner: { size: 0 } }, { inner: 'INNER', size: 'ignored' });
  reader.group('inner')?.integer('size', 7, { min: 1 });
  expect(() => reader.throwIfAnyProblem()).toThrow(/INNER\.size/);
});

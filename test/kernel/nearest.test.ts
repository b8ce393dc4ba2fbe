// The name that someone most likely meant.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nearest } from '../../src/kernel/nearest.js';

const options = ['max', 'minIdle', 'idleTimeout', 'acquireTimeout', 'maxLifetime', 'dialLimit'];

test.each([
  ['maxx', 'max'],
  ['minidle', 'minIdle'],
  ['idleTimeoutMs', 'idleTimeout'],
  ['aquireTimeout', 'acquireTimeout'],
  ['maxLifeTime', 'maxLifetime'],
  ['dialimit', 'dialLimit'],
])('The nearest name to %s is %s', (typed, meant) => {
  expect(nearest(typed, options)).toBe(meant);
});

test.each(['colour', 'q', 'statementTimeoutInMilliseconds'])(
  'The nearest name to %s is none of them',
  (typed) => {
    expect(nearest(typed, options)).toBeUndefined();
  },
);

test('The nearest name to a name that exists is that name, whatever else there is', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1 }),
      fc.nat(),
      (names, index) => {
        const name = names[index % names.length] as string;
        expect(nearest(name, names)).toBe(name);
      },
    ),
  );
});

test('The nearest name with nothing to choose from is none', () => {
  expect(nearest('max', [])).toBeUndefined();
});

// How often a page is told what is new, by how long it takes to find that out.
import { expect, test } from 'vitest';
import { pauseAfter } from '../../src/dashboard/watch.js';

test('a page that is open is told something every second, and every ten seconds numbers are kept for one that may come', () => {
  expect(pauseAfter(5, true)).toBe(995);
  expect(pauseAfter(5, false)).toBe(9_995);
});

test('finding out what is new takes a fiftieth of the time, but on a busy machine a page waits no longer than five seconds', () => {
  expect(pauseAfter(40, true)).toBe(40 * 49);
  expect(pauseAfter(300, true)).toBe(5_000);
  expect(pauseAfter(300, false)).toBe(300 * 49);
});

test('finding out what is new never takes more than a fifth of the time, and a pause never more than a minute', () => {
  expect(pauseAfter(4_000, true)).toBe(16_000);
  expect(pauseAfter(4_000, false)).toBe(60_000);
});

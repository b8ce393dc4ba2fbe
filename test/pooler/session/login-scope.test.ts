import { expect, test } from 'vitest';
import { Stay } from '../../../src/pooler/clients/login/login-scope.js';

const gone = new Error('gone');
const late = new Error('late');

test('a step has its own end while the stay goes on', async () => {
  const stay = new Stay();
  expect(await stay.during(Promise.resolve(1))).toBe(1);
  await expect(stay.during(Promise.reject(late))).rejects.toBe(late);
  expect(stay.isOver).toBe(false);
  expect(() => stay.throwIfOver()).not.toThrow();
});

test('its end interrupts the step that is under way, and only the first reason counts', async () => {
  const stay = new Stay();
  let fail: (error: Error) => void = () => {};
  const step = stay.during(new Promise((_, reject) => (fail = reject)));
  stay.end(gone);
  stay.end(late);
  await expect(step).rejects.toBe(gone);
  // Nobody is left to hear of it, and that is no unhandled rejection.
  fail(late);
  expect(stay.isOver).toBe(true);
  expect(() => stay.throwIfOver()).toThrow(gone);
});

test('no step begins after it', async () => {
  const stay = new Stay();
  stay.end(gone);
  await expect(stay.during(Promise.resolve(1))).rejects.toBe(gone);
});

test('its signal fires with the reason, whether it was asked for before or after', () => {
  const before = new Stay();
  const { signal } = before;
  expect(signal.aborted).toBe(false);
  before.end(gone);
  expect(signal.reason).toBe(gone);
  expect(before.signal).toBe(signal);
  const after = new Stay();
  after.end(late);
  expect(after.signal.reason).toBe(late);
});

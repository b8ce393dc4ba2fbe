import { expect, test } from 'vitest';
import { LoginScope } from '../../../src/pooler/clients/login/login-scope.js';

const gone = new Error('gone');
const late = new Error('late');

test('a step has its own end while the scope goes on', async () => {
  const scope = new LoginScope();
  expect(await scope.during(Promise.resolve(1))).toBe(1);
  await expect(scope.during(Promise.reject(late))).rejects.toBe(late);
  expect(scope.isOver).toBe(false);
  expect(() => scope.throwIfOver()).not.toThrow();
});

test('its end interrupts the step that is under way, and only the first reason counts', async () => {
  const scope = new LoginScope();
  let fail: (error: Error) => void = () => {};
  const step = scope.during(new Promise((_, reject) => (fail = reject)));
  scope.end(gone);
  scope.end(late);
  await expect(step).rejects.toBe(gone);
  // Nobody is left to hear of it, and that is no unhandled rejection.
  fail(late);
  expect(scope.isOver).toBe(true);
  expect(() => scope.throwIfOver()).toThrow(gone);
});

test('no step begins after it', async () => {
  const scope = new LoginScope();
  scope.end(gone);
  await expect(scope.during(Promise.resolve(1))).rejects.toBe(gone);
});

test('its signal fires with the reason, whether it was asked for before or after', () => {
  const before = new LoginScope();
  const { signal } = before;
  expect(signal.aborted).toBe(false);
  before.end(gone);
  expect(signal.reason).toBe(gone);
  expect(before.signal).toBe(signal);
  const after = new LoginScope();
  after.end(late);
  expect(after.signal.reason).toBe(late);
});

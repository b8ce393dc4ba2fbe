// The effect of repeated failures on the next dial.
import { expect, test } from 'vitest';
import { Breaker } from '../../src/core/breaker.js';

const down = new Error('down');

function breaker(): Breaker {
  return new Breaker({ threshold: 3, base: 100, cap: 1_000 }, { next: () => 0.5 });
}

test('The breaker is closed at first and lets every dial through', () => {
  const one = breaker();
  expect(one.state(0)).toBe('closed');
  expect(one.allows(0, 50)).toBe(true);
  expect(one).toMatchObject({ failures: 0, lastError: undefined });
});

test('The breaker holds dials back after a failure, but stays closed below the threshold', () => {
  const one = breaker();
  one.failed(down, 0, 'connection_open');
  expect(one.state(0)).toBe('closed');
  expect(one.allows(49, 0)).toBe(false);
  expect(one.allows(50, 7)).toBe(true);
  expect(one).toMatchObject({ failures: 1, lastError: down, retryAt: 50 });
});

test('The breaker opens with the failure that reaches the threshold, then lets one probe through at a time', () => {
  const one = breaker();
  for (let n = 0; n < 3; n++) one.failed(down, 0, 'connection_open');
  expect(one.state(199)).toBe('open');
  expect(one.allows(199, 0)).toBe(false);
  expect(one.state(200)).toBe('half_open');
  expect(one.allows(200, 0)).toBe(true);
  expect(one.allows(200, 1)).toBe(false);
});

test('The breaker opens for longer when the probe fails', () => {
  const one = breaker();
  for (let n = 0; n < 3; n++) one.failed(down, 0, 'connection_open');
  one.failed(down, 200, 'connection_open');
  expect(one.state(200)).toBe('open');
  expect(one.retryAt).toBe(200 + 400);
});

test('The breaker closes with a success and forgets', () => {
  const one = breaker();
  for (let n = 0; n < 5; n++) one.failed(down, 0, 'connection_open');
  one.succeeded();
  expect(one.state(0)).toBe('closed');
  expect(one.allows(0, 9)).toBe(true);
  expect(one).toMatchObject({ failures: 0, lastError: undefined });
  one.failed(down, 1_000, 'connection_open');
  expect(one.retryAt).toBe(1_000 + 50);
});

test('The breaker never moves a retry closer: dials that failed together wait for the longest of their delays', () => {
  let draw = 1;
  const one = new Breaker({ threshold: 9, base: 100, cap: 1_000 }, { next: () => draw });
  one.failed(down, 0, 'connection_open');
  draw = 0;
  one.failed(down, 10, 'connection_open');
  expect(one.retryAt).toBe(100);
});

test('The causes of failures each have a delay of their own, which grows with failures of that kind only', () => {
  const one = new Breaker({ threshold: 9, base: 100, cap: 10_000 }, { next: () => 1 });
  for (let n = 0; n < 4; n++) one.failed(down, 0, 'connection_open');
  expect(one.retryAt).toBe(800);
  // The first of its kind: its own delay is short, and the longer one of the others stands.
  one.failed(new Error('no token'), 0, 'token_provider');
  expect(one.retryAt).toBe(800);
  one.failed(new Error('no token'), 900, 'token_provider');
  expect(one.retryAt).toBe(900 + 200);
  one.failed(new Error('too fast'), 900, 'rate_limit');
  expect(one.retryAt).toBe(900 + 200);
});

test('The causes of failures count together for the threshold, and the last of them is the one that is told', () => {
  const one = breaker();
  one.failed(down, 0, 'connection_open');
  one.failed(new Error('too fast'), 0, 'rate_limit');
  const last = new Error('no token');
  one.failed(last, 0, 'token_provider');
  expect(one).toMatchObject({ failures: 3, lastError: last });
  expect(one.state(0)).toBe('open');
});

test('The causes of failures are all forgotten with one success', () => {
  const one = breaker();
  for (const cause of ['connection_open', 'rate_limit', 'token_provider'] as const)
    for (let n = 0; n < 3; n++) one.failed(down, 0, cause);
  one.succeeded();
  expect(one.allows(0, 5)).toBe(true);
  for (const cause of ['connection_open', 'rate_limit', 'token_provider'] as const) {
    one.failed(down, 0, cause);
    expect(one.retryAt).toBe(50);
  }
});

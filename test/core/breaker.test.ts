// What repeated failures mean for the next dial.
import { describe, expect, it } from 'vitest';
import { Breaker } from '../../src/core/breaker.js';

const down = new Error('down');

function breaker(): Breaker {
  return new Breaker({ threshold: 3, base: 100, cap: 1_000 }, { next: () => 0.5 });
}

describe('The breaker', () => {
  it('is closed at first and lets every dial through', () => {
    const one = breaker();
    expect(one.state(0)).toBe('closed');
    expect(one.allows(0, 50)).toBe(true);
    expect(one).toMatchObject({ failures: 0, lastError: undefined });
  });

  it('holds dials back after a failure, but stays closed below the threshold', () => {
    const one = breaker();
    one.failed(down, 0);
    expect(one.state(0)).toBe('closed');
    expect(one.allows(49, 0)).toBe(false);
    expect(one.allows(50, 7)).toBe(true);
    expect(one).toMatchObject({ failures: 1, lastError: down, retryAt: 50 });
  });

  it('opens with the failure that reaches the threshold, then lets one probe through at a time', () => {
    const one = breaker();
    for (let n = 0; n < 3; n++) one.failed(down, 0);
    expect(one.state(199)).toBe('open');
    expect(one.allows(199, 0)).toBe(false);
    expect(one.state(200)).toBe('half-open');
    expect(one.allows(200, 0)).toBe(true);
    expect(one.allows(200, 1)).toBe(false);
  });

  it('opens for longer when the probe fails', () => {
    const one = breaker();
    for (let n = 0; n < 3; n++) one.failed(down, 0);
    one.failed(down, 200);
    expect(one.state(200)).toBe('open');
    expect(one.retryAt).toBe(200 + 400);
  });

  it('closes with a success and forgets', () => {
    const one = breaker();
    for (let n = 0; n < 5; n++) one.failed(down, 0);
    one.succeeded();
    expect(one.state(0)).toBe('closed');
    expect(one.allows(0, 9)).toBe(true);
    expect(one).toMatchObject({ failures: 0, lastError: undefined });
  });

  it('never moves a retry closer: those who failed together wait for the longest of their delays', () => {
    let draw = 1;
    const one = new Breaker({ threshold: 9, base: 100, cap: 1_000 }, { next: () => draw });
    one.failed(down, 0);
    draw = 0;
    one.failed(down, 10);
    expect(one.retryAt).toBe(100);
  });
});

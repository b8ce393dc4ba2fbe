// Connection admission of the stand-in on a clock of its own: the exact shape of the bucket, and the count of connections.
import { expect, test } from 'vitest';
import { Admission, usualAdmission } from '../../../src/dsql-local/front/admission.js';

/** Connections admitted when one asks every `everyMs` from `from` (included) to `until` (excluded). */
function admitted(admission: Admission, from: number, until: number, everyMs: number): number {
  let count = 0;
  for (let at = from; at < until; at += everyMs) if (admission.enter(at) === undefined) count += 1;
  return count;
}

test('the bucket of admission admits exactly 1,000 of 2,000 connections that come at once, and refuses the rest with 53400', () => {
  const admission = new Admission(usualAdmission);
  const codes = Array.from({ length: 2_000 }, () => admission.enter(5_000)?.code);
  expect(codes.indexOf('53400')).toBe(1_000);
  expect(codes.filter((code) => code === undefined)).toHaveLength(1_000);
  expect(admission.open).toBe(1_000);
});

test('the bucket of admission admits 100 a second after the burst, and none of the refused ones costs a token', () => {
  const admission = new Admission(usualAdmission);
  expect(admitted(admission, 0, 1, 0.0005)).toBe(1_000);
  // 10 s of a client that asks every millisecond: one place every 10 ms.
  expect(admitted(admission, 1, 10_001, 1)).toBe(1_000);
});

test('the bucket of admission admits burst + rate x elapsed at any moment of a steady rush', () => {
  for (const [rate, burst] of [
    [100, 1_000],
    [7, 3],
    [1_000, 1],
  ] as const) {
    const admission = new Admission({ ...usualAdmission, rate, burst, connections: 1_000_000 });
    let count = 0;
    let largestError = 0;
    for (let at = 0; at <= 20_000; at += 0.5) {
      if (admission.enter(at) === undefined) count += 1;
      const asked = at / 0.5 + 1;
      const allowed = Math.min(burst + (rate * at) / 1_000, asked);
      largestError = Math.max(largestError, Math.abs(count - allowed));
    }
    expect(largestError).toBeLessThan(1.001);
  }
});

test('the bucket of admission never holds more than its burst, however long no connection comes', () => {
  const admission = new Admission({ ...usualAdmission, burst: 20, rate: 10 });
  expect(admitted(admission, 0, 1, 0.01)).toBe(20);
  expect(admitted(admission, 3_600_000, 3_600_001, 0.01)).toBe(20);
});

test('the number of connections a connection beyond the limit is refused with 53300, which takes no token, and a place that is left is given again', () => {
  const admission = new Admission({ rate: 1, burst: 4, connections: 2, lifeMs: 1 });
  expect([1, 2, 3, 4, 5].map(() => admission.enter(0)?.code)).toEqual([
    undefined,
    undefined,
    '53300',
    '53300',
    '53300',
  ]);
  admission.left();
  expect(admission.enter(0)).toBeUndefined();
  admission.left();
  expect(admission.enter(0)).toBeUndefined();
  admission.left();
  expect(admission.enter(0)?.code).toBe('53400');
  expect([admission.open, admission.peak]).toEqual([1, 2]);
});

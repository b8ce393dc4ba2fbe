// The gate: open while conflicts are rare, closed in a storm, never a lock.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ContentionGate } from '../../../src/dsql/transaction/contention-gate.js';
import { VirtualAlarms } from './virtual-alarms.js';

test('No life of the gate loses an attempt, and each is admitted in the end', () => {
  const steps = fc.array(
    fc.constantFrom('first', 'first', 'retry', 'committed', 'conflict', 'conflict', 'other', 'cancel'),
    { maxLength: 150 },
  );
  fc.assert(
    fc.property(steps, (life) => {
      const time = new VirtualAlarms();
      const gate = new ContentionGate(time.clock, time.make);
      const cancels = new Map<number, () => void>();
      const admitted = new Set<number>();
      let asked = 0;
      let inside = 0;
      for (const step of life) {
        if (step === 'first' || step === 'retry') {
          const number = asked++;
          const cancel = gate.enter(step === 'retry', () => {
            inside++;
            admitted.add(number);
            cancels.delete(number);
          });
          if (!admitted.has(number)) cancels.set(number, cancel);
        } else if (step === 'cancel') {
          const [number] = cancels.keys();
          if (number === undefined) continue;
          cancels.get(number)?.();
          cancels.delete(number);
        } else if (inside > 0) {
          inside--;
          gate.leave(step as 'committed' | 'conflict' | 'other');
        }
        expect(gate.inside).toBe(inside);
        expect(gate.waiting).toBe(cancels.size);
        // Room is never left while someone waits.
        if (gate.waiting > 0) expect(inside).toBeGreaterThanOrEqual(Math.floor(gate.limit));
        expect(gate.limit).toBeGreaterThanOrEqual(1);
      }
      // Nobody waits for ever, even when those inside never leave.
      while (time.ringNext());
      expect(gate.waiting).toBe(0);
      expect(time.armed).toBe(0);
    }),
    { numRuns: 1_000 },
  );
});

test('Conflicts in less than one of five attempts leave the gate open', () => {
  const time = new VirtualAlarms();
  const gate = new ContentionGate(time.clock, time.make);
  for (let n = 0; n < 1_000; n++) {
    gate.enter(false, () => {});
    gate.leave(n % 6 === 0 ? 'conflict' : 'committed');
    expect(gate.limit).toBe(Number.POSITIVE_INFINITY);
  }
});

test('A storm of conflicts closes the gate to one at a time, retries go first, and commits open it again', () => {
  const time = new VirtualAlarms();
  const gate = new ContentionGate(time.clock, time.make);
  for (let n = 0; n < 20; n++) gate.enter(false, () => {});
  for (let n = 0; n < 20; n++) gate.leave('conflict');
  expect(gate.limit).toBe(1);
  const order: string[] = [];
  const enter = (name: string, isRetry: boolean) => gate.enter(isRetry, () => order.push(name));
  enter('first 1', false);
  enter('first 2', false);
  enter('retry 1', true);
  enter('retry 2', true);
  for (let n = 0; n < 3; n++) gate.leave('other');
  expect(order).toEqual(['first 1', 'retry 1', 'retry 2', 'first 2']);
  gate.leave('other');
  for (let n = 0; n < 60; n++) {
    gate.enter(false, () => {});
    gate.leave('committed');
  }
  expect(gate.limit).toBe(Number.POSITIVE_INFINITY);
});

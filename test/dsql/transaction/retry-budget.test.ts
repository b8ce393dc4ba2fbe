// How many retries a budget allows, and to whom.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RetryBudget } from '../../../src/dsql.js';
import { VirtualAlarms } from './virtual-alarms.js';

function makeBudget(options: object) {
  const time = new VirtualAlarms();
  return { time, budget: new RetryBudget(options, time.clock, time.make) };
}

test('A budget never grants more than its burst, its commits and its time have added', () => {
  const steps = fc.array(fc.constantFrom('request', 'request', 'commit', 'wait', 'cancel'), {
    maxLength: 80,
  });
  fc.assert(
    fc.property(steps, fc.constantFrom(0, 0.3, 1), fc.constantFrom(0, 10), (life, ratio, minPerSecond) => {
      const { time, budget } = makeBudget({ ratio, minPerSecond, burst: 3 });
      const began = time.clock.time;
      const order: number[] = [];
      const cancels: (() => void)[] = [];
      let asked = 0;
      let commits = 0;
      for (const step of life) {
        if (step === 'request') {
          const number = asked++;
          const cancel = budget.request(() => order.push(number));
          if (cancel !== undefined) cancels.push(cancel);
        } else if (step === 'commit') {
          commits++;
          budget.committed();
        } else if (step === 'wait') {
          if (!time.ringNext()) time.clock.time += 50;
        } else cancels.pop()?.();
        const added = 3 + ratio * commits + (minPerSecond * (time.clock.time - began)) / 1_000;
        expect(order.length).toBeLessThanOrEqual(added + 1e-3);
        expect(order).toEqual([...order].sort((a, b) => a - b));
        if (budget.waiting > 0) expect(budget.available).toBe(0);
        if (budget.waiting === 0) expect(time.armed).toBe(0);
      }
    }),
    { numRuns: 300 },
  );
});

test('A waiter for the retry budget is served by commits, and by time alone', async () => {
  const { time, budget } = makeBudget({ burst: 1, ratio: 0.5, minPerSecond: 10 });
  const served: string[] = [];
  for (const name of ['a', 'b', 'c']) budget.request(() => served.push(name));
  expect(served).toEqual(['a']);
  budget.committed();
  budget.committed();
  expect(served).toEqual(['a', 'b']);
  await time.advance(100);
  expect(served).toEqual(['a', 'b', 'c']);
});

test('A budget refuses numbers that make no sense', () => {
  expect(() => new RetryBudget({ ratio: -1, burst: 0, ratios: 1 } as object)).toThrow(
    /ratio: .*\n.*burst: .*\n.*ratios: is not an option; did you mean ratio/,
  );
});

// Shares that are found from columns, of what has changed only, are those that are found by visiting everyone.
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { usualPolicy } from '../../../src/coordination/fair/fair-policy.js';
import { MemberColumns } from '../../../src/coordination/fair/member-columns.js';
import { WaitingQueue } from '../../../src/coordination/fair/waiting-queue.js';
import { compareWithSlowShares } from './slow-shares.js';
import { acts, limits, perform, townWith } from './worlds.js';

afterEach(() => vi.restoreAllMocks());

const times = Number(process.env['HEADGATE_WORLDS'] ?? 1);

/** Shares are looked at often, so that there are many looks in a short time. */
const policies = fc.record({
  foresees: fc.boolean(),
  rebalanceInterval: fc.constantFrom(20, 100, 10_000),
  demandWindow: fc.constantFrom(100, 30_000),
});

function sameShares(numRuns: number): number {
  const seen = compareWithSlowShares();
  fc.assert(
    fc.property(limits, policies, policies, acts, (options, policy, later, all) => {
      const town = townWith(options, policy);
      for (const [n, { act: what, thenMs }] of all.entries()) {
        perform(town, what);
        if (n === 9) town.queue.change({ ...usualPolicy, ...later });
        town.run(Math.min(thenMs, 200));
      }
    }),
    { numRuns },
  );
  return seen.looks;
}

test(
  'Shares are in every world those that are found by visiting every user for each budget',
  () => {
    expect(sameShares(1_200 * times)).toBeGreaterThan(5_000 * times);
  },
  240_000 * times,
);

test('Shares that leave out what smaller budgets give are noticed', () => {
  vi.spyOn(MemberColumns.prototype, 'give').mockReturnValue(undefined);
  expect(() => sameShares(300)).toThrow(/Property failed/u);
});

test('Shares whose changes leave members in their old ranks are noticed', () => {
  vi.spyOn(WaitingQueue.prototype, 'rerankMarked').mockReturnValue(undefined);
  expect(() => sameShares(300)).toThrow(/Property failed/u);
});

// A pool that needs a lease of several budgets for each connection: what it is told to give back.
import { expect, test } from 'vitest';
import type { FairHolder } from '../../../src/coordination/fair/fair-holder.js';
import { Holding } from '../../../src/coordination/fair/holding.js';

function pool(): FairHolder & { readonly told: number[] } {
  const told: number[] = [];
  return {
    name: 'pool',
    told,
    demand: 0,
    longestIdleSince: undefined,
    takeDemandPeak: () => 0,
    leasesAvailable: () => {},
    leasesRefused: () => {},
    leasesLost: () => {},
    leasesRecalled: (count) => told.push(count),
  };
}

test('the most that any of its budgets asks for, since a connection that is closed is one less for each', () => {
  const holder = pool();
  const [total, database] = [new Holding(holder), new Holding(holder)];
  total.recall(2);
  database.recall(1);
  database.recall(3);
  expect(holder.told).toEqual([2, 2, 3]);
});

test('what one budget does not need any more, another may need still', () => {
  const holder = pool();
  const [total, database] = [new Holding(holder), new Holding(holder)];
  total.recall(2);
  database.recall(1);
  database.recall(0);
  total.recall(0);
  expect(holder.told).toEqual([2, 2, 2, 0]);
});

test('nothing for a budget of which it holds nothing any more', () => {
  const holder = pool();
  const [total, database] = [new Holding(holder), new Holding(holder)];
  total.recall(2);
  total.end();
  database.recall(1);
  expect(holder.told).toEqual([2, 1]);
});

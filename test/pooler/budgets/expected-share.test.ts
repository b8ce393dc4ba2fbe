// The connections that a pool can expect, before it has asked for any.
import { expect, test } from 'vitest';
import { quotasOf } from '../../../src/pooler/budgets/quotas.js';
import { type BudgetedPool, ServerBudgets } from '../../../src/pooler/budgets/server-budgets.js';
import { configWith } from '../config/config-files.js';

function pool(user: string, database = 'app'): BudgetedPool {
  return { user, database, server: 'db:5432' };
}

function newcomers(count: number, clients: number): (readonly [BudgetedPool, number])[] {
  return Array.from({ length: count }, (_, index) => [pool(`user ${index}`), clients] as const);
}

function budgets(yaml: string): ServerBudgets {
  return new ServerBudgets(quotasOf(configWith(yaml)));
}

const capacity = 'limits: { maxServerConnections: 20 }\n';

test('The share that a pool can expect is unlimited without a limit', () => {
  expect(budgets('').expectedShareOf(pool('app'), newcomers(40, 4))).toBe(Number.POSITIVE_INFINITY);
});

test('The share that a pool can expect is all that there is for a user that is alone', () => {
  expect(budgets(capacity).expectedShareOf(pool('app'), [])).toBe(20);
  expect(budgets(capacity).expectedShareOf(pool('user 0'), newcomers(1, 4))).toBe(20);
});

test('The share that a pool can expect is what others leave over, or its part by weight if that is more', () => {
  expect(budgets(capacity).expectedShareOf(pool('app'), newcomers(3, 1))).toBe(17);
  expect(budgets(capacity).expectedShareOf(pool('app'), newcomers(3, 10))).toBe(5);
  expect(budgets(capacity).expectedShareOf(pool('app'), newcomers(39, 4))).toBe(0.5);
  const weighted = `${capacity}fairShares: { weights: { app: 3 } }\n`;
  expect(budgets(weighted).expectedShareOf(pool('app'), newcomers(3, 10))).toBe(10);
});

test.each([
  ['maxDbConnections: 6', 6],
  ['maxDbConnections: 6, maxUserConnections: 2', 2],
  ['maxDbConnections: 60', 20],
])(
  'The share that a pool can expect is the smallest of all budgets that count the connection: %s',
  (limits, expected) => {
    const shared = budgets(`limits: { maxServerConnections: 20, ${limits} }\n`);
    expect(shared.expectedShareOf(pool('app'), [])).toBe(expected);
  },
);

test('The share that a pool can expect is not touched by newcomers in other databases where only the database has a limit', () => {
  const elsewhere = [[pool('someone', 'other'), 50]] as const;
  expect(budgets('limits: { maxDbConnections: 6 }\n').expectedShareOf(pool('app'), elsewhere)).toBe(6);
});

test('The share that a pool can expect is divided between the databases in which a user needs something', () => {
  const shared = budgets(capacity);
  const elsewhere = ['one', 'two', 'three'].map((database) => [pool('app', database), 1] as const);
  expect(shared.expectedShareOf(pool('app', 'four'), elsewhere)).toBe(5);
  for (const [idle] of elsewhere) shared.leasesFor(idle);
  expect(shared.expectedShareOf(pool('app', 'four'), [])).toBe(20);
});

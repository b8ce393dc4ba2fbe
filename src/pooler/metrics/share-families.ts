/** Metrics of budgets and shares. */
import { shareReasons } from '../../core/share-reasons.js';
import type { Sample } from '../../observe/metric-family.js';
import type { BudgetStats } from '../budgets/server-budgets.js';
import type { ShareLog } from '../budgets/share-log.js';
import { head, type PoolerFamily, sample, several } from './pooler-families.js';

export interface ShareReading {
  /** Limit of budgets, and of users of each, with series of their own. */
  readonly most: number;
  readonly budgets: readonly BudgetStats[];
  readonly changes: ShareLog['counts'];
}

type UserStats = BudgetStats['users'][number];

export const shareFamilies: readonly PoolerFamily<ShareReading>[] = [
  ofBudget('gauge', 'budget_capacity', 'Server connections that a budget has.', ({ capacity }) => capacity),
  ofBudget('gauge', 'budget_held', 'Those that are held; never more than the capacity.', ({ held }) => held),
  ofBudget('gauge', 'budget_waiting', 'Pools that wait for one.', ({ waiting }) => waiting),
  ofBudget(
    'counter',
    'budget_exceeded_total',
    'Leases granted beyond the capacity; always 0.',
    ({ exceeded }) => exceeded,
  ),
  ofBudget(
    'counter',
    'budget_recalls_total',
    'Connections that were asked back for others.',
    ({ recalls }) => recalls,
  ),
  ofUser('user_share', 'What fairness gives a user of a budget.', ({ share }) => share),
  ofUser('user_demand', 'What the user needed at most of late.', ({ demand }) => demand),
  ofUser('user_held', 'What the user holds.', ({ held }) => held),
  ofUser('user_wait_seconds', 'How long the user has waited for one more.', (of) => of.waitedMs / 1_000),
  several(
    'counter',
    'share_changes_total',
    'Shares that changed, by the reason.',
    'reason',
    shareReasons,
    ({ changes }) => Object.fromEntries(changes),
  ),
];

function ofBudget(
  type: 'gauge' | 'counter',
  name: string,
  help: string,
  read: (budget: BudgetStats) => number,
): PoolerFamily<ShareReading> {
  return {
    ...head(type, name, help),
    labels: ['budget'],
    words: undefined,
    read: ({ budgets, most }) =>
      budgets.slice(0, most).map((budget) => sample({ budget: budget.budget }, read(budget))),
  };
}

function ofUser(name: string, help: string, read: (user: UserStats) => number): PoolerFamily<ShareReading> {
  return {
    ...head('gauge', name, help),
    labels: ['budget', 'user'],
    words: undefined,
    read: ({ budgets, most }) =>
      budgets
        .slice(0, most)
        .flatMap(({ budget, users }): Sample[] =>
          users.slice(0, most).map((user) => sample({ budget, user: user.user }, read(user))),
        ),
  };
}

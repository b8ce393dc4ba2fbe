/** Metrics of budgets and shares. */
import type { BudgetStats } from '../budgets/server-budgets.js';
import type { ShareLog } from '../budgets/share-log.js';
import { FamilyReaders, type PoolerFamily, sample } from './family-readers.js';
import { shareMetricTable } from './process-metric-table.js';

export interface ShareReading {
  /** Limit of budgets, and of users of each, with series of their own. */
  readonly most: number;
  readonly budgets: readonly BudgetStats[];
  readonly changes: ShareLog['counts'];
}

type UserStats = BudgetStats['users'][number];
type ShareName = keyof typeof shareMetricTable;

const ofShares = new FamilyReaders(shareMetricTable);

export const shareFamilies: readonly PoolerFamily<ShareReading>[] = [
  ofBudget('headgate_pooler_budget_capacity', ({ capacity }) => capacity),
  ofBudget('headgate_pooler_budget_held', ({ held }) => held),
  ofBudget('headgate_pooler_budget_waiting', ({ waiting }) => waiting),
  ofBudget('headgate_pooler_budget_exceeded_total', ({ exceeded }) => exceeded),
  ofBudget('headgate_pooler_budget_recalls_total', ({ recalls }) => recalls),
  ofUser('headgate_pooler_user_share', ({ share }) => share),
  ofUser('headgate_pooler_user_demand', ({ demand }) => demand),
  ofUser('headgate_pooler_user_held', ({ held }) => held),
  ofUser('headgate_pooler_user_wait_seconds', (of) => of.waitedMs / 1_000),
  ofShares.several('headgate_pooler_share_changes_total', ({ changes }) => Object.fromEntries(changes)),
];

function ofBudget(name: ShareName, read: (budget: BudgetStats) => number): PoolerFamily<ShareReading> {
  return ofShares.samples(name, ({ budgets, most }) =>
    budgets.slice(0, most).map((budget) => sample({ budget: budget.budget }, read(budget))),
  );
}

function ofUser(name: ShareName, read: (user: UserStats) => number): PoolerFamily<ShareReading> {
  return ofShares.samples(name, ({ budgets, most }) =>
    budgets
      .slice(0, most)
      .flatMap(({ budget, users }) =>
        users.slice(0, most).map((user) => sample({ budget, user: user.user }, read(user))),
      ),
  );
}

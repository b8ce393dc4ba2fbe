/** Estimates how many leases of a budget a user would get if it asked for all of them. */
import type { FairBudget } from '../../coordination/fair/fair-budget.js';

/** A user of a budget. */
export interface Claim {
  readonly user: string;
  readonly weight: number;
  /** Demand known from outside the budget. */
  readonly demand: number;
}

/**
 * At least the user's part by weight among those with demand, or what the others leave. `others`: users whose demand the budget
 * may not have seen yet; the higher demand counts for a user in both.
 */
export function expectedShare(
  { capacity, users }: Pick<FairBudget, 'capacity' | 'users'>,
  own: Omit<Claim, 'demand'>,
  others: Iterable<Claim>,
): number {
  const claims = new Map<string, { weight: number; demand: number }>();
  for (const { name, terms, demand } of users.values())
    if (demand > 0) claims.set(name, { weight: terms.weight, demand });
  for (const { user, weight, demand } of others) {
    const known = claims.get(user)?.demand ?? 0;
    if (demand > known) claims.set(user, { weight, demand });
  }
  claims.delete(own.user);
  let weights = own.weight;
  let left = capacity;
  for (const { weight, demand } of claims.values()) {
    weights += weight;
    left -= demand;
  }
  return Math.max(left, (capacity * own.weight) / weights);
}

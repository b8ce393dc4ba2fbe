/** Estimates how many leases of a budget one of its users would get, were it to ask for all. */
import type { FairBudget } from '../../coordination/fair/fair-budget.js';

/** A user as a budget knows it. */
export interface Claim {
  readonly user: string;
  readonly weight: number;
  /** What is known of its demand beside what the budget has seen. */
  readonly demand: number;
}

/**
 * At least its part by weight of those who need something, or what they leave over. `others`: users whose demand the budget may not have seen
 * yet; of a user that is in both, the higher demand counts.
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

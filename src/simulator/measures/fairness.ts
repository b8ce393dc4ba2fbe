/** How fairly connection time was shared between tenants, judged by what an even-handed share would have been. */

/** Asked for and given to one tenant, in any one unit. */
export interface Share {
  readonly asked: number;
  readonly given: number;
}

/**
 * Jain's index of what each tenant was given in proportion to its fair share: 1 when all have theirs, and 1/n when one
 * of n has everything. The fair share is max-min: no tenant gets more than it asked for, and who asks for much does not
 * take it from those who ask for little.
 */
export function jainIndex(shares: readonly Share[]): number {
  const asking = shares.filter(({ asked }) => asked > 0);
  const given = asking.reduce((sum, share) => sum + share.given, 0);
  if (asking.length === 0) return 1;
  // No tenant was given anything: none has more than another.
  if (given <= 0) return 1;
  const fair = maxMinShares(
    asking.map(({ asked }) => asked),
    given,
  );
  let sum = 0;
  let squares = 0;
  for (const [index, share] of asking.entries()) {
    const part = share.given / (fair[index] as number);
    sum += part;
    squares += part * part;
  }
  return (sum * sum) / (asking.length * squares);
}

/** Jain's index of the connection time of tenants. */
export function jainOf(tenants: readonly { readonly askedMs: number; readonly givenMs: number }[]): number {
  return jainIndex(tenants.map(({ askedMs, givenMs }) => ({ asked: askedMs, given: givenMs })));
}

/** Divides `total` so that no tenant has more than it asked for, and those who have less than that have the same. */
export function maxMinShares(asked: readonly number[], total: number): number[] {
  const order = asked.map((_, index) => index).sort((a, b) => (asked[a] as number) - (asked[b] as number));
  const shares = new Array<number>(asked.length).fill(0);
  let left = total;
  for (const [position, index] of order.entries()) {
    const share = Math.min(asked[index] as number, left / (order.length - position));
    shares[index] = share;
    left -= share;
  }
  return shares;
}

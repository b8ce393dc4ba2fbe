/** How much each of many may have of what is not enough for all: nobody has more than the level, but who wants less. */

/**
 * The highest whole level with which all that is wanted, cut off at it, fits within the limit; Infinity when all of it
 * fits. It is never below 1, though that may not be enough for all: the limit holds in any case.
 */
export function fairLevel(wanted: readonly number[], limit: number): number {
  const ascending = wanted.filter((count) => count > 0).sort((one, other) => one - other);
  let left = limit;
  for (const [index, count] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (count > share) return Math.max(1, share);
    left -= count;
  }
  return Number.POSITIVE_INFINITY;
}

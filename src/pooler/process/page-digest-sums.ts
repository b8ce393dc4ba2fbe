/** Sums of digests: adds up counts within a process and over processes. */

export function addCounts(to: number[], counts: readonly number[]): void {
  for (const [i, count] of counts.entries()) to[i] = (to[i] ?? 0) + count;
}

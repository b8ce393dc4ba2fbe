/** The known name that a typing mistake most likely meant. */

/** The candidate with the fewest edits away from `name`, if that is close enough to be a typing mistake. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(name.length - 1, Math.max(2, Math.floor(name.length / 3))) + 1;
  for (const candidate of candidates) {
    // At least this many letters are missing or too many; a long text costs nothing.
    if (Math.abs(name.length - candidate.length) >= bestDistance) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = (above[column - 1] as number) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(
        Math.min(substitution, (above[column] as number) + 1, (current[column - 1] as number) + 1),
      );
    }
    above = current;
  }
  return above[b.length] as number;
}

/** Follows items from one list to the next, when most stay in order, some leave, and newcomers are last. */

/** For each item its place in the previous list; -1 for a new item. No item is twice in a list. */
export function formerPlaces<T>(before: readonly T[], now: readonly T[]): Int32Array {
  const from = new Int32Array(now.length);
  const passed = new Map<T, number>();
  let next = 0;
  for (let place = 0; place < now.length; place++) {
    const item = now[place] as T;
    let found = -1;
    for (; found === -1 && next < before.length; next++) {
      const former = before[next] as T;
      if (former === item) found = next;
      else passed.set(former, next);
    }
    from[place] = found === -1 ? (passed.get(item) ?? -1) : found;
  }
  return from;
}

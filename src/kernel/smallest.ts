/** Finds the smallest items of many without putting all of them in order. */

/**
 * Moves the `count` smallest items to the front, in no particular order, in linear time on average. No two items may be
 * equal.
 */
export function smallest<T>(items: T[], count: number, isLess: (a: T, b: T) => boolean): void {
  let from = 0;
  let to = items.length - 1;
  while (from < to && count > from && count <= to) {
    const pivot = items[(from + to) >> 1] as T;
    let left = from;
    let right = to;
    while (left <= right) {
      while (isLess(items[left] as T, pivot)) left++;
      while (isLess(pivot, items[right] as T)) right--;
      if (left > right) break;
      const item = items[left] as T;
      items[left++] = items[right] as T;
      items[right--] = item;
    }
    if (count <= right) to = right;
    else if (count > left) from = left;
    else return;
  }
}

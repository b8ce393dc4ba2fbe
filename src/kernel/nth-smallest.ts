/** Finds the n-th smallest of many numbers without putting all of them in order. */

/** Reorders the first `count` numbers. `nth` is from 1 to `count`. In linear time on average; equal numbers are fine. */
export function nthSmallest(numbers: Float64Array | Int32Array, count: number, nth: number): number {
  const wanted = nth - 1;
  let from = 0;
  let to = count - 1;
  while (from < to) {
    const pivot = numbers[(from + to) >> 1] as number;
    let left = from;
    let right = to;
    while (left <= right) {
      while ((numbers[left] as number) < pivot) left++;
      while ((numbers[right] as number) > pivot) right--;
      if (left > right) break;
      const number = numbers[left] as number;
      numbers[left++] = numbers[right] as number;
      numbers[right--] = number;
    }
    if (wanted <= right) to = right;
    else if (wanted >= left) from = left;
    else break;
  }
  return numbers[wanted] as number;
}

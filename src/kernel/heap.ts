/** A binary heap with the smallest key on top. Items know their place, so any of them can leave in O(log n). */

export interface HeapItem {
  /** The order of the heap. Must not change while the item is in the heap. */
  heapKey: number;
  /** Kept by the heap; -1 while the item is in none. */
  heapIndex: number;
}

export class Heap<T extends HeapItem> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#raise(item, this.#items.length - 1);
  }

  /** Does nothing if the item is in no heap. */
  remove(item: T): void {
    const index = item.heapIndex;
    if (index < 0) return;
    item.heapIndex = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    // The last item fills the empty place, then moves up or down from there.
    if (index > 0 && last.heapKey < (this.#items[(index - 1) >> 1] as T).heapKey) this.#raise(last, index);
    else this.#sink(last, index);
  }

  #raise(item: T, from: number): void {
    const items = this.#items;
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = items[parentIndex] as T;
      if (parent.heapKey <= item.heapKey) break;
      items[index] = parent;
      parent.heapIndex = index;
      index = parentIndex;
    }
    items[index] = item;
    item.heapIndex = index;
  }

  #sink(item: T, from: number): void {
    const items = this.#items;
    const size = items.length;
    let index = from;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= size) break;
      let child = items[childIndex] as T;
      if (childIndex + 1 < size) {
        const right = items[childIndex + 1] as T;
        if (right.heapKey < child.heapKey) {
          child = right;
          childIndex++;
        }
      }
      if (item.heapKey <= child.heapKey) break;
      items[index] = child;
      child.heapIndex = index;
      index = childIndex;
    }
    items[index] = item;
    item.heapIndex = index;
  }
}

/**
 * A first-in-first-out queue. `Array.shift` moves all other items once an array has some ten thousand, so a party that can make a
 * queue that long could make each step of it slow.
 */
export class Fifo<T> {
  #items: T[] = [];
  /** Items before this place were taken. At most half of the array, or `slack`. */
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** The item that was pushed first; undefined where there is none. */
  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head++];
    if (this.#head === this.#items.length) this.clear();
    else if (this.#head >= slack && 2 * this.#head >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}

const slack = 64;

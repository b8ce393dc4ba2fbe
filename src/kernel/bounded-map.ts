/** A map that holds a limited number of things, and forgets what was not used for longest. */

export class BoundedMap<Key, Value> {
  readonly #largest: number;
  /** Least recently used first. */
  readonly #entries = new Map<Key, Value>();

  constructor(largest: number) {
    this.#largest = largest;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#largest) this.#entries.delete(this.#entries.keys().next().value as Key);
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}

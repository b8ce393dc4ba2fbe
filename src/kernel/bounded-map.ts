/** A map with a limited number of entries, or of bytes, which forgets the least recently used ones. */

/** The limit for all entries together, and the size of one. */
export interface EntrySizes<Key, Value> {
  readonly bytes: number;
  readonly of: (key: Key, value: Value) => number;
}

export class BoundedMap<Key, Value> {
  readonly #largest: number;
  readonly #sizes: EntrySizes<Key, Value> | undefined;
  /** Least recently used first. */
  readonly #entries = new Map<Key, Value>();
  #bytes = 0;

  constructor(largest: number, sizes?: EntrySizes<Key, Value>) {
    this.#largest = largest;
    this.#sizes = sizes;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: Key, value: Value): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#bytes += this.#sizes?.of(key, value) ?? 0;
    while (this.#isTooLarge) this.delete(this.#entries.keys().next().value as Key);
  }

  get #isTooLarge(): boolean {
    return this.#entries.size > this.#largest || this.#bytes > (this.#sizes?.bytes ?? 0);
  }

  delete(key: Key): void {
    const value = this.#entries.get(key);
    if (value === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= this.#sizes?.of(key, value) ?? 0;
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }
}

/** The few items of many that come first, without all of them being sorted. */

/** The items with the smallest keys, in their order. */
export class FirstFew<Item> {
  readonly #most: number;
  readonly #keyOf: (item: Item) => number;
  readonly #kept: { readonly key: number; readonly item: Item }[] = [];

  constructor(most: number, keyOf: (item: Item) => number) {
    this.#most = most;
    this.#keyOf = keyOf;
  }

  add(item: Item): void {
    const key = this.#keyOf(item);
    const kept = this.#kept;
    if (kept.length === this.#most && key >= (kept.at(-1)?.key ?? 0)) return;
    let at = kept.length;
    while (at > 0 && key < (kept[at - 1]?.key ?? 0)) at--;
    kept.splice(at, 0, { key, item });
    if (kept.length > this.#most) kept.pop();
  }

  get list(): readonly Item[] {
    return this.#kept.map(({ item }) => item);
  }
}

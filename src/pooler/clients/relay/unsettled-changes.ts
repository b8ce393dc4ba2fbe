/** Changes of settings that are open until the transaction is over or the server is ready. Most sessions never have any. */
export class UnsettledChanges<Values> {
  /** Values of settings, by name, before the transaction changed them. A rollback restores them. */
  readonly before = new Map<string, Values>();
  /** Bytes of names and values in `before`. */
  #size = 0;
  /** A reported setting was changed in the transaction. If that is undone, the server reports it. */
  hasFollowed = false;
  /** Something was rolled back; whether that was the whole transaction is unknown. */
  isUnclear = false;
  /** Until the server is ready: names that are reset, and names that were set behind a RESET ALL. */
  readonly #resetting = new Set<string>();
  #resetsAll = false;
  readonly #setBehind = new Set<string>();

  get hasChanged(): boolean {
    return this.before.size > 0 || this.hasFollowed;
  }

  get size(): number {
    return this.#size;
  }

  /** Keeps the values of a setting before its first change. `size`: bytes of the values. */
  keep(name: string, values: Values, size: number): void {
    if (this.before.has(name)) return;
    this.before.set(name, values);
    this.#size += name.length + size;
  }

  /** The changes can't be undone any more. */
  forget(): void {
    this.before.clear();
    this.#size = 0;
  }

  /** A reset is pending: the default that the server is about to report is not what the client wants. */
  isResetting(name: string): boolean {
    return this.#resetting.has(name) || (this.#resetsAll && !this.#setBehind.has(name));
  }

  reset(name: string): void {
    this.#resetting.add(name);
    this.#setBehind.delete(name);
  }

  set(name: string): void {
    this.#resetting.delete(name);
    this.#setBehind.add(name);
  }

  resetAll(): void {
    this.goOn();
    this.#resetsAll = true;
  }

  /** The server is ready, in the middle of a transaction. */
  goOn(): void {
    this.#resetting.clear();
    this.#setBehind.clear();
    this.#resetsAll = false;
  }
}

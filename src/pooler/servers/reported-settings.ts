/** Settings that a server reports. Their size is limited, since a server may report anything as often as it likes. */

export class ReportedSettings {
  readonly #most: number;
  readonly #values: Map<string, string>;
  #size = 0;

  constructor(most: number, values: Iterable<readonly [string, string]> = []) {
    this.#most = most;
    this.#values = new Map(values);
    for (const [name, value] of this.#values) this.#size += name.length + value.length;
  }

  get all(): ReadonlyMap<string, string> {
    return this.#values;
  }

  /** Bytes of names and values. */
  get size(): number {
    return this.#size;
  }

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  /** Notes a reported setting. False, with nothing changed, where the total would exceed the limit. */
  report(name: string, value: string): boolean {
    const before = this.#values.get(name);
    const size = this.#size + value.length - (before === undefined ? -name.length : before.length);
    if (size > this.#most && size > this.#size) return false;
    this.#size = size;
    this.#values.set(name, value);
    return true;
  }
}

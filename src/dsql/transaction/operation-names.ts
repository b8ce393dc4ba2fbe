/** Names of operations as labels of metrics: a set that does not grow with what callers pass. */

/** Stands for every name beyond the limit. */
const otherOperation = 'other';
/** Operation of a transaction without a name. */
const unnamedOperation = 'transaction';

const longestName = 100;

export class OperationNames {
  readonly #names = new Set<string>();
  readonly #limit: number;

  constructor(limit = 100) {
    this.#limit = limit;
  }

  /** The name itself, as long as there are few; names that are known stay known. */
  label(name: string | undefined): string {
    if (name === undefined || name === '') return unnamedOperation;
    const short = name.slice(0, longestName);
    if (this.#names.has(short)) return short;
    if (this.#names.size >= this.#limit) return otherOperation;
    this.#names.add(short);
    return short;
  }
}

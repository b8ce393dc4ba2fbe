/** A table of DynamoDB as the protocol sees it, in memory: one change after the other, each made whole or not at all. */
import type { Change, Finding, Item, Test, Value } from '../../../coordination/dynamodb/table.js';

/** Told of every change. */
export interface TableListener {
  changed(key: string, before: Item | undefined, after: Item | undefined): void;
  /** Changes that belong together have been made. */
  applied(): void;
}

export class MemoryTable {
  readonly #items = new Map<string, Item>();
  readonly #listener: TableListener | undefined;
  /** Changes that took effect: what DynamoDB would bill as writes. */
  writes = 0;

  constructor(listener?: TableListener) {
    this.#listener = listener;
  }

  get(key: string): Item | undefined {
    return this.#items.get(key);
  }

  list(prefix: string): Item[] {
    return [...this.#items.values()].filter(({ pk }) => String(pk).startsWith(prefix));
  }

  /** The tests that did not hold; undefined when all changes were made. */
  apply(changes: readonly Change[]): Finding[] | undefined {
    const findings = changes.map((change) => this.#find(change));
    if (findings.some(({ isRefused }) => isRefused)) return findings;
    for (const change of changes) this.#make(change);
    this.writes += changes.length;
    this.#listener?.applied();
    return undefined;
  }

  #find({ key, when }: Change): Finding {
    const item = this.#items.get(key);
    const holds = when === undefined || when.some((tests) => tests.every((test) => isSo(item, test)));
    return holds ? { isRefused: false, item: undefined } : { isRefused: true, item };
  }

  #make({ key, set, add = {}, isRemoval }: Change): void {
    const before = this.#items.get(key);
    if (isRemoval) {
      this.#items.delete(key);
      this.#listener?.changed(key, before, undefined);
      return;
    }
    const item: Record<string, Value> = { ...before, pk: key, ...set };
    for (const [name, by] of Object.entries(add)) item[name] = Number(item[name] ?? 0) + by;
    this.#items.set(key, item);
    this.#listener?.changed(key, before, item);
  }
}

function isSo(item: Item | undefined, test: Test): boolean {
  const value = item?.[test.attribute];
  if (test.is === 'missing') return value === undefined;
  const { than } = test;
  if (value === undefined || typeof value !== typeof than) return false;
  switch (test.is) {
    case '=':
      return value === than;
    case '<':
      return value < than;
    case '<=':
      return value <= than;
    case '>':
      return value > than;
    case '>=':
      return value >= than;
  }
}

/** The leases that one holder has of one budget, and how many of them are asked back. */
import type { FairHolder } from './fair-holder.js';

/** A holder may need a lease of several budgets for each connection: it has a holding in every one of them. */
const holdingsOf = new WeakMap<FairHolder, Set<Holding>>();

export class Holding {
  readonly holder: FairHolder;
  held = 0;
  /** Of those held: asked back, and not back yet. */
  recalled = 0;

  constructor(holder: FairHolder) {
    this.holder = holder;
    const holdings = holdingsOf.get(holder) ?? new Set();
    holdingsOf.set(holder, holdings);
    holdings.add(this);
  }

  /** How many will be left when what was asked back has come. */
  get kept(): number {
    return this.held - this.recalled;
  }

  /**
   * Asks so many back, in all. A connection that is closed is one less for every budget, so the holder is told the largest of
   * what they ask for.
   */
  recall(count: number): void {
    this.recalled = count;
    let most = count;
    for (const { recalled } of holdingsOf.get(this.holder) ?? []) most = Math.max(most, recalled);
    this.holder.leasesRecalled(most);
  }

  /** Nothing is held any more. */
  end(): void {
    const holdings = holdingsOf.get(this.holder);
    holdings?.delete(this);
    if (holdings?.size === 0) holdingsOf.delete(this.holder);
  }
}

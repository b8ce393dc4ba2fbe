/**
 * The in-process answer to "may I hold one more?": one budget that the pools of a process share.
 *
 * Answers at once and has no clock. Requests that can't be granted wait, and are granted in order as leases are
 * released. No holder is called from inside its own call: a holder that releases while it waits asks again, or gets the
 * lease with the next call of another holder.
 */
import type { LeaseAnswer, LeaseHolder, Leases } from '../core/leases.js';
import { OptionReader } from '../kernel/option-reader.js';
import { LeaseLimitError } from './errors.js';
import { type HolderStats, isCount, LeaseBook } from './lease-book.js';
import { tell } from './tell.js';
import { grantTo, WaitingHolders } from './waiting-holders.js';

export interface LocalLeasesOptions {
  /** Number of leases. */
  readonly limit: number;
}

export interface LocalLeasesStats {
  readonly limit: number;
  /** Never above `limit`, except while a lowered limit is being reached. */
  readonly held: number;
  /** Holders that wait for leases. */
  readonly waiting: number;
  /** Leases released by pools that did not hold them. Above 0, a holder has a bug. */
  readonly strayReleases: number;
  /** Holders with leases first, then those that only wait. */
  readonly byHolder: readonly HolderStats[];
}

/**
 * One budget of connections for several pools of this process.
 *
 * @example
 * ```ts
 * import { localLeases, Pool } from 'headgate';
 *
 * const leases = localLeases({ limit: 50 }); // never more than 50 over all pools
 * const orders = new Pool({ max: 40, leases });
 * const reports = new Pool({ max: 40, leases });
 * ```
 */
export function localLeases(options: LocalLeasesOptions): LocalLeases {
  return new LocalLeases(options);
}

export class LocalLeases implements Leases {
  #limit: number;
  readonly #book = new LeaseBook();
  readonly #waiting = new WaitingHolders();
  #isSettling = false;

  constructor(options: LocalLeasesOptions) {
    const read = new OptionReader(options);
    this.#limit = read.integer('limit', 0, { min: 0 });
    if (options.limit === undefined)
      read.problem('limit', 'is missing: it must be a whole number of at least 0');
    read.refuseUnknown();
    read.throwIfAnyProblem();
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    if (!isCount(count)) return new RangeError(`One can't ask for ${count} leases.`);
    // Waiting requests for free leases go first.
    this.#settle(holder);
    if (count > this.#free || !this.#waiting.mayTake(holder)) {
      this.#waiting.add(holder, count);
      return { reason: new LeaseLimitError(holder.name, count, this.#book.held, this.#limit) };
    }
    this.#waiting.remove(holder);
    this.#book.grant(count, holder);
    return 'granted';
  }

  release(count: number, holder: LeaseHolder): void {
    this.#book.giveBack(count, holder);
    this.#settle(holder);
  }

  /**
   * Changes the limit. Leases above it are taken from the largest holders, one at a time; among equals, from the one
   * that got a lease last. Their connections are closed, those in use when they are released.
   */
  resize(limit: number): void {
    if (!Number.isSafeInteger(limit) || limit < 0) {
      throw new RangeError(`A limit is a whole number of at least 0, not ${limit}.`);
    }
    this.#limit = limit;
    this.#settle(undefined);
  }

  stats(): LocalLeasesStats {
    return {
      limit: this.#limit,
      held: this.#book.held,
      waiting: this.#waiting.size,
      strayReleases: this.#book.strays,
      byHolder: this.#book.stats(this.#waiting),
    };
  }

  /** Below 0 while a lowered limit is being reached. */
  get #free(): number {
    return this.#limit - this.#book.held;
  }

  /** Takes leases above the limit and grants free ones, until neither changes anything. */
  #settle(caller: LeaseHolder | undefined): void {
    if (this.#isSettling) return;
    this.#isSettling = true;
    const grant = (count: number, holder: LeaseHolder): number => grantTo(holder, count, this.#book);
    do {
      this.#waiting.serve({ free: () => this.#free, caller, grant });
    } while (this.#takeExcess(caller));
    this.#isSettling = false;
  }

  /** False if there is no excess, or if the caller holds all of it and can't be called back now. */
  #takeExcess(caller: LeaseHolder | undefined): boolean {
    if (this.#free >= 0) return false;
    const losses = shareLosses(this.#book, -this.#free, caller);
    for (const [holder, planned] of losses) {
      // Holders told before may have released leases, which reduces the excess.
      const count = this.#book.take(Math.max(0, Math.min(planned, -this.#free)), holder);
      if (count > 0) tell(() => holder.leasesLost(count));
    }
    return losses.size > 0;
  }
}

/** Takes leases from the largest holders, so that all end up as equal as possible. */
function shareLosses(
  book: LeaseBook,
  excess: number,
  except: LeaseHolder | undefined,
): ReadonlyMap<LeaseHolder, number> {
  const losses = new Map<LeaseHolder, number>();
  const holders = book.latestFirst().filter((holder) => holder !== except);
  for (let n = 0; n < excess; n++) {
    let largest: LeaseHolder | undefined;
    let most = 0;
    for (const holder of holders) {
      const left = book.heldBy(holder) - (losses.get(holder) ?? 0);
      if (left <= most) continue;
      largest = holder;
      most = left;
    }
    if (largest === undefined) break;
    losses.set(largest, (losses.get(largest) ?? 0) + 1);
  }
  return losses;
}

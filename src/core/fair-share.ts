/**
 * Shares one budget among the users named in each call. What is shared makes no difference; each budget has its own
 * allocator. For many users that are mostly the same, `share-allocator.ts` does it without an object for each.
 */
import { OptionReader } from '../kernel/option-reader.js';
import { formerPlaces } from './former-places.js';
import { ShareAllocator } from './share-allocator.js';
import {
  checkCapacity,
  checkUser,
  type ShareRequest,
  type ShareResult,
  type ShareUser,
} from './share-request.js';

export type { ShareUser };

export interface FairShareOptions {
  /** Capacity kept free for newcomers, while no user needs it. Default 0. */
  readonly headroom?: number | undefined;
  /** Rounds in which a share must be too large before it shrinks, while no other user needs it. 1: at once. Default 3. */
  readonly shrinkAfter?: number | undefined;
}

/** Rounds that a share may be too large, unless another number is given. */
export const usualShrinkAfter = 3;

/** Shares out a budget again and again: of 100, users that need 200 and 20 get 80 and 20. */
export class FairShareAllocator {
  readonly #allocator: ShareAllocator;

  constructor(options: FairShareOptions = {}) {
    const read = new OptionReader(options);
    const headroom = read.integer('headroom', 0, { min: 0 });
    const shrinkAfter = read.integer('shrinkAfter', usualShrinkAfter, { min: 1 });
    read.refuseUnknown();
    read.throwIfAnyProblem();
    this.#allocator = new ShareAllocator(headroom, shrinkAfter);
  }

  allocate(request: ShareRequest): ShareResult {
    const { capacity, users, isRound = true } = request;
    checkCapacity(capacity);
    for (const user of users) checkUser(user);
    this.#name(users);
    for (const [place, user] of users.entries()) this.#claim(place, user);
    this.#allocator.shareOut(capacity, isRound);
    const { book, changes, sums } = this.#allocator;
    const { leftOver, unmet, queued, promised, given } = sums;
    return {
      shares: new Map(book.keys.map((key, place) => [key, book.shares[place] as number])),
      changes: changes.map(({ place, from, to, reason }) => ({
        key: book.keys[place] as string,
        from,
        to,
        reason,
      })),
      leftOver,
      unmet,
      queued,
      brokenPromise: given < promised ? { promised, given } : undefined,
    };
  }

  #name(users: readonly ShareUser[]): void {
    const { book } = this.#allocator;
    if (book.size === users.length && users.every(({ key }, place) => key === book.keys[place])) return;
    const keys = users.map(({ key }) => key);
    const seen = new Set<string>();
    for (const key of keys) {
      if (seen.has(key)) throw new RangeError(`User '${key}' is named twice.`);
      seen.add(key);
    }
    book.arrange(keys, formerPlaces(book.keys, keys));
  }

  #claim(place: number, user: ShareUser): void {
    const { minimum = 0, maximum = Infinity, waitingSince = Infinity } = user;
    const { book } = this.#allocator;
    book.demands[place] = user.demand;
    book.weights[place] = user.weight;
    book.minimums[place] = minimum;
    book.maximums[place] = maximum;
    book.waitingSince[place] = waitingSince;
    book.isActive[place] = user.isActive ? 1 : 0;
    book.had[place] = user.share ?? (book.shares[place] as number);
  }
}

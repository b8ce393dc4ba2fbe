/**
 * Shares one budget out among many users: weighted max-min fairness in whole numbers that add up to the budget. What is
 * shared makes no difference; there is one allocator for each thing that is.
 *
 * `share-order.ts` says who comes first. This file remembers what was given the last time: a share that is too large by
 * now is left with its user until someone needs it, or until it has been too large for `shrinkAfter` rounds. Then it
 * falls to the largest of what was fair in those rounds. Growing waits for nothing.
 */
import { OptionReader } from '../kernel/option-reader.js';
import { Claims } from './share-claims.js';
import { Memory } from './share-memory.js';
import { ShareOrder } from './share-order.js';
import { reasonForShare } from './share-reasons.js';
import {
  checkCapacity,
  checkUser,
  type ShareChange,
  type ShareRequest,
  type ShareResult,
  type ShareUser,
} from './share-request.js';
import { inTurn, sendToTheBack, standInLine } from './share-turns.js';

export type { ShareChange, ShareUser };

export interface FairShareOptions {
  /** So much is kept free for newcomers, as long as nobody needs it. Default 0. */
  readonly headroom?: number | undefined;
  /** A share that nobody else needs shrinks once it has been too large for so many rounds. 1: at once. Default 3. */
  readonly shrinkAfter?: number | undefined;
}

/** Shares out a budget, again and again: 100 among one who needs 200 and one who needs 20 are 80 and 20. */
export class FairShareAllocator {
  readonly #headroom: number;
  readonly #shrinkAfter: number;
  readonly #order = new ShareOrder();
  readonly #memories = new Map<string, Memory>();
  #calls = 0;
  #rounds = 0;
  #capacity = 0;
  /** The active users of this call, in the same places as in the columns. */
  readonly #claims = new Claims();
  readonly #users: ShareUser[] = [];
  readonly #known: Memory[] = [];
  /** Of all users of this call, in the order of the request. */
  readonly #named: Memory[] = [];

  constructor(options: FairShareOptions = {}) {
    const read = new OptionReader(options);
    this.#headroom = read.integer('headroom', 0, { min: 0 });
    this.#shrinkAfter = read.integer('shrinkAfter', 3, { min: 1 });
    read.refuseUnknown();
    read.throwIfAnyProblem();
  }

  allocate(request: ShareRequest): ShareResult {
    const { capacity, users, isRound = true } = request;
    checkCapacity(capacity);
    for (const user of users) checkUser(user);
    this.#gather(users);
    if (isRound) this.#rounds++;
    let turns: number[] | undefined;
    const turnOrder = (): number[] => {
      turns ??= inTurn(this.#users, this.#known, isRound);
      return turns;
    };
    let leftOver = this.#order.share(this.#claims, capacity, this.#headroom, turnOrder);
    if (this.#decideKeeps(isRound) && this.#order.hadSpare)
      leftOver = this.#order.share(this.#claims, capacity, this.#headroom, turnOrder);
    const result = this.#conclude(users, capacity, leftOver);
    if (turns !== undefined) sendToTheBack(turns, this.#known, this.#rounds);
    return result;
  }

  /** Finds out who takes part, and forgets who is not named any more. */
  #gather(users: readonly ShareUser[]): void {
    this.#calls++;
    this.#claims.reset(users.length);
    this.#users.length = 0;
    this.#known.length = 0;
    this.#named.length = 0;
    for (const user of users) {
      const memory = this.#remember(user.key);
      this.#named.push(memory);
      if (!user.isActive) continue;
      if (!memory.isActive) {
        standInLine(memory, this.#rounds);
        memory.tooLargeFor = 0;
        memory.largestFair = 0;
      }
      this.#claims.add(user);
      this.#users.push(user);
      this.#known.push(memory);
    }
    if (this.#memories.size === users.length) return;
    for (const [key, memory] of this.#memories) {
      if (memory.seenIn !== this.#calls) this.#memories.delete(key);
    }
  }

  #remember(key: string): Memory {
    let memory = this.#memories.get(key);
    if (memory === undefined) {
      memory = new Memory();
      this.#memories.set(key, memory);
    }
    if (memory.seenIn === this.#calls) throw new RangeError(`User '${key}' is named twice.`);
    memory.seenIn = this.#calls;
    return memory;
  }

  /** Says what each may keep, now that `claims.shares` is what is fair; whether that is more for anyone. */
  #decideKeeps(isRound: boolean): boolean {
    const { size, shares, keeps } = this.#claims;
    let isMore = false;
    for (let place = 0; place < size; place++) {
      const memory = this.#known[place] as Memory;
      const share = (this.#users[place] as ShareUser).share ?? memory.share;
      const fair = shares[place] as number;
      keeps[place] = share;
      if (fair >= share) {
        memory.tooLargeFor = 0;
        memory.largestFair = 0;
        continue;
      }
      if (isRound) memory.tooLargeFor++;
      if (fair > memory.largestFair) memory.largestFair = fair;
      if (memory.tooLargeFor >= this.#shrinkAfter) {
        keeps[place] = memory.largestFair;
        memory.tooLargeFor = 0;
        memory.largestFair = 0;
      }
      if ((keeps[place] as number) > fair) isMore = true;
    }
    return isMore;
  }

  #conclude(users: readonly ShareUser[], capacity: number, leftOver: number): ShareResult {
    const shares = new Map<string, number>();
    const changes: ShareChange[] = [];
    const sums = { unmet: 0, queued: 0, promised: 0, given: 0 };
    let place = 0;
    for (const [n, user] of users.entries()) {
      const memory = this.#named[n] as Memory;
      const change = user.isActive ? this.#settle(place++, capacity, sums) : rest(user, memory);
      if (change !== undefined) changes.push(change);
      shares.set(user.key, memory.share);
    }
    this.#capacity = capacity;
    const { unmet, queued, promised, given } = sums;
    const brokenPromise = given < promised ? { promised, given } : undefined;
    return { shares, changes, leftOver, unmet, queued, brokenPromise };
  }

  /** Notes the outcome for an active user. */
  #settle(place: number, capacity: number, sums: ShareSums): ShareChange | undefined {
    const { shares, minimums, maximums, needs, keeps } = this.#claims;
    const memory = this.#known[place] as Memory;
    const { key, share } = this.#users[place] as ShareUser;
    const from = share ?? memory.share;
    const to = shares[place] as number;
    const need = needs[place] as number;
    const minimum = minimums[place] as number;
    sums.unmet += Math.max(0, need - to);
    sums.promised += minimum;
    sums.given += Math.min(minimum, to);
    if (to === 0) sums.queued++;
    else memory.servedIn = this.#rounds;
    const reason =
      to === from
        ? undefined
        : reasonForShare({
            from,
            to,
            wasActive: memory.isActive,
            minimum,
            maximum: maximums[place] as number,
            need,
            needThen: memory.needThen,
            keep: keeps[place] as number,
            capacityFell: capacity < this.#capacity,
          });
    memory.share = to;
    memory.isActive = true;
    if (memory.tooLargeFor === 0) memory.needThen = need;
    return reason && { key, from, to, reason };
  }
}

interface ShareSums {
  /** As in the result. */
  unmet: number;
  queued: number;
  promised: number;
  given: number;
}

/** Notes that a user is not active. */
function rest({ key, share }: ShareUser, memory: Memory): ShareChange | undefined {
  const from = share ?? memory.share;
  memory.share = 0;
  memory.isActive = false;
  return from === 0 ? undefined : { key, from, to: 0, reason: 'inactive' };
}

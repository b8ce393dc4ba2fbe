/**
 * Shares one budget among the users of a book: weighted max-min fairness in whole numbers that add up to the budget.
 *
 * `share-order.ts` decides the order. This file remembers the last shares: a share that is too large now stays with its
 * user until another user needs it, or until it has been too large for `shrinkAfter` rounds. Then it falls to the
 * largest share that was fair in those rounds. Growing waits for nothing.
 */
import { ShareBook } from './share-book.js';
import { Claims } from './share-claims.js';
import { ShareOrder } from './share-order.js';
import { reasonForShare, type ShareReason } from './share-reasons.js';
import { placeOfNewcomer, ShareTurns, sendToTheBack } from './share-turns.js';

/** A share that changed. */
export interface PlaceChange {
  readonly place: number;
  readonly from: number;
  readonly to: number;
  readonly reason: ShareReason;
}

/** Sums over all active users. */
export interface ShareSums {
  readonly leftOver: number;
  readonly unmet: number;
  readonly queued: number;
  readonly promised: number;
  readonly given: number;
}

export class ShareAllocator {
  readonly book = new ShareBook();
  /** The changes of the last call, in the order of the places. */
  readonly changes: PlaceChange[] = [];
  sums: ShareSums = { leftOver: 0, unmet: 0, queued: 0, promised: 0, given: 0 };
  readonly #headroom: number;
  readonly #shrinkAfter: number;
  readonly #order = new ShareOrder();
  readonly #turns = new ShareTurns();
  readonly #claims = new Claims(this.book);
  #rounds = 0;
  #capacity = 0;

  constructor(headroom: number, shrinkAfter: number) {
    this.#headroom = headroom;
    this.#shrinkAfter = shrinkAfter;
  }

  /** The claims are in the book, and so are the shares afterwards. `isRound`: as in a `ShareRequest`. */
  shareOut(capacity: number, isRound: boolean): void {
    this.changes.length = 0;
    this.#beginTurns();
    if (isRound) this.#rounds++;
    this.#claims.take();
    let turns: number[] | undefined;
    const turnOrder = (): number[] => {
      turns ??= this.#turns.inTurn(this.book, this.#claims, isRound);
      return turns;
    };
    let leftOver = this.#order.share(this.#claims, capacity, this.#headroom, turnOrder);
    if (this.#decideKeeps(isRound) && this.#order.hadSpare)
      leftOver = this.#order.share(this.#claims, capacity, this.#headroom, turnOrder);
    this.#conclude(capacity, leftOver);
    if (turns !== undefined) sendToTheBack(turns, this.#claims, this.book, this.#rounds);
  }

  /** Users that become active queue behind those that have waited for longer. */
  #beginTurns(): void {
    const { size, isActive, wasActive, servedIn, tooLargeFor, largestFair } = this.book;
    for (let place = 0; place < size; place++) {
      if (isActive[place] === 0 || wasActive[place] === 1) continue;
      servedIn[place] = placeOfNewcomer(this.#rounds);
      tooLargeFor[place] = 0;
      largestFair[place] = 0;
    }
  }

  /** Decides what each user may keep, given that `claims.shares` is fair. Returns whether that is more for any user. */
  #decideKeeps(isRound: boolean): boolean {
    const { had, tooLargeFor, largestFair } = this.book;
    const { size, places, shares, keeps } = this.#claims;
    let isMore = false;
    for (let claim = 0; claim < size; claim++) {
      const place = places[claim] as number;
      const share = had[place] as number;
      const fair = shares[claim] as number;
      keeps[claim] = share;
      if (fair >= share) {
        tooLargeFor[place] = 0;
        largestFair[place] = 0;
        continue;
      }
      if (isRound) tooLargeFor[place] = (tooLargeFor[place] as number) + 1;
      if (fair > (largestFair[place] as number)) largestFair[place] = fair;
      if ((tooLargeFor[place] as number) >= this.#shrinkAfter) {
        keeps[claim] = largestFair[place] as number;
        tooLargeFor[place] = 0;
        largestFair[place] = 0;
      }
      if ((keeps[claim] as number) > fair) isMore = true;
    }
    return isMore;
  }

  #conclude(capacity: number, leftOver: number): void {
    const { size, isActive, wasActive, had, shares, servedIn, needThen, tooLargeFor } = this.book;
    const { shares: outcome, needs, minimums } = this.#claims;
    let [claim, unmet, queued, promised, given] = [0, 0, 0, 0, 0];
    for (let place = 0; place < size; place++) {
      const from = had[place] as number;
      if (isActive[place] === 0) {
        if (from !== 0) this.changes.push({ place, from, to: 0, reason: 'inactive' });
        shares[place] = wasActive[place] = 0;
        continue;
      }
      const to = outcome[claim] as number;
      const need = needs[claim] as number;
      const minimum = minimums[claim] as number;
      unmet += Math.max(0, need - to);
      promised += minimum;
      given += Math.min(minimum, to);
      if (to === 0) queued++;
      else servedIn[place] = this.#rounds;
      if (to !== from) this.changes.push(this.#change(place, claim, capacity));
      shares[place] = to;
      wasActive[place] = 1;
      if (tooLargeFor[place] === 0) needThen[place] = need;
      claim++;
    }
    this.#capacity = capacity;
    this.sums = { leftOver, unmet, queued, promised, given };
  }

  /** The change of an active user. The memory columns are those of the call before. */
  #change(place: number, claim: number, capacity: number): PlaceChange {
    const { had, wasActive, needThen } = this.book;
    const { shares, minimums, maximums, needs, keeps } = this.#claims;
    const from = had[place] as number;
    const to = shares[claim] as number;
    const reason = reasonForShare({
      from,
      to,
      wasActive: wasActive[place] === 1,
      minimum: minimums[claim] as number,
      maximum: maximums[claim] as number,
      need: needs[claim] as number,
      needThen: needThen[place] as number,
      keep: keeps[claim] as number,
      capacityFell: capacity < this.#capacity,
    });
    return { place, from, to, reason };
  }
}

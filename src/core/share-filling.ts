/**
 * Gives out slots, one after the other, each to the user with the lowest price for its next slot. The price of a user's k-th
 * slot is (k - 1/2) / weight: the divisor method of Webster and Sainte-Lague. A price depends on nothing but its user's
 * own claim, so more slots to give never mean fewer for anyone. Equal prices go by key.
 *
 * The outcome is that of the loop which looks for the cheapest slot again and again, but the time does not grow with the
 * number of slots: two prices are brought closer together, one too low and one high enough, until no more than one slot a
 * user lies between them, and only those are put in order.
 */
import { nthSmallest } from '../kernel/nth-smallest.js';
import type { Claims } from './share-claims.js';

export class ShareFiller {
  /** The places of users that can take more, and their number. */
  #open = new Int32Array(0);
  #openCount = 0;
  #prices = new Float64Array(0);
  /** The places for which the next slot has the same price. */
  #tied = new Int32Array(0);
  #ranks = new Int32Array(0);

  /**
   * Raises `claims.shares` by `amount` in all, none above its ceiling. Returns the number of slots that no user could take. The
   * k-th slot of a user is counted from its offset.
   */
  fill(claims: Claims, amount: number): number {
    if (amount === 0) return 0;
    const room = this.#findOpen(claims);
    if (room > amount) {
      this.#fillSome(claims, amount);
      return 0;
    }
    for (let n = 0; n < this.#openCount; n++) {
      const place = this.#open[n] as number;
      claims.shares[place] = claims.ceilings[place] as number;
    }
    return amount - room;
  }

  /** Returns the number of slots that could be taken. */
  #findOpen({ size, weights, shares, ceilings }: Claims): number {
    if (this.#open.length < size) {
      this.#open = new Int32Array(weights.length);
      this.#prices = new Float64Array(weights.length);
      this.#tied = new Int32Array(weights.length);
      this.#ranks = new Int32Array(weights.length);
    }
    let room = 0;
    let count = 0;
    for (let place = 0; place < size; place++) {
      const free = (ceilings[place] as number) - (shares[place] as number);
      if (free <= 0) continue;
      this.#open[count++] = place;
      room += free;
    }
    this.#openCount = count;
    return room;
  }

  /** Fills when users can take more than there is to give. */
  #fillSome(claims: Claims, amount: number): void {
    let low = 0;
    let given = 0;
    let high = this.#guessPrice(claims, amount);
    let enough = this.#slotsUpTo(claims, high);
    for (; enough < amount; enough = this.#slotsUpTo(claims, high)) {
      low = high;
      given = enough;
      high *= 2;
    }
    // At most one price covers several slots; after that, no more than one slot per user is left.
    while (given < amount && enough - given > this.#openCount) {
      const middle = low + (high - low) / 2;
      const slots = this.#slotsUpTo(claims, middle);
      if (slots <= amount) {
        low = middle;
        given = slots;
      } else {
        high = middle;
        enough = slots;
      }
    }
    this.#giveUpTo(claims, low);
    if (given < amount) this.#giveCheapest(claims, high, amount - given);
  }

  /** Estimates the price of the last slot. */
  #guessPrice({ weights, shares, offsets }: Claims, amount: number): number {
    let weight = 0;
    let slots = amount;
    for (let n = 0; n < this.#openCount; n++) {
      const place = this.#open[n] as number;
      weight += weights[place] as number;
      slots += (shares[place] as number) - (offsets[place] as number);
    }
    return slots / weight;
  }

  /** Number of open slots with at most this price. */
  #slotsUpTo(claims: Claims, price: number): number {
    let slots = 0;
    for (let n = 0; n < this.#openCount; n++) {
      const place = this.#open[n] as number;
      slots += shareUpTo(claims, place, price) - (claims.shares[place] as number);
    }
    return slots;
  }

  #giveUpTo(claims: Claims, price: number): void {
    for (let n = 0; n < this.#openCount; n++) {
      const place = this.#open[n] as number;
      claims.shares[place] = shareUpTo(claims, place, price);
    }
  }

  /** Gives the cheapest of the slots up to a price. */
  #giveCheapest(claims: Claims, price: number, amount: number): void {
    const last = this.#nthPrice(claims, price, amount);
    const { shares } = claims;
    let tied = 0;
    let left = amount;
    for (let n = 0; n < this.#openCount; n++) {
      const place = this.#open[n] as number;
      const most = shareUpTo(claims, place, price);
      let share = shares[place] as number;
      for (; share < most && nextPrice(claims, place, share) < last; share++) left--;
      shares[place] = share;
      if (share < most && nextPrice(claims, place, share) === last) this.#tied[tied++] = place;
    }
    this.#giveFirstByKey(claims, tied, left);
  }

  /** Gives one slot each to `amount` of the tied users. */
  #giveFirstByKey({ shares, ranks, places }: Claims, tied: number, amount: number): void {
    if (amount === 0) return;
    for (let n = 0; n < tied; n++) {
      const place = places[this.#tied[n] as number] as number;
      this.#ranks[n] = ranks[place] as number;
    }
    const last = nthSmallest(this.#ranks, tied, amount);
    for (let n = 0; n < tied; n++) {
      const place = this.#tied[n] as number;
      const rank = ranks[places[place] as number] as number;
      if (rank <= last) shares[place] = (shares[place] as number) + 1;
    }
  }

  /** The n-th smallest price among the slots up to a price, of which there are no more than users. */
  #nthPrice(claims: Claims, price: number, nth: number): number {
    let count = 0;
    for (let n = 0; n < this.#openCount; n++) {
      const place = this.#open[n] as number;
      const most = shareUpTo(claims, place, price);
      for (let share = claims.shares[place] as number; share < most; share++) {
        this.#prices[count++] = nextPrice(claims, place, share);
      }
    }
    return nthSmallest(this.#prices, count, nth);
  }
}

/** The price of the slot that comes after the first `share` of them. */
function nextPrice(claims: Claims, place: number, share: number): number {
  return (share - (claims.offsets[place] as number) + 0.5) / (claims.weights[place] as number);
}

/** A user's share if it had every slot that it may have at a price of at most this. */
function shareUpTo(claims: Claims, place: number, price: number): number {
  const least = claims.shares[place] as number;
  const most = claims.ceilings[place] as number;
  const guess = Math.floor(
    (claims.offsets[place] as number) + price * (claims.weights[place] as number) + 0.5,
  );
  let share = Math.max(least, Math.min(most, guess));
  // The guess may be off by one, because a division is rounded in another way than a multiplication.
  while (share < most && nextPrice(claims, place, share) <= price) share++;
  while (share > least && nextPrice(claims, place, share - 1) > price) share--;
  return share;
}

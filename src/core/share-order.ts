/**
 * The order in which slots are given to users. There is one order for all slots; with n slots, the first n are given:
 *
 * 1. one slot to the user whose slot turn it is, so that no promise to others can starve anyone;
 * 2. the promised minimums: the first slot of each by turns, the rest by weight;
 * 3. one slot to each of the others, by turns, those with a demand first;
 * 4. needs, by weight: weighted max-min fairness;
 * 5. slots that users have and need no longer, as far as they may keep them;
 * 6. the headroom, which stays free;
 * 7. the spare, by weight, up to each maximum.
 *
 * A slot's place in the order does not depend on how many there are to give, and a user that asks for more moves its own
 * slots forward and those of others back. That is why more capacity never gives anyone less, and asking for more never
 * gives less.
 */
import type { Claims } from './share-claims.js';
import { ShareFiller } from './share-filling.js';

/** The places of the claims in the order of their slot turns. Called only when there is not enough for all. */
export type TurnOrder = () => readonly number[];

export class ShareOrder {
  readonly #filler = new ShareFiller();
  /** In the last call, capacity exceeded need: what users may keep made a difference. */
  hadSpare = false;

  /** Sets `claims.shares`. They add up to `capacity` less the returned number, which stays free. */
  share(claims: Claims, capacity: number, headroom: number, turns: TurnOrder): number {
    const others = this.#giveFirsts(claims, capacity, turns);
    const beyondNeed = this.#giveNeeds(claims, others);
    this.hadSpare = beyondNeed > 0;
    if (!this.hadSpare) return 0;
    const left = this.#giveKept(claims, beyondNeed);
    const kept = Math.min(left, headroom);
    return kept + this.#giveSpare(claims, left - kept);
  }

  /** Minimums, and one for everyone. */
  #giveFirsts(claims: Claims, capacity: number, turns: TurnOrder): number {
    const { size, minimums, shares } = claims;
    let promised = 0;
    for (let place = 0; place < size; place++) promised += Math.max(1, minimums[place] as number);
    if (promised > capacity) return this.#giveByTurns(claims, capacity, turns());
    for (let place = 0; place < size; place++) shares[place] = Math.max(1, minimums[place] as number);
    return capacity - promised;
  }

  /** There is not enough for all. */
  #giveByTurns(claims: Claims, capacity: number, order: readonly number[]): number {
    const { size, minimums, needs, shares, offsets, ceilings } = claims;
    shares.fill(0, 0, size);
    let left = capacity;
    const giveFirst = (place: number): void => {
      if (left === 0 || shares[place] !== 0) return;
      shares[place] = 1;
      left--;
    };
    const whoseTurn = order.find((place) => (needs[place] as number) > 0) ?? order[0];
    if (whoseTurn !== undefined) giveFirst(whoseTurn);
    for (const place of order) if ((minimums[place] as number) > 0) giveFirst(place);
    for (let place = 0; place < size; place++) {
      offsets[place] = 0;
      ceilings[place] = Math.max(shares[place] as number, minimums[place] as number);
    }
    left = this.#filler.fill(claims, left);
    for (const place of order) if ((needs[place] as number) > 0) giveFirst(place);
    for (const place of order) giveFirst(place);
    return left;
  }

  #giveNeeds(claims: Claims, amount: number): number {
    const { size, needs, shares, offsets, ceilings } = claims;
    for (let place = 0; place < size; place++) {
      offsets[place] = 0;
      ceilings[place] = Math.max(shares[place] as number, needs[place] as number);
    }
    return this.#filler.fill(claims, amount);
  }

  /** Gives only what is beyond need: every user already has what it needs. */
  #giveKept(claims: Claims, amount: number): number {
    const { size, keeps, maximums, shares, offsets, ceilings } = claims;
    for (let place = 0; place < size; place++) {
      const share = shares[place] as number;
      offsets[place] = share;
      ceilings[place] = Math.max(share, Math.min(keeps[place] as number, maximums[place] as number));
    }
    return this.#filler.fill(claims, amount);
  }

  #giveSpare(claims: Claims, amount: number): number {
    const { size, maximums, ceilings } = claims;
    for (let place = 0; place < size; place++) ceilings[place] = maximums[place] as number;
    return this.#filler.fill(claims, amount);
  }
}

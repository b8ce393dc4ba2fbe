/**
 * Slot turns, for more users than slots: a queue in which a user that has had its turn goes to the back. A user's place
 * in the queue is one number, `servedIn`.
 */
import type { ShareBook } from './share-book.js';
import type { Claims } from './share-claims.js';

/** More rounds than there will ever be. */
const inFront = 2 ** 40;

export class ShareTurns {
  /** For each place in the book: its place among the claims; -1 for an inactive user. */
  #claims = new Int32Array(0);
  #served = new Float64Array(0);

  /** The places of the claims in the order of their slot turns. Between two rounds, a turn does not end. */
  inTurn(book: ShareBook, claims: Claims, isRound: boolean): number[] {
    const { size, servedIn, shares, waitingSince: since } = book;
    if (this.#claims.length < size) {
      this.#claims = new Int32Array(book.demands.length);
      this.#served = new Float64Array(book.demands.length);
    }
    const places = this.#claims.fill(-1);
    for (let claim = 0; claim < claims.size; claim++) places[claims.places[claim] as number] = claim;
    const served = this.#served;
    for (let place = 0; place < size; place++) {
      const isHavingIt = !isRound && (shares[place] as number) > 0;
      served[place] = (servedIn[place] as number) - (isHavingIt ? inFront : 0);
    }
    const { ranks } = book;
    book.turns.sort((a, b) => {
      if (since[a] !== since[b]) return (since[a] as number) < (since[b] as number) ? -1 : 1;
      if (served[a] !== served[b]) return (served[a] as number) - (served[b] as number);
      return (ranks[a] as number) - (ranks[b] as number);
    });
    const turns: number[] = [];
    for (const place of book.turns.places) {
      const claim = places[place] as number;
      if (claim !== -1) turns.push(claim);
    }
    return turns;
  }
}

/** The `servedIn` of a newcomer after `rounds`: ahead of users served in the last round, behind those that have waited for longer. */
export function placeOfNewcomer(rounds: number): number {
  return rounds - 0.5;
}

/** Moves users that had a turn in this round to the back, in the order of their turns. */
export function sendToTheBack(
  turns: readonly number[],
  { places }: Claims,
  { shares, servedIn }: ShareBook,
  round: number,
): void {
  for (let n = 0; n < turns.length; n++) {
    const place = places[turns[n] as number] as number;
    if ((shares[place] as number) > 0) servedIn[place] = round + n / (2 * turns.length);
  }
}

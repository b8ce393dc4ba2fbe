/**
 * The ledger: the only place where counts of connections change, and therefore the place that keeps the first invariant.
 *
 *     pending + live + closing <= limit
 *
 * A slot is reserved before slow work begins and is freed when the socket is closed, not when closing was decided:
 *
 *     approve() -> pending --commit()---> live --beginClosing()--> closing --free()--> (gone)
 *                        \--rollback()-> (gone)
 *
 * A limit that shrinks below the number of existing connections grants nothing until enough have closed.
 */
import { InvariantError } from '../kernel/errors.js';

export class Ledger {
  #limit: number;
  #pending = 0;
  #live = 0;
  #closing = 0;
  #peak = 0;
  readonly #slotFreed: () => void;

  /** `slotFreed` is called each time a slot becomes free, right after the count has changed. */
  constructor(limit: number, slotFreed: () => void = () => {}) {
    this.#limit = checkedLimit(limit);
    this.#slotFreed = slotFreed;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Attempts under way. */
  get pending(): number {
    return this.#pending;
  }

  /** Connections that exist and are not being closed. */
  get live(): number {
    return this.#live;
  }

  /** Connections that are closing and whose socket is still open. */
  get closing(): number {
    return this.#closing;
  }

  get total(): number {
    return this.#pending + this.#live + this.#closing;
  }

  /** The highest total there ever was. */
  get peak(): number {
    return this.#peak;
  }

  /** Number of free slots. */
  get room(): number {
    return Math.max(0, this.#limit - this.total);
  }

  setLimit(limit: number): void {
    this.#limit = checkedLimit(limit);
  }

  /** Reserves one slot; undefined at the limit. */
  approve(): Approval | undefined {
    if (this.total >= this.#limit) return undefined;
    this.#pending++;
    if (this.total > this.#peak) this.#peak = this.total;
    return new Approval(this.#moves);
  }

  readonly #moves: SlotMoves = {
    commit: () => {
      this.#pending--;
      this.#live++;
    },
    rollback: () => {
      this.#pending--;
      this.#slotFreed();
    },
    beginClosing: () => {
      this.#live--;
      this.#closing++;
    },
    free: () => {
      this.#closing--;
      this.#slotFreed();
    },
  };
}

interface SlotMoves {
  commit(): void;
  rollback(): void;
  beginClosing(): void;
  free(): void;
}

/** Leave to attempt exactly one connection. Ends exactly once, by `commit` or by `rollback`. */
export class Approval {
  readonly #moves: SlotMoves;
  #outcome: 'open' | 'committed' | 'rolled back' = 'open';

  /** Made by the ledger alone. */
  constructor(moves: SlotMoves) {
    this.#moves = moves;
  }

  /** The attempt succeeded: the slot now belongs to a connection. */
  commit(): Slot {
    this.#end('committed');
    this.#moves.commit();
    return new Slot(this.#moves);
  }

  /** The attempt failed and left nothing behind: frees the slot. */
  rollback(): void {
    this.#end('rolled back');
    this.#moves.rollback();
  }

  #end(outcome: 'committed' | 'rolled back'): void {
    if (this.#outcome !== 'open') {
      throw new InvariantError(`An approval that was ${this.#outcome} can't be ${outcome} as well.`);
    }
    this.#outcome = outcome;
  }
}

/** The place of one existing connection. Ends exactly once, by `beginClosing` and then `free`. */
export class Slot {
  readonly #moves: SlotMoves;
  #state: 'live' | 'closing' | 'gone' = 'live';

  /** Made by an approval alone. */
  constructor(moves: SlotMoves) {
    this.#moves = moves;
  }

  /** The connection begins to close, and counts until its socket is closed. */
  beginClosing(): void {
    this.#advance('live', 'closing');
    this.#moves.beginClosing();
  }

  /** The socket is closed. */
  free(): void {
    this.#advance('closing', 'gone');
    this.#moves.free();
  }

  #advance(from: 'live' | 'closing', to: 'closing' | 'gone'): void {
    if (this.#state !== from) throw new InvariantError(`A slot that is ${this.#state} can't become ${to}.`);
    this.#state = to;
  }
}

function checkedLimit(limit: number): number {
  if (!Number.isSafeInteger(limit) || limit < 0) {
    throw new RangeError(`A limit is a whole number of at least 0, not ${limit}.`);
  }
  return limit;
}

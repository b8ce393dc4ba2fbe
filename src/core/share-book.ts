/**
 * The users of one allocator as columns: the claim of each, and what is remembered of it between calls. A user has the
 * same place in every column. Columns keep their capacity, so that a call without newcomers allocates nothing.
 */
import { PlaceOrder } from './place-order.js';

/** Columns that move with a user whose place changes. */
const memories = ['shares', 'servedIn', 'tooLargeFor', 'largestFair', 'needThen'] as const;

export class ShareBook {
  size = 0;
  keys: readonly string[] = [];

  // ---- claims: set before each call -------------------------------------------------------------------------------
  demands = new Float64Array(0);
  weights = new Float64Array(0);
  minimums = new Float64Array(0);
  maximums = new Float64Array(0);
  /** Infinity where the allocator counts rounds. */
  waitingSince = new Float64Array(0);
  /** Each user's present share. */
  had = new Float64Array(0);
  isActive = new Uint8Array(0);

  // ---- memory -----------------------------------------------------------------------------------------------------
  shares = new Float64Array(0);
  /** The place in the queue for slot turns: the round of the last turn and, as a fraction below 1/2, the place in that round. */
  servedIn = new Float64Array(0);
  /** Rounds in a row in which the share was too large, and the largest that was fair meanwhile. */
  tooLargeFor = new Float64Array(0);
  largestFair = new Float64Array(0);
  /** The need when the share was last no larger than fair. */
  needThen = new Float64Array(0);
  wasActive = new Uint8Array(0);

  readonly #byKey = new PlaceOrder();
  /** For slot turns: nearly in order, as found last. */
  readonly turns = new PlaceOrder();
  #ranks = new Int32Array(0);
  #areRanked = false;

  /** The order of a user's key among all keys. */
  get ranks(): Int32Array {
    if (this.#areRanked) return this.#ranks;
    const { keys } = this;
    if (this.#ranks.length < this.size) this.#ranks = new Int32Array(this.demands.length);
    this.#byKey.insert((a, b) => ((keys[a] as string) < (keys[b] as string) ? -1 : 1));
    const { places } = this.#byKey;
    for (let rank = 0; rank < places.length; rank++) this.#ranks[places[rank] as number] = rank;
    this.#areRanked = true;
    return this.#ranks;
  }

  /** Gives places to these users, in this order. `from`: the previous place of each; -1 for a newcomer, who has no memory. */
  arrange(keys: readonly string[], from: Int32Array): void {
    const before = this.size;
    this.#makeRoom(keys.length);
    this.#move(from, before);
    const to = new Int32Array(before).fill(-1);
    for (let place = 0; place < from.length; place++) {
      const former = from[place] as number;
      if (former !== -1) to[former] = place;
    }
    this.#byKey.move(to, from);
    this.turns.move(to, from);
    this.keys = keys;
    this.size = keys.length;
    this.#areRanked = false;
  }

  #makeRoom(size: number): void {
    if (this.demands.length >= size) return;
    const room = Math.max(size, 2 * this.demands.length);
    this.demands = grown(this.demands, room);
    this.weights = grown(this.weights, room);
    this.minimums = grown(this.minimums, room);
    this.maximums = grown(this.maximums, room);
    this.waitingSince = grown(this.waitingSince, room);
    this.had = grown(this.had, room);
    for (const name of memories) this[name] = grown(this[name], room);
    for (const name of ['isActive', 'wasActive'] as const) {
      const flags = new Uint8Array(room);
      flags.set(this[name]);
      this[name] = flags;
    }
  }

  #move(from: Int32Array, before: number): void {
    const firstMoved = from.findIndex((former, place) => former !== place);
    if (firstMoved === -1) return;
    for (const name of memories) {
      const column = this[name];
      const old = column.slice(firstMoved, before);
      moveColumn(column, old, from, firstMoved);
    }
    const old = this.wasActive.slice(firstMoved, before);
    moveColumn(this.wasActive, old, from, firstMoved);
  }
}

function grown(column: Float64Array, room: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(room);
  larger.set(column);
  return larger;
}

/** `old`: the column from the first place on that changes. Newcomers have 0. */
function moveColumn(
  column: Float64Array | Uint8Array,
  old: Float64Array | Uint8Array,
  from: Int32Array,
  firstMoved: number,
): void {
  for (let place = firstMoved; place < from.length; place++) {
    const former = from[place] as number;
    column[place] = former === -1 ? 0 : (old[former - firstMoved] as number);
  }
}

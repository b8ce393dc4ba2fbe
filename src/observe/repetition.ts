/**
 * Thins out repetitions: of a row of the same, the 1st, 2nd, 4th, 8th and so on are reported. The first is never held
 * back, and a thousand take eleven lines.
 */
import type { Clock } from '../kernel/clock.js';
import { systemClock } from '../runtime/system.js';

export class Repetition<Key> {
  readonly #rows = new Map<Key, { length: number; lastAt: number }>();
  readonly #quietMs: number;
  readonly #clock: Pick<Clock, 'now'>;

  /** `quietMs`: a row ends when nothing was added to it for this long; without it, only `end()` ends it. */
  constructor(quietMs = Number.POSITIVE_INFINITY, clock: Pick<Clock, 'now'> = systemClock) {
    this.#quietMs = quietMs;
    this.#clock = clock;
  }

  /** Adds one to its row. Returns its number in the row if it should be reported, and otherwise undefined. */
  add(key: Key): number | undefined {
    const lastAt = this.#clock.now();
    const row = this.#rows.get(key);
    const goesOn = row !== undefined && lastAt - row.lastAt < this.#quietMs;
    const length = goesOn ? row.length + 1 : 1;
    this.#rows.set(key, { length, lastAt });
    return Number.isInteger(Math.log2(length)) ? length : undefined;
  }

  /** Ends all rows. */
  end(): void {
    this.#rows.clear();
  }
}

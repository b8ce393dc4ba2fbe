/** Splits long work into short pieces, with other work in between. */
import { setImmediate as nextRound } from 'node:timers/promises';
import { systemClock } from '../../runtime/system.js';

/** Duration of one piece. */
const pieceMs = 4;

export class Pauses {
  #since = systemClock.now();

  /** Resolves at once, unless a pause is due. */
  async ifDue(): Promise<void> {
    if (systemClock.now() - this.#since < pieceMs) return;
    await nextRound();
    this.#since = systemClock.now();
  }
}

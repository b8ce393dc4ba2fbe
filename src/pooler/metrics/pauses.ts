/** Long work in short pieces: others have their turn in between. */
import { setImmediate as nextRound } from 'node:timers/promises';
import { systemClock } from '../../runtime/system.js';

/** So long one piece takes. */
const pieceMs = 4;

export class Pauses {
  #since = systemClock.now();

  /** Resolves at once, unless it is time for others. */
  async ifDue(): Promise<void> {
    if (systemClock.now() - this.#since < pieceMs) return;
    await nextRound();
    this.#since = systemClock.now();
  }
}

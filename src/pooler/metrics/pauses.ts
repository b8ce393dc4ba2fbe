/** Splits long work into short pieces, with other work in between. */
import { setImmediate as nextRound } from 'node:timers/promises';
import { systemClock } from '../../runtime/system.js';

/** Duration of one piece. */
const pieceMs = 4;
/** Steps of a microsecond or two between looks at the clock. */
const stepsBetweenLooks = 32;

export class Pauses {
  #since = systemClock.now();
  #steps = 0;

  /** Resolves at once, unless a pause is due. For steps that may take long. */
  async ifDue(): Promise<void> {
    if (systemClock.now() - this.#since < pieceMs) return;
    await nextRound();
    this.#since = systemClock.now();
  }

  /** For very many short steps: undefined unless a pause is to be awaited. */
  afterStep(): Promise<void> | undefined {
    this.#steps++;
    return this.#steps % stepsBetweenLooks === 0 ? this.ifDue() : undefined;
  }
}

/** A process warning about something that may happen often: given once, then counted, and given again a minute later at the earliest. */
import { systemClock } from './system.js';
import { warn } from './warn.js';

const quietMs = 60_000;

export class SummedWarning {
  readonly #code: string;
  #warnedAt = -Infinity;
  #seenSince = 0;

  constructor(code: string) {
    this.#code = code;
  }

  /** `describe` makes the lines of the text, and is called only for a warning that is given. */
  give(describe: () => readonly (string | undefined)[]): void {
    const now = systemClock.now();
    if (now - this.#warnedAt < quietMs) {
      this.#seenSince++;
      return;
    }
    const lines = describe().filter((line) => line !== undefined);
    if (this.#seenSince > 0) lines.push(`seen ${this.#seenSince} more times since the last warning`);
    this.#warnedAt = now;
    this.#seenSince = 0;
    warn(this.#code, lines.join('\n  '));
  }
}

/** A bar on standard error while something takes long, gone without a trace when it is over. */
import type { Terminal } from './terminal.js';

const widest = 30;
const usualColumns = 80;
const firstShownAfterMs = 400;
const everyMs = 100;

export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #label: string;
  readonly #now: () => number;
  #nextAt: number;
  #isShown = false;

  constructor(terminal: Terminal, label: string, now: () => number = () => performance.now()) {
    this.#terminal = terminal;
    this.#label = label;
    this.#now = now;
    this.#nextAt = now() + firstShownAfterMs;
  }

  /** `part`: from 0 to 1. */
  update(part: number): void {
    if (!this.#terminal.showsProgress || this.#now() < this.#nextAt) return;
    this.#nextAt = this.#now() + everyMs;
    this.#isShown = true;
    const within = Math.min(1, Math.max(0, part));
    const text = ` ${String(Math.round(within * 100)).padStart(3)} % ${this.#label}`;
    // A line that goes on in the next row could not be written over. In the last column some terminals go on.
    const room = (this.#terminal.columns || usualColumns) - 1;
    const width = Math.max(0, Math.min(widest, room - text.length));
    const filled = Math.round(within * width);
    const bar = '█'.repeat(filled) + '░'.repeat(width - filled);
    this.#terminal.err(`\r${(bar + text).slice(0, room)}\u001B[K`);
  }

  end(): void {
    if (this.#isShown) this.#terminal.err('\r\u001B[K');
    this.#isShown = false;
  }
}

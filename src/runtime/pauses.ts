/** Splits long work into short pieces, with other work in between. */
import { Fifo } from '../kernel/fifo.js';
import { systemClock } from './system.js';

/** Duration of one piece: clients wait no longer than that. */
const pieceMs = 0.3;
/** Steps of a microsecond or two between looks at the clock. */
const stepsBetweenLooks = 8;

const waiting = new Fifo<() => void>();

/** Resolves when the sockets have been served. Of all work that waits, one piece is done then: two scrapes together do not take twice the time. */
function nextRound(): Promise<void> {
  if (waiting.size === 0) setImmediate(resumeOne);
  return new Promise((resolve) => waiting.push(resolve));
}

function resumeOne(): void {
  waiting.shift()?.();
  if (waiting.size > 0) setImmediate(resumeOne);
}

export class Pauses {
  #since = systemClock.now();
  #steps = 0;

  /** Undefined unless a pause is to be awaited. For steps that may take long. */
  afterLongStep(): Promise<void> | undefined {
    return systemClock.now() - this.#since < pieceMs ? undefined : this.pause();
  }

  /** Undefined unless a pause is to be awaited. For very many short steps: few of them look at the clock. */
  afterStep(): Promise<void> | undefined {
    this.#steps++;
    return this.#steps % stepsBetweenLooks === 0 ? this.afterLongStep() : undefined;
  }

  /** Before something that takes most of a piece. */
  async pause(): Promise<void> {
    await nextRound();
    this.#since = systemClock.now();
  }
}

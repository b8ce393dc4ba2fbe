/**
 * Work that one client or server has sent in one piece beyond a first portion. All of it waits in one queue, and is done a
 * portion each in turn. Between two looks at the sockets it takes a limited time, however many send so much: nobody else
 * waits longer than that.
 */
import { Fifo } from '../../kernel/fifo.js';
import { systemClock } from '../../runtime/system.js';

/** Limit in milliseconds of all portions between two looks at the sockets. No portion begins later. */
const roundMs = 0.2;
/** Limit in milliseconds of one portion. */
const portionMs = 0.1;

export interface HeavyWork {
  /** Called once for each `add()`. */
  nextPortion(): void;
}

export class HeavyRounds {
  readonly #now: () => number;
  readonly #atNextRound: (run: () => void) => void;
  readonly #queue = new Fifo<HeavyWork>();
  #isDue = false;
  readonly #run = (): void => this.#doRound();

  constructor(now: () => number, atNextRound: (run: () => void) => void) {
    this.#now = now;
    this.#atNextRound = atNextRound;
  }

  add(work: HeavyWork): void {
    this.#queue.push(work);
    if (!this.#isDue) this.#arm();
  }

  #arm(): void {
    this.#isDue = true;
    this.#atNextRound(this.#run);
  }

  #doRound(): void {
    const endsAt = this.#now() + roundMs;
    try {
      do this.#queue.shift()?.nextPortion();
      while (this.#queue.size > 0 && this.#now() < endsAt);
    } finally {
      // If one throws, the others still go on.
      this.#isDue = false;
      if (this.#queue.size > 0) this.#arm();
    }
  }
}

/** All heavy work of this process. */
export const heavyWork = new HeavyRounds(
  () => systemClock.now(),
  (run) => setImmediate(run),
);

/** The portion is over. */
export const portionIsOver = -1;

/**
 * Looks whether a portion is over, in a loop over messages. `endsAt`: what the last look returned, 0 at the first one. Few messages
 * are handled without any look, and so without reading the clock.
 */
export function lookAtPortion(endsAt: number): number {
  const now = systemClock.now();
  if (endsAt === 0) return now + portionMs;
  return now < endsAt ? endsAt : portionIsOver;
}

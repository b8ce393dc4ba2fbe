/**
 * Statements that are known to be long, in a pool whose short statements share connections. While short ones come, long ones
 * leave a part of the connections to them: short statements would otherwise wait until one of the long ones ends.
 */
import { systemClock } from '../../runtime/system.js';

/** One connection in so many is for short statements alone, and at least one. */
const onePerShort = 8;
/** Time in milliseconds for which connections stay with short statements after the last one came. */
const keptMs = 1_000;

/** The pool that the statements run in. */
export interface LongStatementsPool {
  /** Open connections, if no more may be opened. */
  readonly finalSize: number | undefined;
}

export class LongStatements {
  readonly #pool: LongStatementsPool;
  readonly #now: () => number;
  #underWay = 0;
  #shortCameAt = Number.NEGATIVE_INFINITY;

  constructor(pool: LongStatementsPool, now: () => number = () => systemClock.coarse()) {
    this.#pool = pool;
    this.#now = now;
  }

  shortCame(): void {
    this.#shortCameAt = this.#now();
  }

  began(): void {
    this.#underWay++;
  }

  ended(): void {
    this.#underWay--;
  }

  /** One more has to wait. Then at least one is under way, so its end is the event on which the others are looked at again. */
  get areTooMany(): boolean {
    if (this.#underWay === 0) return false;
    const { finalSize } = this.#pool;
    if (finalSize === undefined || finalSize < 2 || this.#now() - this.#shortCameAt > keptMs) return false;
    return this.#underWay >= finalSize - Math.max(1, Math.floor(finalSize / onePerShort));
  }
}

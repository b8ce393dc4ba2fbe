/**
 * Usage of a pool by the two classes of work. Regular work is a statement that releases its connection at once; reserved work
 * is a transaction or a session that keeps it. Both use one set of connections. The part of each class follows from what both
 * need, and matters only while both wait.
 */
import { type ClassShares, ClassSplit } from '../../core/class-split.js';
import { type ClassLimits, ClassWaiters } from '../../core/class-waiters.js';
import type { Backend } from './backend.js';
import { LongStatements, type LongStatementsPool } from './long-statements.js';

export class ClassUsage implements ClassLimits {
  /** Regular work that is known to take long. */
  readonly long: LongStatements;
  /** Times that work of the class had to wait for a connection. */
  regularWaits = 0;
  reservedWaits = 0;
  regularInUse = 0;
  reservedInUse = 0;
  regularPart = Number.POSITIVE_INFINITY;
  reservedPart = Number.POSITIVE_INFINITY;
  #reason: ClassShares['reason'] = 'demand_fits';
  #split: ClassSplit;
  #ratio: number;
  #queue: ClassWaiters<Backend> | undefined;
  #regularPeak = 0;
  #reservedPeak = 0;

  constructor(reservedRatio: number, pool: LongStatementsPool) {
    this.long = new LongStatements(pool);
    this.#ratio = reservedRatio;
    this.#split = new ClassSplit({ reservedRatio });
  }

  get areLongTooMany(): boolean {
    return this.long.areTooMany;
  }

  /** Reason for the present parts. */
  get reason(): ClassShares['reason'] {
    return this.#reason;
  }

  get regularWaiting(): number {
    return this.#queue?.regularSize ?? 0;
  }

  get reservedWaiting(): number {
    return this.#queue?.reservedSize ?? 0;
  }

  /** Makes the queue for the pool's next engine. */
  makeQueue(): ClassWaiters<Backend> {
    this.#queue = new ClassWaiters<Backend>(this);
    return this.#queue;
  }

  waited(isReserved: boolean): void {
    if (isReserved) this.reservedWaits++;
    else this.regularWaits++;
  }

  took(isReserved: boolean): void {
    if (isReserved) {
      if (++this.reservedInUse > this.#reservedPeak) this.#reservedPeak = this.reservedInUse;
    } else if (++this.regularInUse > this.#regularPeak) this.#regularPeak = this.regularInUse;
  }

  /** A statement has opened a transaction, or the session is pinned: the connection counts as reserved from then on. */
  becameReserved(): void {
    this.regularInUse--;
    this.took(true);
  }

  gaveBack(wasReserved: boolean): void {
    if (wasReserved) this.reservedInUse--;
    else this.regularInUse--;
  }

  /** Splits the capacity by what was needed since the last split. */
  resplit(capacity: number, reservedRatio: number): void {
    if (reservedRatio !== this.#ratio) {
      this.#ratio = reservedRatio;
      this.#split = new ClassSplit({ reservedRatio });
    }
    const { regular, reserved, reason } = this.#split.split(
      capacity,
      this.#regularPeak + this.regularWaiting,
      this.#reservedPeak + this.reservedWaiting,
    );
    this.regularPart = regular;
    this.reservedPart = reserved;
    this.#reason = reason;
    this.#regularPeak = this.regularInUse;
    this.#reservedPeak = this.reservedInUse;
  }
}

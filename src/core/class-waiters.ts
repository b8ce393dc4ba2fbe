/**
 * A queue of callers of two classes: regular callers want a connection for one statement, reserved callers keep it.
 * While both wait, the class below its part is served; if both or neither are below, the longest wait comes first. While
 * only one class waits, it may use everything.
 */
import { type CallerQueue, type Waiter, Waiters } from './waiters.js';

/** Number of connections of each class, and its part. */
export interface ClassCounts {
  readonly regularInUse: number;
  readonly reservedInUse: number;
  readonly regularPart: number;
  readonly reservedPart: number;
}

export class ClassWaiters<C> implements CallerQueue<C> {
  readonly #counts: ClassCounts;
  readonly #regular = new Waiters<C>();
  readonly #reserved = new Waiters<C>();

  constructor(counts: ClassCounts) {
    this.#counts = counts;
  }

  get size(): number {
    return this.#regular.size + this.#reserved.size;
  }

  get regularSize(): number {
    return this.#regular.size;
  }

  get reservedSize(): number {
    return this.#reserved.size;
  }

  get first(): Waiter<C> | undefined {
    return this.#next().first;
  }

  get nextDeadline(): number {
    return Math.min(this.#regular.nextDeadline, this.#reserved.nextDeadline);
  }

  add(waiter: Waiter<C>, now: number, deadline: number): void {
    this.#queueOf(waiter).add(waiter, now, deadline);
  }

  postpone(since: number, until: number): void {
    this.#regular.postpone(since, until);
    this.#reserved.postpone(since, until);
  }

  shift(): Waiter<C> | undefined {
    return this.#next().shift();
  }

  shiftExpired(now: number): Waiter<C> | undefined {
    return this.#regular.shiftExpired(now) ?? this.#reserved.shiftExpired(now);
  }

  remove(waiter: Waiter<C>): void {
    this.#queueOf(waiter).remove(waiter);
  }

  #queueOf(waiter: Waiter<C>): Waiters<C> {
    return waiter.isReserved ? this.#reserved : this.#regular;
  }

  // Not a getter: V8 looks up private getters anew at each use.
  #next(): Waiters<C> {
    if (this.#reserved.size === 0) return this.#regular;
    if (this.#regular.size === 0) return this.#reserved;
    const { regularInUse, reservedInUse, regularPart, reservedPart } = this.#counts;
    const isRegularShort = regularInUse < regularPart;
    const isReservedShort = reservedInUse < reservedPart;
    if (isRegularShort !== isReservedShort) return isRegularShort ? this.#regular : this.#reserved;
    const regular = this.#regular.first as Waiter<C>;
    const reserved = this.#reserved.first as Waiter<C>;
    return regular.enqueuedAt <= reserved.enqueuedAt ? this.#regular : this.#reserved;
  }
}

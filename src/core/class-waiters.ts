/**
 * A queue of callers of two classes: regular callers want a connection for one statement, reserved callers keep it.
 * While both wait, the class below its part is served; if both or neither are below, the longest wait comes first. While
 * only one class waits, it may use everything. Regular callers with long statements wait apart from the others while there
 * are too many of them.
 */
import { type CallerQueue, type Waiter, Waiters } from './waiters.js';

/** Number of connections of each class, and its part. */
export interface ClassCounts {
  readonly regularInUse: number;
  readonly reservedInUse: number;
  readonly regularPart: number;
  readonly reservedPart: number;
}

export interface ClassLimits extends ClassCounts {
  /** No more long statements may begin. Then at least one is under way. */
  readonly areLongTooMany: boolean;
}

export class ClassWaiters<C> implements CallerQueue<C> {
  readonly #limits: ClassLimits;
  readonly #regular = new Waiters<C>();
  readonly #reserved = new Waiters<C>();
  readonly #long = new Waiters<C>();

  constructor(limits: ClassLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#regular.size + this.#long.size + this.#reserved.size;
  }

  get servable(): number {
    const others = this.#regular.size + this.#reserved.size;
    return this.#mayServeLong() ? others + this.#long.size : others;
  }

  get regularSize(): number {
    return this.#regular.size + this.#long.size;
  }

  get reservedSize(): number {
    return this.#reserved.size;
  }

  get first(): Waiter<C> | undefined {
    return this.#next().first;
  }

  get nextDeadline(): number {
    return Math.min(this.#regular.nextDeadline, this.#long.nextDeadline, this.#reserved.nextDeadline);
  }

  add(waiter: Waiter<C>, now: number, deadline: number): void {
    this.#queueOf(waiter).add(waiter, now, deadline);
  }

  postpone(since: number, until: number): void {
    this.#regular.postpone(since, until);
    this.#long.postpone(since, until);
    this.#reserved.postpone(since, until);
  }

  shift(): Waiter<C> | undefined {
    return this.#next().shift();
  }

  shiftExpired(now: number): Waiter<C> | undefined {
    return (
      this.#regular.shiftExpired(now) ?? this.#long.shiftExpired(now) ?? this.#reserved.shiftExpired(now)
    );
  }

  remove(waiter: Waiter<C>): void {
    this.#queueOf(waiter).remove(waiter);
  }

  #queueOf(waiter: Waiter<C>): Waiters<C> {
    if (waiter.isReserved) return this.#reserved;
    return waiter.isLong ? this.#long : this.#regular;
  }

  // Not a getter: V8 looks up private getters anew at each use.
  #next(): Waiters<C> {
    const statements = this.#nextStatements();
    if (this.#reserved.size === 0) return statements.size === 0 ? this.#long : statements;
    if (statements.size === 0) return this.#reserved;
    const { regularInUse, reservedInUse, regularPart, reservedPart } = this.#limits;
    const isRegularShort = regularInUse < regularPart;
    const isReservedShort = reservedInUse < reservedPart;
    if (isRegularShort !== isReservedShort) return isRegularShort ? statements : this.#reserved;
    return isAhead(statements, this.#reserved) ? statements : this.#reserved;
  }

  /** The regular callers to be served next, without those that have to wait. */
  #nextStatements(): Waiters<C> {
    if (!this.#mayServeLong()) return this.#regular;
    return this.#regular.size > 0 && isAhead(this.#regular, this.#long) ? this.#regular : this.#long;
  }

  #mayServeLong(): boolean {
    return this.#long.size > 0 && !this.#limits.areLongTooMany;
  }
}

/** The longest wait in one queue began before that in the other. Both have callers. */
function isAhead<C>(one: Waiters<C>, other: Waiters<C>): boolean {
  return (one.first as Waiter<C>).enqueuedAt <= (other.first as Waiter<C>).enqueuedAt;
}

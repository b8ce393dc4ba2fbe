/**
 * The queue of callers: served in order, left from any place, without timers of its own.
 *
 * Deadlines are found without sorting. Nearly all callers have the same timeout, so a later caller has a later deadline
 * and the queue is already in the order of its deadlines. Only callers with an earlier deadline than one ahead of them
 * go into a heap.
 */
import { Heap, type HeapItem } from '../kernel/heap.js';
import { type Linked, LinkedList } from '../kernel/linked-list.js';
import type { PooledConnection } from './pooled-connection.js';

/** One caller in the queue. Ends with exactly one call of `granted` or `failed`, and may be queued again after that. */
export abstract class Waiter<C> implements Linked<Waiter<C>>, HeapItem {
  // All fields belong to the queue.
  previous: Waiter<C> | undefined;
  next: Waiter<C> | undefined;
  /** The deadline. */
  heapKey: number;
  heapIndex: number;
  enqueuedAt: number;
  queued: boolean;
  /** Its deadline is no earlier than those of the orderly waiters ahead of it. */
  orderly: boolean;
  /** The dial made on its behalf. */
  dial: { readonly state: string } | undefined;
  /** Keeps the connection for longer than one statement. Set by the caller before it is queued. */
  isReserved: boolean;
  /** Keeps the connection for one statement that is known to be long. Set by the caller before it is queued. */
  isLong: boolean;
  /** Waits to its deadline, however often dialing fails. Set by the caller before it is queued. */
  isPatient: boolean;

  constructor() {
    this.heapKey = Infinity;
    this.heapIndex = -1;
    this.enqueuedAt = Number.NaN;
    this.queued = false;
    this.orderly = false;
    this.isReserved = false;
    this.isLong = false;
    this.isPatient = false;
  }

  /** Called in the middle of a decision: must not throw, and the work it starts must not depend on being done at once. */
  abstract granted(connection: PooledConnection<C>): void;
  abstract failed(error: Error): void;
}

/** A queue that decides which caller is served next. */
export interface CallerQueue<C> {
  readonly size: number;
  /** Callers that may be given a connection now. The others wait for a checkout to end. */
  readonly servable: number;
  /** The one that is served next, unless something happens before. */
  readonly first: Waiter<C> | undefined;
  readonly nextDeadline: number;
  add(waiter: Waiter<C>, now: number, deadline: number): void;
  /** Callers dated `since` or later are dated `until` instead, with their whole timeout from then on. */
  postpone(since: number, until: number): void;
  /** Takes the one out that is served next. */
  shift(): Waiter<C> | undefined;
  /** Removes and returns a waiter whose deadline has passed. */
  shiftExpired(now: number): Waiter<C> | undefined;
  remove(waiter: Waiter<C>): void;
}

/** The longest wait comes first. */
export class Waiters<C> implements CallerQueue<C> {
  readonly #queue = new LinkedList<Waiter<C>>();
  /** The orderly waiter with the earliest deadline. */
  #firstOrderly: Waiter<C> | undefined;
  #latestOrderlyDeadline = -Infinity;
  /** Waiters with a deadline that are not orderly. */
  readonly #disorderly = new Heap<Waiter<C>>();

  get size(): number {
    return this.#queue.size;
  }

  get servable(): number {
    return this.#queue.size;
  }

  get first(): Waiter<C> | undefined {
    return this.#queue.head;
  }

  get nextDeadline(): number {
    const orderly = this.#firstOrderly?.heapKey ?? Infinity;
    const disorderly = this.#disorderly.peek()?.heapKey ?? Infinity;
    return Math.min(orderly, disorderly);
  }

  add(waiter: Waiter<C>, now: number, deadline: number): void {
    waiter.enqueuedAt = now;
    waiter.queued = true;
    waiter.orderly = false;
    waiter.heapKey = deadline;
    this.#queue.pushTail(waiter);
    if (deadline === Infinity) return;
    if (this.#firstOrderly === undefined) this.#firstOrderly = waiter;
    else if (deadline < this.#latestOrderlyDeadline) {
      this.#disorderly.push(waiter);
      return;
    }
    waiter.orderly = true;
    this.#latestOrderlyDeadline = deadline;
  }

  postpone(since: number, until: number): void {
    const late: Waiter<C>[] = [];
    for (let waiter = this.#queue.tail; waiter !== undefined; waiter = waiter.previous) {
      if (waiter.enqueuedAt < since) break;
      late.push(waiter);
    }
    for (const waiter of late) this.remove(waiter);
    for (const waiter of late.reverse()) this.add(waiter, until, waiter.heapKey + until - waiter.enqueuedAt);
  }

  shift(): Waiter<C> | undefined {
    const waiter = this.#queue.head;
    if (waiter !== undefined) this.remove(waiter);
    return waiter;
  }

  shiftExpired(now: number): Waiter<C> | undefined {
    const disorderly = this.#disorderly.peek();
    const waiter = disorderly !== undefined && disorderly.heapKey <= now ? disorderly : this.#firstOrderly;
    if (waiter === undefined || waiter.heapKey > now) return undefined;
    this.remove(waiter);
    return waiter;
  }

  remove(waiter: Waiter<C>): void {
    waiter.queued = false;
    if (waiter === this.#firstOrderly) {
      let next = waiter.next;
      while (next !== undefined && !next.orderly) next = next.next;
      this.#firstOrderly = next;
    }
    this.#disorderly.remove(waiter);
    this.#queue.remove(waiter);
  }
}

/** The idle connections in the order in which they became idle: the head has been idle for longest. */
import { LinkedList } from '../kernel/linked-list.js';
import type { PooledConnection } from './pooled-connection.js';

export class IdleConnections<C> implements Iterable<PooledConnection<C>> {
  readonly #list = new LinkedList<PooledConnection<C>>();
  #newestFirst: boolean;
  #expiring = 0;

  constructor(order: 'lifo' | 'fifo') {
    this.#newestFirst = order === 'lifo';
  }

  set order(order: 'lifo' | 'fifo') {
    this.#newestFirst = order === 'lifo';
  }

  get size(): number {
    return this.#list.size;
  }

  /** Idle connections that are not about to reach their end. */
  get spares(): number {
    return this.#list.size - this.#expiring;
  }

  /** The one to lend next. */
  get next(): PooledConnection<C> | undefined {
    return this.#newestFirst ? this.#list.tail : this.#list.head;
  }

  get longestIdle(): PooledConnection<C> | undefined {
    return this.#list.head;
  }

  /** The first that fits, in the order of lending. */
  find(fits: (connection: PooledConnection<C>) => boolean): PooledConnection<C> | undefined {
    let candidate = this.next;
    while (candidate !== undefined && !fits(candidate)) {
      candidate = this.#newestFirst ? candidate.previous : candidate.next;
    }
    return candidate;
  }

  /** Idle from now on. */
  add(connection: PooledConnection<C>, now: number): void {
    connection.state = 'idle';
    connection.idleSince = now;
    this.#list.pushTail(connection);
    if (connection.expiring) this.#expiring++;
  }

  /** Puts a connection back from a check, in its old place. */
  putBack(connection: PooledConnection<C>): void {
    connection.state = 'idle';
    let later = this.#list.head;
    while (later !== undefined && later.idleSince <= connection.idleSince) later = later.next;
    this.#list.insertBefore(later, connection);
    if (connection.expiring) this.#expiring++;
  }

  remove(connection: PooledConnection<C>): void {
    this.#list.remove(connection);
    if (connection.expiring) this.#expiring--;
  }

  /** An idle connection has come into the guard window of its end. */
  markExpiring(connection: PooledConnection<C>): void {
    connection.expiring = true;
    this.#expiring++;
  }

  [Symbol.iterator](): Iterator<PooledConnection<C>> {
    return this.#list[Symbol.iterator]();
  }
}

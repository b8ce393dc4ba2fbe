/** One client's wait for a server connection, in the queue of its pool. */
import type { PooledConnection } from '../../../core/pooled-connection.js';
import { systemClock } from '../../../runtime/system.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { GatheredClient } from '../../servers/gathering.js';
import type { RequestTimes } from './request-times.js';
import { ServerWaiter, type WaitingClient } from './server-waiter.js';

/** The place that the server connection is for. */
export interface WaitOwner {
  /** Limit of the wait in milliseconds; 0: no limit. */
  readonly longestWaitMs: number;
  /** The client will keep the server, as far as can be known. */
  readonly willReserve: boolean;
  /** The client's statement is known to be long. */
  readonly isLong: boolean;
  /** The wait has begun. */
  waits(): void;
  /** A server connection that works was granted. */
  served(pooled: PooledConnection<Backend>): void;
  notServed(error: Error): void;
}

/** The client, where its statements may share connections. */
export interface SharingStatements {
  /** Writes the client's held statement behind a statement of another client; false where that is not possible. */
  follow(backend: Backend): boolean;
}

export class ServerWait implements WaitingClient, GatheredClient {
  readonly #pool: BackendPool;
  readonly #owner: WaitOwner;
  readonly #times: RequestTimes;
  #waiter: ServerWaiter | undefined;
  /** The last waiter, if it is not the present one; reused. */
  #spare: ServerWaiter | undefined;
  /** Set before the first wait. */
  sharing: SharingStatements | undefined;
  /** The client waits for the end of the round, and is in no queue yet. */
  isGathered = false;
  /** The client was sent a notice that it waits. */
  hasNotice = false;

  constructor(pool: BackendPool, owner: WaitOwner, times: RequestTimes) {
    this.#pool = pool;
    this.#owner = owner;
    this.#times = times;
  }

  get isUnderWay(): boolean {
    return this.#waiter !== undefined || this.isGathered;
  }

  /** Begins a wait that is over at the end of the round, if a connection is idle then. */
  gather(): void {
    this.#times.waitingSince = systemClock.coarse();
    this.hasNotice = false;
    this.isGathered = true;
    this.#pool.gathering.add(this);
    this.#owner.waits();
  }

  lead(pooled: PooledConnection<Backend>): void {
    this.end();
    this.#times.waited();
    this.#owner.served(pooled);
  }

  queueUp(): void {
    this.isGathered = false;
    this.#enqueue();
  }

  begin(): void {
    this.#times.waitingSince = systemClock.coarse();
    this.hasNotice = false;
    this.#enqueue();
    this.#owner.waits();
  }

  #enqueue(): void {
    const { longestWaitMs, willReserve, isLong } = this.#owner;
    const spare = this.#spare;
    const waiter = spare?.isFree === true ? spare : new ServerWaiter(this);
    waiter.isReserved = willReserve;
    waiter.isLong = isLong;
    this.#pool.classes.waited(willReserve);
    this.#waiter = waiter;
    this.#pool.enqueue(waiter, longestWaitMs === 0 ? Number.POSITIVE_INFINITY : longestWaitMs);
  }

  granted(pooled: PooledConnection<Backend>, waiter: ServerWaiter): void {
    const { connection: backend, generation } = pooled;
    if (this.#waiter !== waiter) {
      // The client has cancelled the wait or disconnected meanwhile.
      this.#longEnds(waiter);
      this.#pool.release(backend, generation);
    } else if (backend.isLost) {
      this.#longEnds(waiter);
      this.#pool.lost(backend, generation, new Error('The server closed the connection.'));
      this.#enqueue();
    } else {
      this.end();
      this.#times.waited();
      this.#owner.served(pooled);
    }
  }

  longBegins(): void {
    this.#pool.classes.long.began();
  }

  /** The granted connection is not used. */
  #longEnds({ isLong }: ServerWaiter): void {
    if (isLong) this.#pool.classes.long.ended();
  }

  refused(error: Error, waiter: ServerWaiter): void {
    if (this.#waiter !== waiter) return;
    this.end();
    this.#owner.notServed(error);
  }

  follow(backend: Backend): boolean {
    return this.sharing?.follow(backend) === true;
  }

  /** The client has what it waited for, or an error. */
  end(): void {
    if (this.#waiter !== undefined) this.#spare = this.#waiter;
    this.#waiter = undefined;
    this.isGathered = false;
    this.#pool.tally.waitTimes.record(systemClock.coarse() - this.#times.waitingSince);
  }

  /** Ends the wait without a connection; false if there was none. */
  stop(): boolean {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    const wasGathered = this.isGathered;
    this.isGathered = false;
    if (waiter !== undefined) this.#pool.leave(waiter);
    return waiter !== undefined || wasGathered;
  }
}

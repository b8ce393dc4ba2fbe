/** Answers the callers in the queue: with a connection, an error, or a timeout. */
import type { Clock } from '../kernel/clock.js';
import type { Checkouts } from './checkouts.js';
import type { Dialing } from './dialing.js';
import { AcquireTimeoutError, ReservoirEmptyError } from './errors.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolFigures } from './pool-figures.js';
import type { PoolListener } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import type { PooledConnection } from './pooled-connection.js';
import type { ServiceState } from './service-state.js';
import type { Tally } from './tally.js';
import type { CallerQueue, Waiter } from './waiters.js';

export interface ServingParts<C> {
  readonly policy: PoolPolicy;
  readonly clock: Clock;
  readonly service: ServiceState<C>;
  readonly waiters: CallerQueue<C>;
  readonly connections: LiveConnections<C>;
  readonly checkouts: Checkouts<C>;
  readonly dialing: Dialing<C>;
  readonly figures: PoolFigures<C>;
  readonly tally: Tally;
  readonly listener: PoolListener<C> | undefined;
}

export class Serving<C> {
  readonly #policy: PoolPolicy;
  readonly #clock: Clock;
  readonly #service: ServiceState<C>;
  readonly #waiters: CallerQueue<C>;
  readonly #connections: LiveConnections<C>;
  readonly #checkouts: Checkouts<C>;
  readonly #dialing: Dialing<C>;
  readonly #figures: PoolFigures<C>;
  readonly #tally: Tally;
  readonly #listener: PoolListener<C> | undefined;

  constructor(parts: ServingParts<C>) {
    this.#policy = parts.policy;
    this.#clock = parts.clock;
    this.#service = parts.service;
    this.#waiters = parts.waiters;
    this.#connections = parts.connections;
    this.#checkouts = parts.checkouts;
    this.#dialing = parts.dialing;
    this.#figures = parts.figures;
    this.#tally = parts.tally;
    this.#listener = parts.listener;
  }

  /** Lends idle connections for as long as there are usable ones and callers for them. */
  serve(): void {
    if (this.#service.current === 'paused') return;
    const now = this.#clock.coarse();
    for (let servable = this.#waiters.servable; servable > 0; servable = this.#waiters.servable) {
      const connection = this.#connections.nextUsable(now, servable);
      if (connection === undefined) return;
      this.#connections.idle.remove(connection);
      this.grantToFirst(connection, now);
    }
  }

  /** Lends a connection that is in no list to the first in the queue. */
  grantToFirst(connection: PooledConnection<C>, now: number): void {
    const waiter = this.#waiters.shift() as Waiter<C>;
    const waitMs = Math.max(0, now - waiter.enqueuedAt);
    this.#tally.waited++;
    this.#tally.waitedMs += waitMs;
    this.#checkouts.begin(connection, now, waitMs, undefined, this.#waiters.size, waiter);
    waiter.granted(connection);
  }

  /** The first waiter is served by sharing, without a connection of its own. */
  shareFirst(): void {
    const waiter = this.#waiters.shift() as Waiter<C>;
    this.#tally.waited++;
    this.#tally.waitedMs += Math.max(0, this.#clock.coarse() - waiter.enqueuedAt);
    this.#checkouts.sharing++;
  }

  /** Answers a caller that has given up. */
  abort(waiter: Waiter<C>, error: Error): void {
    this.#waiters.remove(waiter);
    this.#tally.aborted++;
    this.#tally.waitedMs += this.#clock.now() - waiter.enqueuedAt;
    waiter.failed(error);
  }

  timeOut(now: number): void {
    for (let waiter = this.#waiters.shiftExpired(now); waiter; waiter = this.#waiters.shiftExpired(now)) {
      const waitMs = this.#clock.now() - waiter.enqueuedAt;
      this.#tally.timedOut++;
      this.#tally.waitedMs += waitMs;
      this.#listener?.timedOut(waitMs, waiter);
      const TimeoutError = this.#policy.reservoir === undefined ? AcquireTimeoutError : ReservoirEmptyError;
      const { lastError } = this.#dialing;
      waiter.failed(new TimeoutError(waitMs, this.#figures.counts(), lastError, this.#figures.whyWaiting()));
    }
  }

  /** Patient callers keep their places in the queue. */
  failImpatient(makeError: () => Error): void {
    const patient: Waiter<C>[] = [];
    for (const waiter of this.takeAll()) {
      if (waiter.isPatient) patient.push(waiter);
      else waiter.failed(makeError());
    }
    for (const waiter of patient) this.#waiters.add(waiter, waiter.enqueuedAt, waiter.heapKey);
  }

  failAll(makeError: () => Error): void {
    for (const waiter of this.takeAll()) waiter.failed(makeError());
  }

  /** Takes callers out of the queue without an answer, in its order, until it is empty. */
  *takeAll(): IterableIterator<Waiter<C>> {
    for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift())
      yield waiter;
  }
}

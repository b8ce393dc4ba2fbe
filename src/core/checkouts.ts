/** The connections in use: their number, the demand that they are part of, and those in use for so long that they look forgotten. */
import { DoubleReleaseError } from './errors.js';
import type { PoolListener } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import type { PooledConnection } from './pooled-connection.js';
import type { Tally } from './tally.js';
import type { CallerQueue } from './waiters.js';
import type { WakeUp } from './wake-up.js';

export interface CheckoutsParts<C> {
  readonly policy: PoolPolicy;
  readonly waiters: CallerQueue<C>;
  readonly wakeUp: WakeUp;
  readonly tally: Tally;
  readonly listener: PoolListener<C> | undefined;
}

export class Checkouts<C> {
  readonly #waiters: CallerQueue<C>;
  readonly #wakeUp: WakeUp;
  readonly #tally: Tally;
  readonly #listener: PoolListener<C> | undefined;
  readonly #leakThreshold: number;
  readonly #findsLeaks: boolean;
  #inUse = 0;
  /** Callers that share a connection that counts for another caller. */
  sharing = 0;
  /** The highest demand since it was last taken. Only a checkout and an arrival in the queue raise it. */
  #demandPeak = 0;

  constructor(parts: CheckoutsParts<C>) {
    this.#waiters = parts.waiters;
    this.#wakeUp = parts.wakeUp;
    this.#tally = parts.tally;
    this.#listener = parts.listener;
    this.#leakThreshold = parts.policy.leakThreshold;
    this.#findsLeaks = this.#leakThreshold !== Infinity;
  }

  get inUse(): number {
    return this.#inUse;
  }

  /** Connections in use, callers that wait for one, and callers that share one. */
  get demand(): number {
    return this.#inUse + this.#waiters.size + this.sharing;
  }

  /** Call after each arrival in the queue, with its size. */
  noteDemand(waiting: number): void {
    const demand = this.#inUse + waiting + this.sharing;
    if (demand > this.#demandPeak) this.#demandPeak = demand;
  }

  /** Checkouts that still last count for the next peak too: a long transaction is demand for as long as it lasts. */
  takeDemandPeak(): number {
    const peak = this.#demandPeak;
    this.#demandPeak = this.demand;
    return peak;
  }

  /**
   * Begins a checkout while `waiting` callers are in the queue. `holder` is shown in the report of a leak; `caller` comes
   * from the queue.
   */
  begin(
    connection: PooledConnection<C>,
    now: number,
    waitMs: number,
    holder: unknown,
    waiting: number,
    caller?: object,
  ): void {
    connection.state = 'in_use';
    connection.generation++;
    connection.inUseSince = now;
    this.#inUse++;
    this.noteDemand(waiting);
    this.#tally.acquired++;
    if (this.#findsLeaks) {
      connection.holder = holder;
      connection.leakReported = false;
      this.#wakeUp.by(now + this.#leakThreshold);
    } else if (connection.holder !== holder) connection.holder = holder;
    if (this.#listener?.wantsAcquires) this.#listener.acquired(connection, waitMs, caller);
  }

  /** The connection was released. */
  end(connection: PooledConnection<C>, now: number): void {
    this.#inUse--;
    if (this.#listener?.wantsReleases) this.#listener.released(connection, now - connection.inUseSince);
  }

  /** The connection is taken away from its caller. */
  cutShort(connection: PooledConnection<C>): void {
    connection.isTakenAway = true;
    this.#inUse--;
  }

  /** True if a release comes too late: a mistake, unless the connection was taken away, and then once. */
  isOver(connection: PooledConnection<C>, generation: number): boolean {
    if (connection.state === 'in_use' && connection.generation === generation) return false;
    if (!connection.isTakenAway || connection.generation !== generation) throw new DoubleReleaseError();
    connection.isTakenAway = false;
    return true;
  }

  /** Reports each checkout that has lasted too long, once, and sets the alarm for the next. */
  reportLeaks(live: Iterable<PooledConnection<C>>, now: number): void {
    if (!this.#findsLeaks) return;
    for (const connection of live) {
      if (connection.state !== 'in_use' || connection.leakReported) continue;
      const reportAt = connection.inUseSince + this.#leakThreshold;
      if (reportAt > now) {
        this.#wakeUp.by(reportAt);
        continue;
      }
      connection.leakReported = true;
      this.#tally.leaks++;
      this.#listener?.leaked(connection, now - connection.inUseSince);
    }
  }
}

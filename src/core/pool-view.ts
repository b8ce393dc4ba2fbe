/** The read access to a pool. Nothing here changes the pool, except `takeDemandPeak()`, which begins the next peak, `shareBegan()` and `shareEnded()`. */
import type { PoolAssembly } from './pool-assembly.js';
import type { PoolCounts, PoolState } from './pool-counts.js';
import type { PoolStats, PoolTotals } from './pool-stats.js';
import type { PooledConnection } from './pooled-connection.js';
import type { Waiter } from './waiters.js';

export abstract class PoolView<C> {
  protected abstract readonly parts: PoolAssembly<C>;

  get state(): PoolState {
    return this.parts.service.current;
  }

  get limit(): number {
    return this.parts.ledger.limit;
  }

  get pending(): number {
    return this.parts.ledger.pending;
  }

  get live(): number {
    return this.parts.ledger.live;
  }

  get idle(): number {
    return this.parts.connections.idle.size;
  }

  get inUse(): number {
    return this.parts.checkouts.inUse;
  }

  get waiting(): number {
    return this.parts.waiters.size;
  }

  /** Connections in use, and callers that wait for one. */
  get demand(): number {
    return this.parts.checkouts.demand;
  }

  /** Connections wanted ready on top of `demand`, as far as the limit allows: reservoir, `minIdle`, warmup, keeper. */
  get readyDemand(): number {
    return this.parts.figures.readyDemand;
  }

  /** Number of free slots. */
  /** Connections that are open, opening or closing. */
  get total(): number {
    return this.parts.ledger.total;
  }

  get room(): number {
    return this.parts.ledger.room;
  }

  /** Start of the longest idle time; undefined if no connection is idle. */
  get longestIdleSince(): number | undefined {
    return this.parts.connections.idle.longestIdle?.idleSince;
  }

  /** Start of the oldest dial under way; undefined if there is none. */
  get dialingSince(): number | undefined {
    return this.parts.dialing.dials.oldest?.startedAt;
  }

  /** Time of the last successful dial; undefined before the first. */
  get openedAt(): number | undefined {
    return this.parts.dialOutcomes.openedAt;
  }

  /** The highest demand since this was last asked. */
  takeDemandPeak(): number {
    return this.parts.checkouts.takeDemandPeak();
  }

  /** Dials that failed since the last that did not. */
  get failedDials(): number {
    return this.parts.dialing.failures;
  }

  /** Why the last dial failed, while dialing is failing. */
  get lastDialError(): Error | undefined {
    return this.parts.dialing.lastError;
  }

  /** The wait cause as a sentence. Call it only while a caller waits. */
  whyWaiting(): string {
    return this.parts.figures.whyWaiting();
  }

  /**
   * The first waiter, if sharing a connection in use is the best that can be done for it. While more connections may be
   * opened, as many callers stay in the queue as it takes to have them opened.
   */
  get firstToShare(): Waiter<C> | undefined {
    const { ledger, dialing, waiters, service } = this.parts;
    const kept = ledger.room === 0 ? 0 : dialing.dials.underWay + 1;
    return waiters.servable > kept && service.current === 'open' ? waiters.first : undefined;
  }

  /**
   * All connections would be in use if callers did not share any. `more`: callers about to ask for one. False while callers wait, and
   * while more connections may be opened.
   */
  isCrowdedWith(more: number): boolean {
    const { ledger, waiters, service, checkouts } = this.parts;
    const { inUse, sharing } = checkouts;
    const isWhole = ledger.room === 0 && waiters.servable === 0 && service.current === 'open';
    return isWhole && inUse + sharing + more >= ledger.live;
  }

  /** Open connections, if no more may be opened. */
  get finalSize(): number | undefined {
    const { ledger } = this.parts;
    return ledger.room === 0 ? ledger.live : undefined;
  }

  /** A caller shares a connection until `shareEnded()` without having been in the queue. */
  shareBegan(): void {
    const { checkouts, waiters } = this.parts;
    checkouts.sharing++;
    checkouts.noteDemand(waiters.size);
  }

  /** A caller that shared a connection got its own, or no longer wants one. */
  shareEnded(): void {
    this.parts.checkouts.sharing--;
  }

  counts(): PoolCounts {
    return this.parts.figures.counts();
  }

  totals(): PoolTotals {
    return this.parts.figures.totals();
  }

  /** Waiters without a dial because the rate limiter has no permit. */
  get waitingForPermit(): number {
    return this.parts.figures.waitingForPermit;
  }

  stats(): PoolStats {
    return this.parts.figures.stats();
  }

  /** The live connections, in the order in which they were opened. */
  connections(): IterableIterator<PooledConnection<C>> {
    return this.parts.connections.all();
  }
}

/** All that can be seen of a pool from outside. Nothing here changes it, but for `takeDemandPeak()`, which begins the next peak. */
import type { PoolAssembly } from './pool-assembly.js';
import type { PoolCounts, PoolState, PoolStats } from './pool-stats.js';
import type { PooledConnection } from './pooled-connection.js';

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

  get lent(): number {
    return this.parts.checkouts.lent;
  }

  get waiting(): number {
    return this.parts.waiters.size;
  }

  /** Connections in use, and callers that wait for one. */
  get demand(): number {
    return this.parts.checkouts.demand;
  }

  /** Connections wanted ready on top of `demand`, as far as the limit leaves room: reservoir, `minIdle`, warmup, keeper. */
  get readyDemand(): number {
    return this.parts.figures.readyDemand;
  }

  /** How many slots are free. */
  get room(): number {
    return this.parts.ledger.room;
  }

  /** Since when the longest idle connection is idle; undefined where none is. */
  get longestIdleSince(): number | undefined {
    return this.parts.connections.idle.longestIdle?.idleSince;
  }

  /** When the oldest dial under way began; undefined where none is. */
  get dialingSince(): number | undefined {
    return this.parts.dialing.dials.oldest?.startedAt;
  }

  /** When a dial succeeded last; undefined where none ever did. */
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

  /** What callers wait for, as a sentence. Ask only while someone waits. */
  whyWaiting(): string {
    return this.parts.figures.whyWaiting();
  }

  counts(): PoolCounts {
    return this.parts.figures.counts();
  }

  stats(): PoolStats {
    return this.parts.figures.stats();
  }

  /** The live connections, in the order in which they were opened. */
  connections(): IterableIterator<PooledConnection<C>> {
    return this.parts.connections.all();
  }
}

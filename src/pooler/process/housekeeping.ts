/** Periodic work: client timeouts, pool sizes, unused pools, files and averages. */

import { Pauses } from '../../runtime/pauses.js';
import { systemClock } from '../../runtime/system.js';
import { timeouts } from '../clients/session-errors.js';
import { housekeepingPauseOf } from '../config/housekeeping-pause.js';
import { poolKeptFor } from '../config/pool-settings.js';
import { limitWithReserve } from '../config/reserve.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { endLogin } from './pending-clients.js';
import type { PoolerState } from './pooler-state.js';

export class Housekeeping {
  readonly #pooler: PoolerState;
  readonly #everyPeriod: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #periodBegan = systemClock.now();

  /** `everyPeriod` is called once per `stats_period`. */
  constructor(pooler: PoolerState, everyPeriod: () => void) {
    this.#pooler = pooler;
    this.#everyPeriod = everyPeriod;
  }

  /** Runs now, and from then on periodically. */
  start(): void {
    void this.#look().then(() => {
      if (this.#isStopped) return;
      this.#timer = setTimeout(() => this.start(), housekeepingPauseOf(this.#pooler.config)).unref();
    });
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Clients are served between the pools, of which there may be thousands. */
  async #look(): Promise<void> {
    const pooler = this.#pooler;
    const { timeouts, pooling, logging, databases, fairShares } = pooler.config;
    const now = systemClock.now();
    const inUse = new Set<BackendPool>();
    /** Start of the longest wait of each pool. */
    const waits = new Map<BackendPool, number>();
    for (const session of pooler.sessions) {
      const { pool } = session;
      inUse.add(pool);
      if (session.state === 'waiting')
        waits.set(pool, Math.min(session.times.waitingSince, waits.get(pool) ?? Number.POSITIVE_INFINITY));
      session.checkTimeouts(now, timeouts.queryWaitNotify);
    }
    this.#checkVisitors(now);
    if (!pooler.isShuttingDown) pooler.pools.makeKept((database) => pooler.disabledDatabases.has(database));
    const pauses = new Pauses();
    for (const entry of pooler.pools.entries()) {
      const { pool, leases } = entry;
      // As in PgBouncer, a pool without clients keeps no connections unless the configuration names its user.
      const isKept = inUse.has(pool) || databases.get(pool.database)?.user === pool.user;
      pool.keep(leases.partToKeep(isKept ? pool.limits.minPoolSize : 0));
      const waitedMs = now - (waits.get(pool) ?? now);
      // As with PgBouncer, connections of the reserve stay open until they are idle for too long.
      const { reservePoolTimeout } = pooling;
      const limit = limitWithReserve(pool, pool.limits, reservePoolTimeout, waitedMs, pooler.isPgBouncer);
      if (limit !== pool.limit) pool.setLimit(limit);
      pool.classes.resplit(Math.min(pool.limit, leases.share), fairShares.reservedRatio);
      pooler.pools.forgetIfUnused(entry, inUse.has(pool), poolKeptFor(pooler.config, pool.database));
      // Before the next entry is taken, since entries go meanwhile.
      const pause = pauses.afterStep();
      if (pause !== undefined) await pause;
      if (this.#isStopped) return;
    }
    void pooler.files.look();
    if (now - this.#periodBegan < logging.statsPeriod) return;
    this.#periodBegan = now;
    this.#everyPeriod();
  }

  /** As with PgBouncer, the query timeout includes the wait for the server that a login needs. */
  #checkVisitors(now: number): void {
    const { isPgBouncer, pendingClients } = this.#pooler;
    if (!isPgBouncer) return;
    for (const pending of pendingClients) {
      const { waitsFor } = pending;
      if (waitsFor === undefined) continue;
      const { queryTimeout } = waitsFor.pool.limits;
      if (queryTimeout > 0 && now - waitsFor.since >= queryTimeout)
        endLogin(pending, timeouts.queryWait(queryTimeout));
    }
  }
}

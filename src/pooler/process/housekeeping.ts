/** Periodic work: client timeouts, pool sizes, unused pools, files and averages. */
import { systemClock } from '../../runtime/system.js';
import { checkTimeouts } from '../clients/relay/session-timeouts.js';
import { timeouts } from '../clients/session-errors.js';
import { poolKeptFor } from '../config/pool-settings.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { type PoolerState, sendAway } from './pooler-state.js';

const longestPauseMs = 1_000;
const shortestPauseMs = 20;
/** A timeout is noticed late by at most this fraction of it. */
const exactness = 4;

export class Housekeeping {
  readonly #pooler: PoolerState;
  readonly #everyPeriod: () => void;
  #timer: NodeJS.Timeout | undefined;
  #periodBegan = systemClock.now();

  /** `everyPeriod` is called once per `stats_period`. */
  constructor(pooler: PoolerState, everyPeriod: () => void) {
    this.#pooler = pooler;
    this.#everyPeriod = everyPeriod;
    this.#timer = undefined;
  }

  /** Runs now, and from then on periodically. */
  start(): void {
    this.look();
    this.#timer = setTimeout(() => this.start(), pauseFor(this.#pooler.config)).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  look(): void {
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
        waits.set(pool, Math.min(session.waitingSince, waits.get(pool) ?? Number.POSITIVE_INFINITY));
      checkTimeouts(session, now, timeouts.queryWaitNotify);
    }
    this.#checkVisitors(now);
    if (!pooler.isShuttingDown) pooler.pools.makeKept((database) => pooler.disabledDatabases.has(database));
    for (const { pool, leases } of pooler.pools.entries()) {
      // As in PgBouncer, a pool without clients keeps no connections unless the configuration names its user.
      const isKept = inUse.has(pool) || databases.get(pool.database)?.user === pool.user;
      pool.keep(leases.partToKeep(isKept ? pool.limits.minPoolSize : 0));
      const waitedMs = now - (waits.get(pool) ?? now);
      if (setReserve(pool, waitedMs, pooling.reservePoolTimeout)) pool.openingWatcher?.reserveTaken();
      pool.classes.resplit(Math.min(pool.limit, leases.share), fairShares.reservedRatio);
    }
    pooler.pools.forget(
      (pool) => inUse.has(pool),
      ({ pool }) => poolKeptFor(pooler.config, pool.database),
    );
    void pooler.files.look();
    if (now - this.#periodBegan < logging.statsPeriod) return;
    this.#periodBegan = now;
    this.#everyPeriod();
  }

  /** As with PgBouncer, the query timeout includes the wait for the server that a login needs. */
  #checkVisitors(now: number): void {
    const { isPgBouncer, visitors } = this.#pooler;
    if (!isPgBouncer) return;
    for (const visitor of visitors) {
      const { waitsFor } = visitor;
      if (waitsFor === undefined) continue;
      const { queryTimeout } = waitsFor.pool.limits;
      if (queryTimeout > 0 && now - waitsFor.since >= queryTimeout)
        sendAway(visitor, timeouts.queryWait(queryTimeout));
    }
  }
}

/** Opens the reserve while a client waits for long, and until the pool is back at its size. Returns whether it is new. */
function setReserve(pool: BackendPool, waitedMs: number, afterMs: number): boolean {
  const { poolSize, reservePoolSize } = pool.limits;
  if (reservePoolSize === 0 || afterMs === 0) {
    if (pool.limit !== poolSize) pool.setLimit(poolSize);
    return false;
  }
  const { lent, waiting } = pool.stats();
  const isNew = waitedMs >= afterMs && pool.limit < poolSize + reservePoolSize;
  if (waitedMs >= afterMs) pool.setLimit(poolSize + reservePoolSize);
  else if (pool.limit > poolSize && waiting === 0 && lent <= poolSize) pool.setLimit(poolSize);
  return isNew;
}

/** Short timeouts need a shorter interval. */
function pauseFor({ timeouts, users, pooling }: PoolerConfig): number {
  const limits = [
    timeouts.queryWaitNotify,
    timeouts.queryTimeout,
    timeouts.transactionTimeout,
    timeouts.idleTransactionTimeout,
    timeouts.clientIdleTimeout,
    timeouts.clientWriteTimeout,
    pooling.reservePoolTimeout,
    ...[...users.values()].flatMap((user) => [
      user.queryTimeout,
      user.transactionTimeout,
      user.idleTransactionTimeout,
      user.clientIdleTimeout,
    ]),
  ].filter((limit): limit is number => limit !== undefined && limit > 0);
  const shortest = Math.min(...limits, longestPauseMs * exactness);
  return Math.max(shortestPauseMs, Math.min(longestPauseMs, shortest / exactness));
}

/** How often the pooler looks after timeouts and pool sizes. */
import { housekeepingIntervalOf } from './pool-settings.js';
import type { PoolerConfig } from './pooler-config.js';

const shortestPauseMs = 20;
/** A timeout is noticed late by at most this fraction of it. */
const exactness = 4;

/** Short timeouts need a shorter interval. */
export function housekeepingPauseOf(config: PoolerConfig): number {
  const { timeouts, users, pooling } = config;
  const longestPauseMs = housekeepingIntervalOf(config);
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

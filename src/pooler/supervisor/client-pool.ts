/** The pool that a client will use, determined before its login, and the number of workers that the pool has enough connections for. */

import type { ServerBudgets } from '../budgets/server-budgets.js';
import { serverOf } from '../config/fleet-settings.js';
import { poolSettingsFor } from '../config/pool-settings.js';
import { consoleDatabases, databaseFor, type PoolerConfig } from '../config/pooler-config.js';
import type { ClientPool, Newcomer } from './client-placement.js';

/** Number of connections that each worker of a pool should have. */
const connectionsPerWorker = 2;

/** Undefined for the console, and for a database that is not configured. */
export function clientPoolOf(config: PoolerConfig, user: string, database: string): ClientPool | undefined {
  const known = consoleDatabases.includes(database) ? undefined : databaseFor(config, database);
  if (known === undefined) return undefined;
  const poolUser = known.user ?? user;
  const { poolSize, reservePoolSize } = poolSettingsFor(config, known, poolUser);
  return {
    key: JSON.stringify([known.name, poolUser]),
    user: poolUser,
    database: known.name,
    server: serverOf(known),
    size: poolSize + reservePoolSize,
  };
}

/** At least 1. */
export function workersFor(
  budgets: Pick<ServerBudgets, 'expectedShareOf'>,
  pool: ClientPool,
  newcomers: readonly Newcomer[],
): number {
  const others = newcomers.map(({ pool: other, clients }) => [other, clients] as const);
  const connections = Math.min(pool.size, budgets.expectedShareOf(pool, others));
  return Math.max(1, Math.floor(connections / connectionsPerWorker));
}

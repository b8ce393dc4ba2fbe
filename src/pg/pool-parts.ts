/**
 * Parts of a pool, in a property with a symbol, where other classes have private fields: programs put pools behind a
 * `Proxy`, above all to make them on first use, and a method called on that finds no private field.
 */
import type { ConnectionPool } from '../core/connection-pool.js';
import type { ClientCheckouts } from './client-checkouts.js';
import type { ClientCounts } from './client-counts.js';
import type { ConnectCalls } from './connect-calls.js';
import type { PgConnection } from './pg-connection.js';
import type { PoolConnects } from './pool-connects.js';
import type { PoolQueries } from './pool-queries.js';

export const parts = Symbol('headgate.parts');

export interface PoolParts<P> {
  /** The pool itself, whatever a method was called on. */
  readonly pool: P;
  readonly engine: ConnectionPool<PgConnection>;
  readonly checkouts: ClientCheckouts;
  readonly queries: PoolQueries;
  readonly connects: PoolConnects;
  readonly calls: ConnectCalls;
  readonly counts: ClientCounts;
  /** Callers are not recorded, and the program set no promise class of its own. */
  isPlain: boolean;
}

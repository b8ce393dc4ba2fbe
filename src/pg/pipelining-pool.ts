/** The part of a pool that pipelining uses. */
import type { PooledConnection } from '../core/pooled-connection.js';
import type { PgClient, QueryCallback } from './client.js';
import type { PgConnection } from './pg-connection.js';

export type Pooled = PooledConnection<PgConnection>;
export type ReleasableClient = PgClient & { release: (error?: unknown) => void };

/** The pool as the pipeline sees it. */
export interface PipeliningPool {
  /** Turns a connection in use into a client for one caller. */
  checkOut(pooled: Pooled): ReleasableClient;
  /** Runs one query on a connection of its own. */
  runAlone(pooled: Pooled, text: unknown, values: unknown, callback: QueryCallback): void;
}

/** The public interface of the drop-in: everything of `pg.Pool`, and Headgate's additions. */
import type { Pool as PgPool, PoolClient as PgPoolClient } from 'pg';
import type { Leases } from '../core/leases.js';
import type { PoolStats } from '../core/pool-stats.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import type { Duration } from '../kernel/duration.js';
import type { PoolOptions } from './pool-options.js';

/** Options of one checkout. */
export interface ConnectOptions {
  /** Time to wait, queue included; 0: for ever. Default: the pool's `connectionTimeoutMillis`. */
  readonly timeout?: Duration | undefined;
  /** Stops the wait. */
  readonly signal?: AbortSignal | undefined;
}

/** One connection of a pool, at one moment. */
export interface ConnectionLife {
  readonly ageMs: number;
  /** Time until it is no longer handed out; Infinity without a maximum lifetime. */
  readonly remainingMs: number;
}

/** A checked-out client: `client.release()` gives it back, and so does the end of an `await using` block. */
export interface PoolClient extends PgPoolClient, AsyncDisposable {}

export type ConnectCallback = (
  error: Error | undefined,
  client: PoolClient | undefined,
  release: (error?: unknown) => void,
) => void;

/**
 * A `pg.Pool` that never has more connections than `max`, closing ones included.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 *
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 20 });
 *
 * const { rows } = await pool.query('SELECT $1::int + 1 AS answer', [41]);
 *
 * await using client = await pool.connect({ timeout: '2s' });
 * await client.query('BEGIN');
 * await client.query('COMMIT');
 * ```
 */
export interface Pool extends PgPool, AsyncDisposable {
  /** Checks out a client, in the order of the callers. Release it with `client.release()`. */
  connect(options?: ConnectOptions): Promise<PoolClient>;
  connect(callback: ConnectCallback): void;
  connect(options: ConnectOptions, callback: ConnectCallback): void;

  /** A ready client, at once, or undefined. */
  tryConnect(): PoolClient | undefined;

  /**
   * Refuses new callers, serves the queue, and is done when every socket is closed. At the deadline (default: none)
   * callers still in the queue are refused, and the sockets of clients still checked out are destroyed.
   */
  end(options?: { readonly deadline?: Duration | undefined }): Promise<void>;
  end(callback: () => void): void;

  /** The numbers of this instant. */
  stats(): PoolStats;

  /** The age of each connection, and the time for which it may still be handed out. */
  lives(): IterableIterator<ConnectionLife>;

  /** Changes `max`. Clients above it are closed: idle ones now, checked-out ones when they are released. */
  resize(max: number): void;

  /** Hands out nothing and opens nothing until `resume()`. Callers queue, and their timeouts go on. */
  pause(): void;
  resume(): void;

  /**
   * Opens clients until `count` exist (default: `minIdle`). Rejects when they don't within `timeout` (30 s). With a
   * reservoir and without a `count`, it waits for the first fill, and when that takes too long it warns and goes on.
   */
  ready(count?: number, options?: { readonly timeout?: Duration | undefined }): Promise<void>;

  /** The pool's name in metrics and messages. */
  readonly name: string;
  /** The budget above `max`, and the limiter of how fast connections are opened: those given as options. */
  readonly leases: Leases | undefined;
  readonly rateLimiter: RateLimiter | undefined;
}

/** The class of such pools. A `Client` class may stand in for `pg.Client`, as the second argument or as an option. */
export interface PoolClass extends Omit<typeof PgPool, 'prototype'> {
  new (options?: PoolOptions | null, Client?: unknown): Pool;
  readonly prototype: Pool;
}

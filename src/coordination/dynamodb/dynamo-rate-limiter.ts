/** One limit on how fast a whole fleet opens connections, kept in DynamoDB. */
import type { RateLimiter } from '../../core/rate-limiter.js';
import { DynamoTable } from './dynamo-table.js';
import { type DynamoRateLimiterOptions, readRateOptions } from './options.js';
import { TableRateLimiter, type TableRateLimiterStats } from './table-rate-limiter.js';

/**
 * A rate that all instances of a fleet share: in no window of time they open more than `burst + rate * time`.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 * import { DynamoRateLimiter } from 'headgate/dynamodb';
 *
 * const rateLimiter = new DynamoRateLimiter({ table: 'connections', endpoint: 'db.example.com', rate: 90, burst: 800 });
 * const pool = new Pool({ max: 50, rateLimiter });
 *
 * await pool.end();
 * ```
 */
export class DynamoRateLimiter implements RateLimiter {
  readonly #limiter: TableRateLimiter;

  constructor(options: DynamoRateLimiterOptions) {
    const { table, settings, world } = readRateOptions(options);
    this.#limiter = new TableRateLimiter(new DynamoTable(table), settings, world);
  }

  get rate(): number {
    return this.#limiter.rate;
  }

  take(now: number, isUrgent?: boolean): number {
    return this.#limiter.take(now, isUrgent);
  }

  refused(now: number): void {
    this.#limiter.refused(now);
  }

  opened(): void {
    this.#limiter.opened();
  }

  stats(): TableRateLimiterStats {
    return this.#limiter.stats();
  }
}

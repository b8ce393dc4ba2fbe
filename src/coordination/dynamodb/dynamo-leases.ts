/** One limit on the connections of a whole fleet, kept in DynamoDB. */
import type { LeaseAnswer, LeaseHolder, Leases } from '../../core/leases.js';
import type { Duration } from '../../kernel/duration.js';
import { OptionReader } from '../../kernel/option-reader.js';
import { DynamoTable } from './dynamo-table.js';
import { type DynamoLeasesOptions, readLeaseOptions } from './options.js';
import type { CallWorld } from './table-calls.js';
import { TableLeases, type TableLeasesStats } from './table-leases.js';

/**
 * Leases that all instances of a fleet share: together they never have more than `limit` connections.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 * import { DynamoLeases } from 'headgate/dynamodb';
 *
 * const leases = new DynamoLeases({ table: 'connections', endpoint: 'db.example.com', limit: 500, region: 'us-east-1' });
 * const pool = new Pool({ max: 50, leases });
 *
 * await pool.end();
 * await leases.end();
 * ```
 */
export class DynamoLeases implements Leases {
  readonly #leases: TableLeases;
  readonly #world: CallWorld;

  constructor(options: DynamoLeasesOptions) {
    const { table, settings, world, log } = readLeaseOptions(options);
    this.#world = world;
    this.#leases = new TableLeases(new DynamoTable(table), settings, world, log);
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    return this.#leases.acquire(count, holder);
  }

  release(count: number, holder: LeaseHolder): void {
    this.#leases.release(count, holder);
  }

  /** The leases held, by holder, and the state of the table. */
  stats(): TableLeasesStats {
    return this.#leases.stats();
  }

  /**
   * Releases all slots as soon as no pool uses any; waits at most `timeout` (default `5s`). True when the table has
   * them. For the end of a program, after its pools have been closed. Other instances later reclaim what was not
   * released.
   */
  end(options: { readonly timeout?: Duration | undefined } = {}): Promise<boolean> {
    const read = new OptionReader(options);
    const timeoutMs = read.duration('timeout', 5_000, 0);
    read.refuseUnknown();
    read.throwIfAnyProblem();
    return new Promise((resolve) => {
      const alarm = this.#world.alarm(() => {
        this.#leases.abandon();
        resolve(false);
      });
      alarm.set(this.#world.clock.now() + timeoutMs, true);
      this.#leases.end(() => {
        alarm.clear();
        resolve(true);
      });
    });
  }
}

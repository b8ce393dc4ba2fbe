// A stand-in for Aurora DSQL with two counters and a table of notes, and a new pool for each test.
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { transactionsOf } from '../../../src/dsql/transaction/pool-transactions.js';
import { DsqlPool } from '../../../src/dsql.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { EventLog } from './event-log.js';

/** Short waits, so that tests need not wait. */
export const quick = { backoffBase: 1, backoffCap: 5, outageBackoffBase: 1, outageBackoffCap: 20 };

export class Scene {
  dsql!: TestDsql;
  pool!: DsqlPool;
  events!: EventLog;

  constructor() {
    beforeAll(async () => {
      this.dsql = await startTestDsql();
      await this.dsql.run(
        'CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)',
        'CREATE TABLE notes (id uuid PRIMARY KEY, text text NOT NULL)',
      );
    });
    afterAll(() => this.dsql.stop());
    beforeEach(async () => {
      await this.dsql.run(
        'DELETE FROM counters',
        'DELETE FROM notes',
        'INSERT INTO counters VALUES (1, 0), (2, 0)',
      );
      this.pool = this.makePool();
      this.events = new EventLog();
      transactionsOf(this.pool).listeners.add(this.events);
    });
    afterEach(async () => {
      this.dsql.setFaults({});
      // Every checkout of a transaction came back.
      expect(this.pool.stats().inUse).toBe(0);
      if (!this.pool.ending) await this.pool.end();
      await this.dsql.reset();
      expect(this.dsql.troubles).toEqual([]);
    });
  }

  makePool(options: object = {}): DsqlPool {
    const { connection, credentials } = this.dsql;
    return new DsqlPool({
      ...connection,
      credentials,
      max: 16,
      warmup: false,
      keeper: false,
      env: {},
      ...options,
    });
  }

  /** Another pool in place of the usual one. */
  async usePool(options: object): Promise<void> {
    await this.pool.end();
    this.pool = this.makePool(options);
  }

  async counter(id: number): Promise<number> {
    const { rows } = await this.pool.query<{ n: number }>('SELECT n FROM counters WHERE id = $1', [id]);
    return rows[0]?.n ?? Number.NaN;
  }

  async noteCount(): Promise<number> {
    const { rows } = await this.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM notes');
    return rows[0]?.n ?? Number.NaN;
  }

  /** A transaction that adds one, and does something else between reading and writing. */
  increment(between: (attempt: number) => unknown = () => {}, options: object = {}): Promise<number> {
    let attempt = 0;
    return this.pool.transaction(
      async (client) => {
        attempt++;
        const { rows } = await client.query('SELECT n FROM counters WHERE id = 1');
        await between(attempt);
        await client.query('UPDATE counters SET n = $1 WHERE id = 1', [rows[0].n + 1]);
        return rows[0].n + 1;
      },
      { ...quick, ...options },
    );
  }
}

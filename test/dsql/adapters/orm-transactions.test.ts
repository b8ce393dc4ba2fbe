// The transactions of Kysely, Drizzle and Prisma on the stand-in: conflicts that are certain, lost answers, lost connections.
import type pg from 'pg';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type AdapterOptions,
  CommitOutcomeUnknownError,
  DsqlPool,
  TransactionAbortedError,
  TransactionMisuseError,
  TransactionRetriesExhaustedError,
  TransactionRolledBackError,
} from '../../../src/dsql.js';
import { exposePool } from '../../../src/prometheus.js';
import { whenCommitIsSent } from '../../support/commit-watch.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { orms, type RetriedOrm, table } from './orms.js';

let dsql: TestDsql;
let pool: DsqlPool;
let admin: pg.Client | undefined;
beforeAll(async () => {
  dsql = await startTestDsql();
  await run(`CREATE TABLE ${table} (id int PRIMARY KEY, owner text NOT NULL, balance int NOT NULL)`);
});
afterAll(async () => {
  await closeAdmin();
  await dsql.stop();
});
beforeEach(async () => {
  await run(`DELETE FROM ${table}`);
  await run(`INSERT INTO ${table} VALUES (1, 'alice', 100)`);
  const { connection, credentials } = dsql;
  const few = { max: 4, warmup: false, keeper: false } as const;
  pool = new DsqlPool({ ...connection, credentials, ...few, env: {}, name: 'orders' });
});
afterEach(async () => {
  dsql.setFaults({});
  // Nothing is left checked out, whatever has failed.
  expect(pool.stats().inUse).toBe(0);
  await pool.end();
  expect(dsql.troubles).toEqual([]);
});

/** On a connection of its own. */
async function run(text: string): Promise<pg.QueryResult> {
  admin ??= await dsql.connect();
  return admin.query(text);
}

/** Before the stand-in drops all connections. */
async function closeAdmin(): Promise<void> {
  await admin?.end();
  admin = undefined;
}

const quick = { backoffBase: 1, backoffCap: 1, outageBackoffBase: 1, outageBackoffCap: 1 };

/** Committed by another client, so that a transaction that has read the row conflicts with it. */
async function disturb(): Promise<void> {
  await run(`UPDATE ${table} SET balance = balance + 1 WHERE id = 1`);
}

async function balance(): Promise<number> {
  return (await run(`SELECT balance FROM ${table} WHERE id = 1`)).rows[0].balance;
}

describe.each(orms)('%s', (_name, make) => {
  const open = (options: AdapterOptions = {}): RetriedOrm => make(pool, { ...quick, ...options });

  test('the adapter of an ORM runs a transaction again that lost a conflict at COMMIT, and returns what the last attempt returned', async () => {
    let attempts = 0;
    const result = await open().transaction(async ({ read, write }) => {
      attempts++;
      const before = await read(1);
      if (attempts <= 2) await disturb();
      await write(1, before + 10);
      return before;
    });
    expect([attempts, result, await balance()]).toEqual([3, 102, 112]);
  });

  test('the adapter of an ORM loses no update of many transactions at once', async () => {
    const { transaction } = open({ maxAttempts: 100 });
    await Promise.all(
      Array.from({ length: 20 }, () => transaction(async ({ read, write }) => write(1, (await read(1)) + 1))),
    );
    expect(await balance()).toBe(120);
  });

  test('the adapter of an ORM runs a transaction again whose statement found another schema', async () => {
    const { transaction } = open();
    await transaction(({ read }) => read(1));
    await run('CREATE TABLE another (id int PRIMARY KEY)');
    await run('DROP TABLE another');
    let attempts = 0;
    const read = transaction(async ({ read }) => {
      attempts++;
      return read(1);
    });
    expect([await read, attempts]).toEqual([100, 2]);
  });

  test('the adapter of an ORM gives up after the last attempt, with the error of the ORM as the cause', async () => {
    dsql.setFaults({ conflictShare: 1 });
    const error = await rejectionOf(open({ maxAttempts: 3 }).transaction(({ write }) => write(1, 5)));
    expect(error).toBeInstanceOf(TransactionRetriesExhaustedError);
    expect(error).toMatchObject({ attempts: 3, reason: 'attempts' });
    expect(await balance()).toBe(100);
  });

  test("the adapter of an ORM passes on the program's own errors and the ORM's as they are, and rolls back", async () => {
    const { transaction, insert, duplicate } = open();
    const own = new Error('not enough');
    let attempts = 0;
    const refused = transaction(async ({ write }) => {
      attempts++;
      await write(1, 5);
      throw own;
    });
    expect(await rejectionOf(refused)).toBe(own);
    expect(await rejectionOf(insert(1))).toMatchObject(duplicate);
    expect([attempts, await balance()]).toEqual([1, 100]);
  });

  test('the adapter of an ORM does not run a transaction again whose COMMIT may have taken effect', async () => {
    dsql.setFaults({ unavailableAfterCommit: 1 });
    let attempts = 0;
    const error = await rejectionOf(
      open().transaction(async ({ write }) => {
        attempts++;
        await write(1, 5);
      }),
    );
    expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
    expect([attempts, await balance()]).toEqual([1, 5]);
  });

  test('the adapter of an ORM asks verify about a lost answer, and runs it again only if it was not committed', async () => {
    let attempts = 0;
    const verify = async (): Promise<boolean> => {
      dsql.setFaults({});
      return (await balance()) !== 100;
    };
    const set = (): Promise<string> =>
      open({ verify }).transaction(async ({ write }) => {
        attempts++;
        await write(1, 200 + attempts);
        return `attempt ${attempts}`;
      });
    dsql.setFaults({ unavailableBeforeCommit: 1 });
    expect([await set(), attempts, await balance()]).toEqual(['attempt 2', 2, 202]);
    dsql.setFaults({ unavailableAfterCommit: 1 });
    expect([await set(), attempts, await balance()]).toEqual(['attempt 3', 3, 203]);
  });

  test('the adapter of an ORM survives a connection that is lost in the transaction', async () => {
    let attempts = 0;
    await open().transaction(async ({ read, write }) => {
      attempts++;
      await read(1);
      await closeAdmin();
      if (attempts === 1) dsql.dropConnections();
      await write(1, 7);
    });
    expect([attempts, await balance()]).toEqual([2, 7]);
  });

  test('the adapter of an ORM takes a connection that is lost during COMMIT for an unknown outcome', async () => {
    const { transaction } = open();
    const error = await rejectionOf(
      transaction(async ({ write }) => {
        await write(1, 7);
        await closeAdmin();
        whenCommitIsSent(() => dsql.dropConnections());
      }),
    );
    expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
  });

  test('the adapter of an ORM gives the connection back on which BEGIN failed', async () => {
    const { transaction } = open();
    await transaction(({ read }) => read(1));
    pool.once('acquire', (client) => {
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    });
    expect(await transaction(({ read }) => read(1))).toBe(100);
  });

  test('the adapter of an ORM refuses a transaction inside a transaction', async () => {
    const { transaction } = open();
    const outer = rejectionOf(transaction(() => transaction(async () => {})));
    expect(await outer).toBeInstanceOf(TransactionMisuseError);
    expect(await rejectionOf(transaction(({ nest }) => nest()))).toBeInstanceOf(Error);
    await transaction(({ read }) => read(1));
  });

  test('the adapter of an ORM does not call a transaction committed whose statement has failed', async () => {
    const error = await rejectionOf(
      open().transaction(async ({ write }) => {
        await write(1, 2 ** 40).catch(() => {});
      }),
    );
    expect(error).toBeInstanceOf(TransactionRolledBackError);
    expect(await balance()).toBe(100);
  });

  test('the adapter of an ORM ends with its signal, and closes the connection', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    const error = await rejectionOf(
      open({ signal: controller.signal }).transaction(async ({ read, write }) => {
        await write(1, 5);
        controller.abort(reason);
        await read(1);
      }),
    );
    expect(error).toBeInstanceOf(TransactionAbortedError);
    expect(error).toMatchObject({ cause: reason });
    expect(await balance()).toBe(100);
  });

  test('the adapter of an ORM is counted by the metrics of its pool', async () => {
    const registry = new Registry();
    const exposure = exposePool(pool, { registry, service: 'shop' });
    let attempts = 0;
    await open({ operation: 'transfer' }).transaction(async ({ read, write }) => {
      const before = await read(1);
      if (attempts++ === 0) await disturb();
      await write(1, before + 1);
    });
    const lines = (await registry.metrics()).split('\n');
    expect(lines).toContain('dsql_tx_conflict_total{service="shop",operation="transfer"} 1');
    expect(lines).toContain('dsql_tx_retry_total{service="shop",operation="transfer",attempt="1"} 1');
    expect(lines).toContain('dsql_tx_latency_count{service="shop",operation="transfer"} 1');
    exposure.stop();
  });
});

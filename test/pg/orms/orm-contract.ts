// What holds for every ORM on a Headgate pool, said once and run for each of them on a real PostgreSQL.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Pool } from '../../../src/index.js';
import { SessionCounter } from '../../support/counting.js';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

export type Row = Record<string, unknown>;

/** Runs one SQL text the way the ORM runs raw SQL. */
export type Run = (text: string) => Promise<Row[]>;

/** As much of an ORM as the sentences below need. */
export interface Orm {
  readonly run: Run;
  transaction<T>(work: (run: Run) => Promise<T>): Promise<T>;
  /** A transaction, and within it one that is made of a savepoint. */
  nested(outer: (run: Run) => Promise<void>, inner: (run: Run) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export interface OrmFixture {
  readonly db: TestDatabase;
  readonly counter: SessionCounter;
  readonly applicationName: string;
  /** A pool that is ended after the test, if the test has not done so itself. */
  newPool(options: { max: number; connectionTimeoutMillis?: number }): Pool;
}

/** A database, an onlooker and pools for the tests of one ORM; call it inside a `describe`. */
export function ormFixture(applicationName: string): OrmFixture {
  let db: TestDatabase;
  let counter: SessionCounter;
  const pools: Pool[] = [];
  beforeAll(async () => {
    db = await withDatabase();
    counter = await SessionCounter.open(db.url);
  });
  afterAll(async () => {
    await counter.close();
    await db.drop();
  });
  beforeEach(async () => {
    const client = new pg.Client(db.url);
    await client.connect();
    await client.query('drop table if exists entry; create table entry (id int primary key, note text)');
    await client.end();
  });
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => (pool.ending ? undefined : pool.end())));
  });
  return {
    get db() {
      return db;
    },
    get counter() {
      return counter;
    },
    applicationName,
    newPool(options) {
      const pool = new Pool({ connectionString: db.url, application_name: applicationName, ...options });
      // Idle connections are ended from the server's side here. One in use needs no listener, unlike with pg.Pool.
      pool.on('error', () => {});
      pools.push(pool);
      return pool;
    },
  };
}

const backend = 'select pg_backend_pid() as pid';
const entries = 'select id from entry order by id';

export function itBehavesLikeAnOrm(fixture: OrmFixture, ormOn: (pool: Pool) => Orm): void {
  describe('transactions', () => {
    test('each keeps one connection to itself', async () => {
      const orm = ormOn(fixture.newPool({ max: 3 }));
      const gate = barrier(3);
      const pids = await Promise.all(
        [1, 2, 3].map(() =>
          orm.transaction(async (run) => {
            const first = await run(backend);
            await gate();
            const others = [await run(backend), await run(backend)];
            expect(others).toEqual([first, first]);
            return first[0]?.pid;
          }),
        ),
      );
      expect(new Set(pids).size).toBe(3);
      await orm.close();
    });

    test('transactions of an ORM show nothing to others before they commit, and all of it afterwards', async () => {
      const orm = ormOn(fixture.newPool({ max: 2 }));
      await orm.transaction(async (run) => {
        await run('insert into entry (id) values (1)');
        expect(await orm.run(entries)).toEqual([]);
      });
      expect(await orm.run(entries)).toEqual([{ id: 1 }]);
      await orm.close();
    });

    test('transactions of an ORM leave nothing when their function throws, and the caller gets that very error', async () => {
      const pool = fixture.newPool({ max: 1 });
      const orm = ormOn(pool);
      const mistake = new Error('changed my mind');
      const failed = orm.transaction(async (run) => {
        await run('insert into entry (id) values (1)');
        throw mistake;
      });
      expect(await rejectionOf(failed)).toBe(mistake);
      expect(await orm.run(entries)).toEqual([]);
      expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
      await orm.close();
    });

    test('transactions of an ORM leave nothing when a query fails, and the connection serves on', async () => {
      const pool = fixture.newPool({ max: 1 });
      const orm = ormOn(pool);
      const before = await orm.run(backend);
      const failed = orm.transaction(async (run) => {
        await run('insert into entry (id) values (1)');
        await run('insert into entry (id) values (1)');
      });
      await rejectionOf(failed);
      expect(await orm.run(entries)).toEqual([]);
      expect(await orm.run(backend)).toEqual(before);
      await orm.close();
    });

    test('transactions of an ORM survive the failure of a savepoint within them', async () => {
      const orm = ormOn(fixture.newPool({ max: 1 }));
      await orm.nested(
        async (run) => void (await run('insert into entry (id) values (1)')),
        async (run) => {
          await run('insert into entry (id) values (2)');
          throw new Error('only the inner one');
        },
      );
      expect(await orm.run(entries)).toEqual([{ id: 1 }]);
      await orm.close();
    });
  });

  describe('the limit', () => {
    test('the limit of a pool under an ORM holds while many more transactions wait their turn', async () => {
      const pool = fixture.newPool({ max: 3 });
      const orm = ormOn(pool);
      const count = `select count(*)::int as n from pg_stat_activity
        where application_name = '${fixture.applicationName}' and datname = current_database()`;
      const all = Array.from({ length: 40 }, (_, id) =>
        orm.transaction(async (run) => {
          await run(`insert into entry (id) values (${id})`);
          return Number((await run(count))[0]?.n);
        }),
      );
      const seen = await Promise.all(all);
      expect(Math.max(...seen)).toBeLessThanOrEqual(3);
      expect(await orm.run(entries)).toHaveLength(40);
      expect(pool.stats().peak).toBeLessThanOrEqual(3);
      // Some ORMs give a connection back a moment after they have answered.
      await expect.poll(() => pool.totalCount - pool.idleCount).toBe(0);
      expect(pool.waitingCount).toBe(0);
      await orm.close();
    });

    test('the limit of a pool under an ORM makes a query wait for the transaction that has the only connection', async () => {
      const pool = fixture.newPool({ max: 1 });
      const orm = ormOn(pool);
      let outside: Promise<Row[]> | undefined;
      await orm.transaction(async (run) => {
        await run('insert into entry (id) values (1)');
        outside = orm.run(entries);
        // Some ORMs ask the pool a few microtasks later.
        while (pool.waitingCount === 0) await run('select 1');
      });
      expect(await outside).toEqual([{ id: 1 }]);
      await orm.close();
    });

    test('the limit of a pool under an ORM ends in a timeout only for callers that wait too long', async () => {
      const pool = fixture.newPool({ max: 1, connectionTimeoutMillis: 200 });
      const orm = ormOn(pool);
      await orm.transaction(async (run) => {
        await run('insert into entry (id) values (1)');
        const error = await rejectionOf(orm.transaction(async (other) => other('select 1')));
        expect(messages(error)).toMatch(/timeout/i);
      });
      expect(await orm.run(entries)).toEqual([{ id: 1 }]);
      expect([pool.totalCount, pool.idleCount, pool.waitingCount]).toEqual([1, 1, 0]);
      await orm.close();
    });
  });

  describe('a lost connection', () => {
    const session = () => ({ applicationName: fixture.applicationName, database: fixture.db.database });

    test('a lost connection fails the transaction of the ORM, and the pool recovers', async () => {
      const pool = fixture.newPool({ max: 2 });
      const orm = ormOn(pool);
      const failed = orm.transaction(async (run) => {
        await run('insert into entry (id) values (1)');
        await fixture.counter.terminate(session());
        await run('insert into entry (id) values (2)');
      });
      await rejectionOf(failed);
      expect(await orm.run(entries)).toEqual([]);
      expect([pool.idleCount, pool.waitingCount]).toEqual([pool.totalCount, 0]);
      await orm.close();
    });

    test('while idle is replaced unnoticed', async () => {
      const pool = fixture.newPool({ max: 2 });
      const orm = ormOn(pool);
      const [before] = await orm.run(backend);
      const removed = new Promise((resolve) => pool.once('remove', resolve));
      await fixture.counter.terminate(session());
      await removed;
      const [after] = await orm.run(backend);
      expect(after?.pid).not.toBe(before?.pid);
      await orm.close();
    });
  });

  test('a pool under an ORM closes every connection in the end', async () => {
    const pool = fixture.newPool({ max: 4 });
    const orm = ormOn(pool);
    await Promise.all(Array.from({ length: 8 }, () => orm.run('select pg_sleep(0.01)::text')));
    await orm.close();
    if (!pool.ending) await pool.end();
    expect(pool.totalCount).toBe(0);
    const { applicationName, db } = fixture;
    await fixture.counter.until({ applicationName, database: db.database }, (sessions) => sessions === 0);
  });
}

/** A function that resolves once it has been called so many times. */
function barrier(parties: number): () => Promise<void> {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let arrived = 0;
  return () => {
    arrived++;
    if (arrived === parties) open();
    return opened;
  };
}

/** The messages of an error and of all that caused it. */
export function messages(error: unknown): string {
  return error instanceof Error ? `${error.message}\n${messages(error.cause)}` : '';
}

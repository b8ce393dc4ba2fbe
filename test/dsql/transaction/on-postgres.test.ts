// Transactions on PostgreSQL, through pg.Pool and Headgate's Pool: misuse, lost answers, and what is left of connections.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  CommitOutcomeUnknownError,
  TransactionMisuseError,
  TransactionRolledBackError,
  transaction,
} from '../../../src/dsql.js';
import { Pool } from '../../../src/index.js';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { CommitCutter } from './commit-cutter.js';

let db: TestDatabase;
let cutter: CommitCutter;
let port: number;

beforeAll(async () => {
  db = await withDatabase();
  cutter = new CommitCutter(db);
  port = await cutter.start();
  const client = new pg.Client(db.url);
  await client.connect();
  await client.query('CREATE TABLE notes (id uuid PRIMARY KEY, n int)');
  await client.query('CREATE TABLE counters (id int PRIMARY KEY, n int)');
  await client.query('INSERT INTO counters VALUES (1, 0)');
  await client.end();
});
afterAll(async () => {
  await cutter.stop();
  await db.drop();
});

describe.each([
  ['pg.Pool', pg.Pool],
  ['Pool', Pool as unknown as typeof pg.Pool],
])('%s', (_, PoolClass) => {
  let pool: pg.Pool;

  beforeEach(() => {
    const { user, password, database } = db;
    pool = new PoolClass({ host: '127.0.0.1', port, user, password, database, max: 4 });
    pool.on('error', () => {});
  });
  afterEach(async () => {
    cutter.next = 'none';
    // Every client came back, or was closed.
    await expect.poll(() => pool.totalCount - pool.idleCount).toBe(0);
    await pool.end();
  });

  const insert = (id: string, options: object = {}) =>
    transaction(pool, (client) => client.query('INSERT INTO notes VALUES ($1, 1)', [id]), options);
  const isThere = async (id: string) =>
    (await pool.query('SELECT 1 FROM notes WHERE id = $1', [id])).rowCount === 1;

  test('A connection that is cut at COMMIT leaves the outcome unknown, whether it was committed or not', async () => {
    for (const cut of ['before COMMIT', 'after COMMIT'] as const) {
      const id = randomUUID();
      cutter.next = cut;
      const error = await rejectionOf(insert(id));
      expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
      expect(await isThere(id)).toBe(cut === 'after COMMIT');
    }
  });

  test('Verify finds out on another connection whether a cut commit happened', async () => {
    for (const cut of ['before COMMIT', 'after COMMIT'] as const) {
      const id = randomUUID();
      cutter.next = cut;
      const answers: boolean[] = [];
      await insert(id, {
        outageBackoffBase: 1,
        verify: async (client: pg.PoolClient) => {
          const { rowCount } = await client.query('SELECT 1 FROM notes WHERE id = $1', [id]);
          answers.push(rowCount === 1);
          return rowCount === 1;
        },
      });
      expect(answers).toEqual([cut === 'after COMMIT']);
      expect(await isThere(id)).toBe(true);
    }
  });

  test('A client whose rollback fails is not handed to another caller', async () => {
    const mine = new Error('mine');
    let used: unknown;
    cutter.next = 'at ROLLBACK';
    const error = await rejectionOf(
      transaction(pool, async (client) => {
        used = (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
        throw mine;
      }),
    );
    expect(error).toBe(mine);
    const next = await pool.query('SELECT pg_backend_pid() AS pid');
    expect(next.rows[0].pid).not.toBe(used);
  });

  test('A client that does not roll back, though its connection is fine, is closed', async () => {
    const released: unknown[] = [];
    const stubborn = {
      async connect() {
        const client = await pool.connect();
        return new Proxy(client, {
          get(target, name) {
            if (name === 'release')
              return (error?: Error) => target.release(released.push(error) > 0 && error);
            if (name !== 'query') return Reflect.get(target, name, target);
            return (text: string) =>
              text === 'ROLLBACK' ? Promise.reject(new Error('not now')) : target.query(text);
          },
        });
      },
    };
    const mine = new Error('mine');
    expect(await rejectionOf(transaction(stubborn, () => Promise.reject(mine)))).toBe(mine);
    expect(released).toMatchObject([{ message: 'not now' }]);
  });

  test('A server that ends the session in the middle of a transaction costs an attempt', async () => {
    let attempts = 0;
    await transaction(
      pool,
      async (client) => {
        attempts++;
        await client.query('UPDATE counters SET n = n + 1 WHERE id = 1');
        if (attempts === 1) await client.query('SELECT pg_terminate_backend(pg_backend_pid())');
      },
      { outageBackoffBase: 1 },
    );
    expect(attempts).toBe(2);
  });

  test('Serializable transactions that fail to serialize are run again', async () => {
    await pool.query('UPDATE counters SET n = 0');
    const add = () =>
      transaction(
        pool,
        async (client) => {
          const { rows } = await client.query('SELECT n FROM counters WHERE id = 1');
          await client.query('UPDATE counters SET n = $1 WHERE id = 1', [rows[0].n + 1]);
        },
        { isolation: 'serializable', maxAttempts: 100 },
      );
    await Promise.all(Array.from({ length: 12 }, add));
    expect((await pool.query('SELECT n FROM counters')).rows).toEqual([{ n: 12 }]);
  });

  test('A transaction inside another one of the same pool is refused, wherever it is begun', async () => {
    const inner = async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await transaction(pool, (client) => client.query('SELECT 1'));
    };
    const error = await rejectionOf(transaction(pool, () => inner()));
    expect(error).toMatchObject({ code: 'HG_TRANSACTION_MISUSE', misuse: 'nested' });
    // After its end, and on another pool, it is none of its business.
    let late: Promise<void> | undefined;
    let end: () => void = () => {};
    const other = new PoolClass({ connectionString: db.url });
    await transaction(pool, async () => {
      late = new Promise<void>((resolve) => {
        end = resolve;
      }).then(inner);
      await transaction(other, (client) => client.query('SELECT 1'));
    });
    end();
    await late;
    await other.end();
  });

  test('Statements that begin or end transactions are refused, and savepoints are not', async () => {
    for (const text of [
      'COMMIT',
      '/* so */ rollback;',
      'BEGIN',
      'SELECT 1; COMMIT; BEGIN',
      'START TRANSACTION',
    ]) {
      const error = await rejectionOf(transaction(pool, (client) => client.query(text)));
      expect(error).toMatchObject({ misuse: 'control' });
    }
    const error = await rejectionOf(
      transaction(
        pool,
        (client) => new Promise((_, reject) => client.query({ text: 'COMMIT' } as never, reject as never)),
      ),
    );
    expect(error).toMatchObject({ misuse: 'control' });
    const id = randomUUID();
    await transaction(pool, async (client) => {
      await client.query('SAVEPOINT one');
      await client.query('SELECT 1/0').catch(() => {});
      await client.query('ROLLBACK TO SAVEPOINT one');
      await client.query('INSERT INTO notes VALUES ($1, 1)', [id]);
    });
    expect(await isThere(id)).toBe(true);
  });

  test('A transaction that was ended by a statement which could not be judged is noticed', async () => {
    const error = await rejectionOf(
      transaction(pool, (client) => client.query("SET application_name = 'x'; COMMIT")),
    );
    expect(error).toMatchObject({ misuse: 'ended_inside' });
  });

  test('The client can be neither released nor used after its end', async () => {
    let kept: pg.PoolClient | undefined;
    await transaction(pool, async (client) => {
      kept = client;
      expect(() => client.release()).toThrow(TransactionMisuseError);
      expect(() => (client as unknown as pg.Client).end()).toThrow(TransactionMisuseError);
      await client.query('SELECT 1');
    });
    expect(await rejectionOf((kept as pg.PoolClient).query('SELECT 1'))).toMatchObject({ misuse: 'ended' });
    expect(() => kept?.release()).toThrow(TransactionMisuseError);
    const [error] = await new Promise<unknown[]>((resolve) =>
      kept?.query('SELECT 1', (...args: unknown[]) => resolve(args)),
    );
    expect(error).toMatchObject({ misuse: 'ended' });
  });

  test('A query that is not awaited and fails rolls the transaction back, and says so', async () => {
    const id = randomUUID();
    const error = await rejectionOf(
      transaction(pool, async (client) => {
        await client.query('INSERT INTO notes VALUES ($1, 1)', [id]);
        client.query('SELECT 1/0').catch(() => {});
      }),
    );
    expect(error).toBeInstanceOf(TransactionRolledBackError);
    expect(error).toMatchObject({ cause: { code: '22012' } });
    expect(await isThere(id)).toBe(false);
  });

  test('A query that is given up by its own timeout does not leave its connection to others', async () => {
    let used: unknown;
    const slow = new PoolClass({ connectionString: db.url, max: 1, query_timeout: 100 });
    const error = await rejectionOf(
      transaction(slow, async (client) => {
        used = (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
        await client.query('SELECT pg_sleep(10)');
      }),
    );
    expect(error.message).toBe('Query read timeout');
    expect((await slow.query('SELECT pg_backend_pid() AS pid')).rows[0].pid).not.toBe(used);
    await slow.end();
  });
});

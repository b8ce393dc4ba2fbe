// Programs that extend the pool: what they override is used, and what they leave alone works on.
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { Pool } from '../../src/index.js';
import { rejectionOf } from '../support/outcomes.js';
import { implementations, usePoolsOf } from './contract/every-pool.js';

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (error?: unknown) => void,
) => void;

describe.each(implementations)('a class that extends %s', (_name, Base) => {
  const { server } = usePoolsOf(Base);
  const open: pg.Pool[] = [];

  afterEach(async () => {
    await Promise.all(open.splice(0).map((pool) => pool.end()));
  });

  class CountingPool extends Base {
    connects = 0;

    override connect(): Promise<pg.PoolClient>;
    override connect(callback: ConnectCallback): void;
    override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | void {
      this.connects += 1;
      return callback === undefined ? super.connect() : super.connect(callback);
    }
  }

  function openPool<P extends pg.Pool>(PoolClass: new (options: pg.PoolConfig) => P): P {
    const pool = new PoolClass({ ...server(), max: 2 });
    open.push(pool);
    return pool;
  }

  test('a subclass of Pool has its own connect() called by the query() it inherits', async () => {
    const pool = openPool(CountingPool);
    await pool.query('select 1');
    await new Promise((resolve) => pool.query('select 1', resolve));
    expect(pool.connects).toBe(2);
    (await pool.connect()).release();
    expect(pool.connects).toBe(3);
  });

  test('a subclass of Pool may refuse in connect(), and query() rejects with that refusal', async () => {
    const refusal = new Error('closed for the day');
    class ClosedPool extends Base {
      override connect(): Promise<pg.PoolClient>;
      override connect(callback: ConnectCallback): void;
      override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | void {
        if (callback === undefined) return Promise.reject(refusal);
        process.nextTick(callback, refusal, undefined, () => {});
      }
    }
    const pool = openPool(ClosedPool);
    expect(await rejectionOf(pool.query('select 1'))).toBe(refusal);
    expect(pool.totalCount).toBe(0);
  });

  test('a subclass of Pool may do something to each client in connect() before handing it on', async () => {
    class TaggingPool extends Base {
      override connect(): Promise<pg.PoolClient>;
      override connect(callback: ConnectCallback): void;
      override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | void {
        if (callback === undefined)
          return super.connect().then((client) => Object.assign(client, { tag: 'mine' }));
        super.connect((error, client, release) => {
          callback(error, client && Object.assign(client, { tag: 'mine' }), release);
        });
      }
    }
    const pool = openPool(TaggingPool);
    const client = await pool.connect();
    expect(client).toMatchObject({ tag: 'mine' });
    client.release();
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  });

  test('a subclass of Pool may add methods, and keeps everything else: transactions, counts, events, end', async () => {
    class TransactionPool extends Base {
      async inTransaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
        const client = await this.connect();
        try {
          await client.query('begin');
          const result = await work(client);
          await client.query('commit');
          return result;
        } catch (error) {
          await client.query('rollback');
          throw error;
        } finally {
          client.release();
        }
      }
    }
    const pool = openPool(TransactionPool);
    const released: unknown[] = [];
    pool.on('release', (_error, client) => released.push(client));
    const { rows } = await pool.inTransaction((client) => client.query('select 1 as one'));
    expect(rows).toEqual([{ one: 1 }]);
    await rejectionOf(pool.inTransaction((client) => client.query('select no_such_column')));
    expect(released).toHaveLength(2);
    expect([pool.totalCount, pool.idleCount, pool.waitingCount]).toEqual([1, 1, 0]);
    expect(pool).toBeInstanceOf(TransactionPool);
    expect(pool).toBeInstanceOf(Base);
    expect(pool).toBeInstanceOf(pg.Pool);
    expect(pool.constructor.name).toBe('TransactionPool');
  });

  test('a subclass of Pool may choose its options and its client class in the constructor', async () => {
    class OwnClient extends pg.Client {}
    class PresetPool extends Base {
      constructor(options: pg.PoolConfig) {
        super({ ...options, max: 1, Client: OwnClient });
      }
    }
    const pool = openPool(PresetPool);
    expect(pool.options.max).toBe(1);
    const client = await pool.connect();
    expect(client).toBeInstanceOf(OwnClient);
    client.release();
  });

  test('a subclass of Pool may override query() and end()', async () => {
    const said: string[] = [];
    class LoggingPool extends Base {
      override query = ((...args: [string]) => {
        said.push(args[0]);
        return super.query(...args);
      }) as pg.Pool['query'];
      override end(): Promise<void>;
      override end(callback: () => void): void;
      override end(callback?: () => void): Promise<void> | void {
        said.push('end');
        return callback === undefined ? super.end() : super.end(callback);
      }
    }
    const pool = new LoggingPool(server());
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
    expect(said).toEqual(['select 1 as one', 'end']);
  });
});

describe('a class that extends headgate Pool', () => {
  const { server } = usePoolsOf(Pool);

  test('a class that extends headgate Pool has what Headgate adds, by type too', async () => {
    class ReportingPool extends Pool {
      report(): string {
        const { inUse, idle, limit } = this.stats();
        return `${inUse} in use, ${idle} idle, of ${limit}`;
      }
    }
    const pool = new ReportingPool({ ...server(), max: 3, closeTimeoutMillis: '2s' });
    const client = await pool.connect({ timeout: '20s' });
    expect(pool.report()).toBe('1 in use, 0 idle, of 3');
    client.release();
    expect(pool.report()).toBe('0 in use, 1 idle, of 3');
    await pool.end({ deadline: '10s' });
  });
});

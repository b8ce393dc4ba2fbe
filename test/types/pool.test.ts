// What the compiler says about `Pool`: it goes where a pg.Pool goes, and what it adds has exact types.
// The compiler checks this file as a part of `npm test`; what is only for the compiler is never called.
import { PrismaPg } from '@prisma/adapter-pg';
import { drizzle } from 'drizzle-orm/node-postgres';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { expect, expectTypeOf, test } from 'vitest';
import {
  type ConnectOptions,
  type DiscardReason,
  HeadgateError,
  Pool,
  type PoolClass,
  type PoolClient,
  type PoolOptions,
  PoolOptionsError,
  type PoolStats,
  TokenBucket,
} from '../../src/index.js';

/** Compiled, and not run. */
function compiled(_check: (pool: Pool) => unknown): void {}

test('a Pool goes where a pg.Pool is expected, and its clients where a pg.PoolClient is', () => {
  expectTypeOf<Pool>().toExtend<pg.Pool>();
  expectTypeOf<PoolClient>().toExtend<pg.PoolClient>();
  expectTypeOf<PoolClient>().toExtend<pg.ClientBase>();
  expectTypeOf(Pool).toExtend<typeof pg.Pool>();
  const pool: pg.Pool = new Pool();
  expect(pool).toBeInstanceOf(pg.Pool);
});

test('a Pool is taken by Kysely, Drizzle and Prisma', () => {
  compiled((pool) => {
    const kysely = new Kysely<{ t: { id: number } }>({ dialect: new PostgresDialect({ pool }) });
    const kyselyLater = new PostgresDialect({ pool: async () => pool });
    const prisma = new PrismaPg(pool, { disposeExternalPool: true });
    expectTypeOf(drizzle(pool).$client).toExtend<pg.Pool>();
    expectTypeOf(drizzle({ client: pool }).$client).toEqualTypeOf<Pool>();
    return [kysely, kyselyLater, prisma];
  });
});

test('a Pool is made from what a pg.Pool is made from', () => {
  class OwnClient extends pg.Client {}
  const config: pg.PoolConfig = { max: 3, Client: OwnClient };
  expectTypeOf<pg.PoolConfig>().toExtend<PoolOptions>();
  const pools = [
    new Pool(),
    new Pool(null),
    new Pool(undefined),
    new Pool({}),
    new Pool(config),
    new Pool({ max: 3 }, OwnClient),
  ];
  for (const pool of pools) expect(pool.totalCount).toBe(0);
});

test('a Pool may be extended', () => {
  class NamedPool extends Pool {
    readonly label: string;
    constructor(label: string, options?: PoolOptions) {
      super({ ...options, name: label });
      this.label = label;
    }
    override async end(): Promise<void> {
      await super.end();
    }
    override emit(event: string | symbol, ...args: unknown[]): boolean {
      return super.emit(event, ...args);
    }
    async one<R extends pg.QueryResultRow>(text: string): Promise<R | undefined> {
      await using client = await this.connect({ timeout: '2s' });
      return (await client.query<R>(text)).rows[0];
    }
  }
  const pool = new NamedPool('named', { max: 2 });
  expectTypeOf(pool).toExtend<Pool>();
  expectTypeOf(pool.one<{ n: number }>).returns.resolves.toEqualTypeOf<{ n: number } | undefined>();
  expect(pool.stats().limit).toBe(2);
  expect(pool.name).toBe('named');
});

test('a Pool may be passed on as a class', () => {
  const make = (PoolOfChoice: PoolClass): Pool => new PoolOfChoice({ max: 1, minIdle: 0 });
  expectTypeOf<InstanceType<typeof Pool>>().toEqualTypeOf<Pool>();
  expect(make(Pool)).toBeInstanceOf(Pool);
});

test('the methods of a Pool connect() has a promise form and a callback form, with and without options', () => {
  compiled((pool) => {
    const options: ConnectOptions = { timeout: 100, signal: AbortSignal.timeout(5) };
    expectTypeOf(pool.connect()).resolves.toEqualTypeOf<PoolClient>();
    expectTypeOf(pool.connect(options)).resolves.toEqualTypeOf<PoolClient>();
    expectTypeOf(pool.connect({ timeout: '2s', signal: undefined })).resolves.toEqualTypeOf<PoolClient>();
    const answer = pool.connect((error, client, release) => {
      expectTypeOf(error).toEqualTypeOf<Error | undefined>();
      expectTypeOf(client).toEqualTypeOf<PoolClient | undefined>();
      release();
      release(error);
      release(true);
    });
    expectTypeOf(answer).toEqualTypeOf<void>();
    expectTypeOf(pool.connect({ timeout: 5 }, (_error, _client, release) => release())).toEqualTypeOf<void>();
    expectTypeOf(pool.tryConnect()).toEqualTypeOf<PoolClient | undefined>();
    // @ts-expect-error a timeout is a number or a text
    pool.connect({ timeout: true });
    // @ts-expect-error no such option
    pool.connect({ deadline: 5 });
  });
});

test('the methods of a Pool query() has all the forms of pg', () => {
  compiled((pool) => {
    interface Row {
      n: number;
    }
    expectTypeOf(pool.query<Row>('select 1 as n')).resolves.toEqualTypeOf<pg.QueryResult<Row>>();
    expectTypeOf(pool.query<Row>('select $1 as n', [1])).resolves.toEqualTypeOf<pg.QueryResult<Row>>();
    expectTypeOf(pool.query<Row>({ text: 'select $1 as n', values: [1] })).resolves.toEqualTypeOf<
      pg.QueryResult<Row>
    >();
    expectTypeOf(pool.query<[number]>({ text: 'select 1', rowMode: 'array' })).resolves.toEqualTypeOf<
      pg.QueryArrayResult<[number]>
    >();
    const callback = (error: Error, result: pg.QueryResult<Row>): unknown => error ?? result.rows[0]?.n;
    expectTypeOf(pool.query<Row>('select 1 as n', callback)).toEqualTypeOf<void>();
    expectTypeOf(pool.query<Row>('select $1 as n', [1], callback)).toEqualTypeOf<void>();
    expectTypeOf(pool.query(new pg.Query('select 1'))).toEqualTypeOf<pg.Query>();
  });
});

test('the methods of a Pool end() has a promise form, with and without a deadline, and a callback form', () => {
  compiled((pool) => {
    expectTypeOf(pool.end()).toEqualTypeOf<Promise<void>>();
    expectTypeOf(pool.end({})).toEqualTypeOf<Promise<void>>();
    expectTypeOf(pool.end({ deadline: '10s' })).toEqualTypeOf<Promise<void>>();
    expectTypeOf(pool.end(() => {})).toEqualTypeOf<void>();
    // @ts-expect-error no such option
    pool.end({ timeout: 5 });
  });
});

test('the methods of a Pool steer it and tell of it', () => {
  compiled((pool) => {
    expectTypeOf(pool.resize).toEqualTypeOf<(max: number) => void>();
    expectTypeOf(pool.pause()).toEqualTypeOf<void>();
    expectTypeOf(pool.resume()).toEqualTypeOf<void>();
    expectTypeOf(pool.ready()).toEqualTypeOf<Promise<void>>();
    expectTypeOf(pool.ready(5, { timeout: '30s' })).toEqualTypeOf<Promise<void>>();
    expectTypeOf(pool.name).toEqualTypeOf<string>();
    expectTypeOf(pool.options.max).toEqualTypeOf<number>();
    pool.options.max = 5;
    expectTypeOf(pool.on('connect', (client) => client.on('notice', () => {}))).toEqualTypeOf<Pool>();
    expectTypeOf(pool.once('error', () => {}).stats()).toEqualTypeOf<PoolStats>();
    pool.once('error', (error: Error) => error.message);
    // @ts-expect-error it is counted, not set
    pool.totalCount = 5;
  });
});

test('the methods of a Pool stats() has numbers, words of its own, and a count for each reason', () => {
  compiled((pool) => {
    const stats = pool.stats();
    expectTypeOf(stats).toEqualTypeOf<PoolStats>();
    expectTypeOf(stats.state).toEqualTypeOf<'open' | 'paused' | 'draining' | 'closed'>();
    expectTypeOf(stats.breaker).toEqualTypeOf<'closed' | 'open' | 'half_open'>();
    expectTypeOf(stats.totals.discarded).toEqualTypeOf<Readonly<Record<DiscardReason, number>>>();
    expectTypeOf(stats.totals.discarded.idle_timeout).toEqualTypeOf<number>();
    // @ts-expect-error there is no such reason
    stats.totals.discarded.boredom;
    // @ts-expect-error the numbers of one instant do not change
    stats.limit = 5;
  });
});

test('the methods of a Pool end with the block, under await using', () => {
  compiled(async () => {
    await using pool = new Pool();
    await using client = await pool.connect();
    expectTypeOf(client).toEqualTypeOf<PoolClient>();
    await client.query('select 1');
    client.release();
    client.release(true);
    client.release(new Error('why'));
  });
});

test("the options of a Pool are pg's and Headgate's together", () => {
  compiled(
    () =>
      new Pool({
        connectionString: 'postgres://localhost/db',
        password: async () => 'secret',
        ssl: { rejectUnauthorized: false },
        statement_timeout: 5,
        max: 5,
        min: 1,
        idleTimeoutMillis: 5,
        connectionTimeoutMillis: 5,
        maxUses: 5,
        maxLifetimeSeconds: 5,
        allowExitOnIdle: true,
        log: (...messages) => messages,
        onConnect: (client) => void client.query('select 1'),
        verify: (client, done) => client.query('select 1', (error) => done(error)),
        Promise,
        Client: pg.Client,
        name: 'name',
        minIdle: 1,
        dialLimit: 2,
        dialTimeoutMillis: '5s',
        closeTimeoutMillis: 5,
        maxLifetimeJitterSeconds: 1,
        guardWindowMillis: 1,
        checkAfterIdleMillis: '30s',
        keepaliveMillis: '1m',
        checkTimeoutMillis: 5,
        idleOrder: 'fifo',
        onDialFailure: 'retry',
        backoffBaseMillis: 5,
        backoffCapMillis: '5s',
        breakerThreshold: 5,
        leakThresholdMillis: 5,
        rateLimiter: new TokenBucket({ rate: 1, burst: 1 }),
        pipeline: { depth: 4 },
      }),
  );
  expectTypeOf<{ pipeline: true }>().toExtend<PoolOptions>();
  expectTypeOf<{ pipeline: Record<never, never> }>().toExtend<PoolOptions>();
});

test('the options of a Pool and nothing else', () => {
  // @ts-expect-error no such option
  expect(() => new Pool({ maxx: 5 })).not.toThrow();
  // @ts-expect-error not an order
  expect(() => new Pool({ idleOrder: 'random' })).toThrow(PoolOptionsError);
  // @ts-expect-error no such answer
  expect(() => new Pool({ onDialFailure: 'panic' })).toThrow(PoolOptionsError);
  // @ts-expect-error not a rate limiter
  expect(() => new Pool({ rateLimiter: {} })).toThrow(PoolOptionsError);
  // @ts-expect-error not a depth
  expect(() => new Pool({ pipeline: { depth: 'deep' } })).toThrow(PoolOptionsError);
});

test('the options of a Pool that make no sense are listed in an error of a known class', () => {
  expectTypeOf<PoolOptionsError>().toExtend<HeadgateError>();
  expectTypeOf<HeadgateError['code']>().toEqualTypeOf<string>();
  expectTypeOf<PoolOptionsError['problems'][number]>().toEqualTypeOf<{
    readonly path: string;
    readonly message: string;
  }>();
  expect(() => new Pool({ max: -1 })).toThrow(HeadgateError);
});

/** Pools as log lines: the texts and fields that runbooks look for, at the right level, without floods and secrets. */
import { channel } from 'node:diagnostics_channel';
import { type Logger, pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { discardReasons } from '../../src/core/reasons.js';
import { PromisePool, type PromisePoolOptions } from '../../src/engine.js';
import { Pool } from '../../src/index.js';
import {
  consoleLogger,
  type LogOptions,
  logPool,
  type ObservedPool,
  type PoolLogger,
} from '../../src/logging.js';
import { usualLogger } from '../../src/observe/pool-logger.js';
import { withDatabase } from '../support/postgres.js';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

type Line = readonly [level: string, message: string, fields: Record<string, unknown>];

/** Keeps the lines, and says when one came. */
class Notebook implements PoolLogger {
  readonly lines: Line[] = [];
  #onLine = (): void => {};

  readonly debug = this.#writer('debug');
  readonly info = this.#writer('info');
  readonly warn = this.#writer('warn');
  readonly error = this.#writer('error');

  #writer(level: string) {
    return (fields: object, message: string): void => {
      this.lines.push([level, message, { ...fields }]);
      this.#onLine();
    };
  }

  with(message: string): Line[] {
    return this.lines.filter((line) => line[1] === message);
  }

  /** The first line with this message, now or later. */
  async first(message: string): Promise<Line> {
    await this.until(() => this.with(message).length > 0);
    return this.with(message)[0] as Line;
  }

  async until(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) {
      await new Promise<void>((resolve) => {
        this.#onLine = resolve;
      });
    }
  }
}

function newPool(options: Partial<PromisePoolOptions<object>> = {}): PromisePool<object> {
  const pool = new PromisePool<object>({ connect: async () => ({}), max: 3, ...options });
  cleanUps.push(() => pool.drain({ deadline: 1 }));
  return pool;
}

function log(pool: ObservedPool, options: LogOptions = {}): Notebook {
  const notebook = new Notebook();
  const { stop } = logPool(pool, { logger: notebook, ...options });
  cleanUps.push(stop);
  return notebook;
}

function publish(name: string, message: object): void {
  channel(`headgate:pool:${name}`).publish({ poolName: 'x', connection: {}, connectionId: 1, ...message });
}

/** One that opens nothing by itself during a test. */
const asleep = { startJitter: '1h', max: 50 } as const;

test('a reservoir logs its start, each connection, and the end of its first fill', async () => {
  const pool = newPool({ max: 2, reservoir: true, name: 'orders' });
  const notebook = log(pool);
  await notebook.first('Reservoir initial fill complete');
  expect(notebook.lines).toEqual([
    [
      'info',
      'Reservoir refiller started',
      { pool: 'orders', target_ready: 2, low_watermark: 2, base_lifetime: '11m' },
    ],
    ['debug', 'Reservoir refiller: created connection', { pool: 'orders', reservoir_size: 1, target: 2 }],
    ['debug', 'Reservoir refiller: created connection', { pool: 'orders', reservoir_size: 2, target: 2 }],
    [
      'info',
      'Reservoir initial fill complete',
      { pool: 'orders', size: 2, target: 2, elapsed: expect.stringMatching(/^[\d.]+m?s$/) },
    ],
  ]);
});

test('a reservoir warns when its first fill takes too long', async () => {
  const connect = () => new Promise<object>(() => {});
  const pool = newPool({ connect, closeTimeout: 1, max: 2, reservoir: { initialFillTimeout: 1 } });
  expect(await log(pool).first('Reservoir initial fill timeout')).toEqual([
    'warn',
    'Reservoir initial fill timeout',
    expect.objectContaining({ current: 0, target: 2, elapsed: expect.any(String) }),
  ]);
});

test('a reservoir warns when it discards a connection, with the reason and what was left of its life', async () => {
  const pool = newPool({ ...asleep, reservoir: true });
  const notebook = log(pool);
  publish('discarded', { pool, reason: 'insufficient_remaining_lifetime', remainingMs: 30_000.4 });
  publish('discarded', { pool, reason: 'expired_on_checkout', remainingMs: -5 });
  const discarding = 'Reservoir: discarding connection';
  const rest = { pool: 'pool', guard_window: '45s' };
  expect(notebook.with(discarding)).toEqual([
    ['warn', discarding, { ...rest, reason: 'insufficient_remaining_lifetime', remaining: '30s' }],
    ['warn', discarding, { ...rest, reason: 'expired_on_checkout', remaining: '0ms' }],
  ]);
});

test('a reservoir discards with a line of its own', async () => {
  const pool = newPool({ max: 1, reservoir: true });
  const notebook = log(pool);
  await pool.ready(1);
  (await pool.acquire()).release(new Error('no good'));
  const [, , fields] = await notebook.first('Reservoir: discarding connection');
  expect(fields).toMatchObject({ reason: 'released_with_error', guard_window: '45s' });
});

test('a reservoir warns that nothing was ready, and not for every caller', async () => {
  const pool = newPool({ max: 1, reservoir: true });
  const notebook = log(pool);
  await pool.ready(1);
  const lease = await pool.acquire();
  for (let caller = 0; caller < 5; caller++) expect(pool.tryAcquire()).toBeUndefined();
  lease.release();
  const common = { pool: 'pool', target: 1, opening: 0, in_use: 1 };
  expect(notebook.with('Reservoir: nothing was ready').map(([, , fields]) => fields)).toEqual([
    { ...common, times: 1 },
    { ...common, times: 2 },
    { ...common, times: 4 },
  ]);
});

test.each([
  ['lease_acquire', 'error', 'Reservoir refiller: lease acquire failed'],
  ['rate_limit', 'warn', 'Reservoir refiller: failed to create connection'],
  ['token_provider', 'error', 'Reservoir refiller: token provider failed'],
  ['connection_open', 'error', 'Reservoir refiller: connection open failed'],
])('a connection that can not be had has a line for its cause: %s', (cause, level, message) => {
  const pool = newPool({ ...asleep, reservoir: true });
  const notebook = log(pool);
  const error = Object.assign(new Error('no'), { code: 'E_NO', password: 'hunter2' });
  publish('refill-failed', { pool, cause, error, failuresInARow: 7 });
  expect(notebook.lines.slice(1)).toEqual([
    [level, message, { pool: 'pool', error: 'no', code: 'E_NO', attempt: 1 }],
  ]);
});

test('a connection that can not be had is thinned out while it goes on, and news again after a success', async () => {
  let isUp = false;
  const connect = async () => {
    if (isUp) return {};
    throw new Error('no server');
  };
  const pool = newPool({ connect, max: 1, reservoir: true, backoffBase: 1, backoffCap: 1 });
  const notebook = log(pool);
  const failed = 'Reservoir refiller: connection open failed';
  const attempts = () => notebook.with(failed).map(([, , fields]) => fields['attempt']);
  await notebook.until(() => attempts().includes(4));
  expect(attempts()).toEqual([1, 2, 4]);
  isUp = true;
  await notebook.first('Reservoir initial fill complete');
  isUp = false;
  (await pool.acquire()).release(new Error('no good'));
  await notebook.until(() => attempts().filter((attempt) => attempt === 1).length === 2);
});

test('a connection that can not be had is counted for each cause of its own', () => {
  const pool = newPool({ ...asleep, reservoir: true });
  const notebook = log(pool, { level: 'warn' });
  const causes = ['rate_limit', 'token_provider', 'rate_limit', 'rate_limit', 'token_provider', 'rate_limit'];
  for (const cause of causes) publish('refill-failed', { pool, cause, error: new Error('no') });
  expect(notebook.lines.map(([level, , fields]) => [level, fields['attempt']])).toEqual([
    ['warn', 1],
    ['error', 1],
    ['warn', 2],
    ['error', 2],
    ['warn', 4],
  ]);
});

test('a pool without a reservoir logs the same events as what it is', async () => {
  const pool = newPool({ max: 2, name: 'plain' });
  const notebook = log(pool);
  (await pool.acquire()).release(new Error('no good'));
  publish('refill-failed', { pool, cause: 'connection_open', error: new Error('no') });
  expect(notebook.lines).toEqual([
    ['debug', 'Pool: created connection', { pool: 'plain', current_size: 1, limit: 2 }],
    [
      'warn',
      'Pool: discarding connection',
      { pool: 'plain', reason: 'released_with_error', remaining: expect.any(String) },
    ],
    ['error', 'Pool: connection open failed', { pool: 'plain', error: 'no', attempt: 1 }],
  ]);
});

test('a pool without a reservoir logs its warmup', async () => {
  const pool = newPool({ max: 3, warmup: { target: 2 } });
  const notebook = log(pool, { level: 'info' });
  await notebook.first('DSQL pool warmup complete');
  expect(notebook.lines).toEqual([
    [
      'info',
      'Starting DSQL pool warmup',
      { pool: 'pool', current_connections: 0, target_connections: 2, connections_to_create: 2 },
    ],
    [
      'info',
      'DSQL pool warmup complete',
      { pool: 'pool', connections_created: 2, connections_failed: 0, final_open_connections: 2 },
    ],
  ]);
});

test('a pool without a reservoir warns of a warmup that has given up', async () => {
  const connect = () => Promise.reject(new Error('no server'));
  const pool = newPool({ connect, warmup: { target: 2, retries: 0 }, backoffBase: 1, backoffCap: 1 });
  expect(await log(pool).first('DSQL pool warmup incomplete')).toEqual([
    'warn',
    'DSQL pool warmup incomplete',
    { pool: 'pool', connections_created: 0, connections_failed: 2, final_open_connections: 0 },
  ]);
});

test('a pool without a reservoir logs its keeper, and when that has connections opened', async () => {
  const pool = newPool({ max: 2, keeper: { target: 1, interval: '1ms' } });
  const notebook = log(pool);
  const [, , fields] = await notebook.first('Pool keeper: opening connections');
  expect(fields).toEqual({ pool: 'pool', count: 1, current_size: 0, target_pool_size: 1 });
  expect(notebook.lines[0]).toEqual([
    'info',
    'DSQL pool keeper started',
    { pool: 'pool', target_pool_size: 1, tick_interval: '1ms', max_conns_per_tick: 1 },
  ]);
});

test('a pool without a reservoir warns of a connection that was not given back', async () => {
  const pool = newPool({ leakThreshold: 1 });
  const notebook = log(pool);
  const lease = await pool.acquire();
  const [level, , fields] = await notebook.first('Pool: connection was not given back');
  expect([level, fields]).toEqual([
    'warn',
    { pool: 'pool', held: expect.any(String), taken_at: expect.any(String) },
  ]);
  expect(fields['taken_at']).toContain('logging.test');
  lease.release();
});

test('a log has a line for every reason, and warns of those that are faults', () => {
  const pool = newPool(asleep);
  const notebook = log(pool);
  for (const reason of discardReasons)
    publish('discarded', { pool, reason, remainingMs: Number.POSITIVE_INFINITY });
  expect(notebook.lines.map(([, , fields]) => fields['reason'])).toEqual([...discardReasons]);
  expect(
    notebook.lines.filter(([level]) => level === 'debug').map(([, , fields]) => fields['reason']),
  ).toEqual(['idle_timeout', 'max_lifetime', 'max_uses', 'over_limit', 'drained', 'expiring_soon_on_scan']);
  expect(notebook.lines[0]?.[2]['remaining']).toBe('no limit');
});

test('a log has only the lines from its level on', () => {
  const counts = (['debug', 'info', 'warn', 'error'] as const).map((level) => {
    const pool = newPool({ ...asleep, reservoir: true });
    const notebook = log(pool, { level });
    publish('opened', { pool, dialMs: 1 });
    publish('discarded', { pool, reason: 'broken', remainingMs: 1 });
    publish('refill-failed', { pool, cause: 'token_provider', error: new Error('no') });
    return notebook.lines.length;
  });
  expect(counts).toEqual([4, 3, 2, 1]);
});

test('a log is about its own pool until it is stopped, which may be done twice', async () => {
  const [pool, other] = [newPool({ name: 'mine' }), newPool({ name: 'other' })];
  const notebook = new Notebook();
  const { stop } = logPool(pool, { logger: notebook });
  (await pool.acquire()).release();
  (await other.acquire()).release();
  stop();
  stop();
  (await pool.acquire()).release(new Error('no good'));
  expect(notebook.lines.map(([, message, fields]) => [message, fields['pool']])).toEqual([
    ['Pool: created connection', 'mine'],
  ]);
  expect(channel('headgate:pool:discarded').hasSubscribers).toBe(false);
});

test('a log costs checkouts nothing', () => {
  log(newPool());
  expect(channel('headgate:pool:acquired').hasSubscribers).toBe(false);
  expect(channel('headgate:pool:released').hasSubscribers).toBe(false);
});

test('a log says all that is wrong with its options at once', () => {
  const wrong = { logger: { info() {} }, level: 'loud', levle: 1 } as unknown as LogOptions;
  expect(() => logPool(newPool(), wrong)).toThrow(
    expect.objectContaining({
      code: 'HG_BAD_OPTIONS',
      problems: ['logger', 'level', 'levle'].map((path) => expect.objectContaining({ path })),
    }),
  );
});

test('a log of the drop-in has its first lines too', async () => {
  const db = await withDatabase();
  cleanUps.push(() => db.drop());
  const pool = new Pool({ connectionString: db.url, max: 2, name: 'postgres', warmup: { target: 1 } });
  cleanUps.push(() => pool.end());
  const notebook = log(pool, { level: 'info' });
  await notebook.first('DSQL pool warmup complete');
  expect(notebook.lines.map(([, message]) => message)).toEqual([
    'Starting DSQL pool warmup',
    'DSQL pool warmup complete',
  ]);
});

test('pino takes the lines as they are', () => {
  const written: Record<string, unknown>[] = [];
  const logger: Logger = pino(
    { level: 'info', base: null },
    { write: (line) => void written.push(JSON.parse(line)) },
  );
  const pool = newPool({ ...asleep, reservoir: true });
  cleanUps.push(logPool(pool, { logger }).stop);
  publish('opened', { pool, dialMs: 1 });
  const error = Object.assign(new Error('no'), { password: 'hunter2' });
  publish('refill-failed', { pool, cause: 'token_provider', error });
  expect(written).toEqual([
    expect.objectContaining({
      level: 30,
      msg: 'Reservoir refiller started',
      target_ready: 50,
      pool: 'pool',
    }),
    expect.objectContaining({
      level: 50,
      msg: 'Reservoir refiller: token provider failed',
      error: 'no',
      attempt: 1,
    }),
  ]);
  expect(JSON.stringify(written)).not.toContain('hunter2');
});

test('pino is what logs where no logger is given', () => {
  const logger = usualLogger() as Logger;
  expect(logger.bindings()).toMatchObject({ name: 'headgate' });
  expect(usualLogger()).toBe(logger);
  logPool(newPool()).stop();
});

describe('the console', () => {
  function written(fields: object, message = 'It happened'): string[] {
    const lines: string[] = [];
    const to = (level: string) => (line: string) => {
      const [, time = '', rest] = /^(\S+) (.*)$/s.exec(line) ?? [];
      expect(new Date(time).toISOString()).toBe(time);
      lines.push(`${level} ${rest}`);
    };
    const target = { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
    const logger = consoleLogger(target);
    for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level](fields, message);
    return lines;
  }

  test('the console gets a line of text for each, at its level', () => {
    const fields = { target_ready: 50, low_watermark: 50, base_lifetime: '11m' };
    expect(written(fields)).toEqual(
      ['debug', 'info', 'warn', 'error'].map(
        (level) =>
          `${level} ${level.toUpperCase().padEnd(5)} It happened  target_ready=50 low_watermark=50 base_lifetime=11m`,
      ),
    );
    expect(written({})[0]).toBe('debug DEBUG It happened');
  });

  test('the console gets values in quotes that could be taken for something else', () => {
    const error = 'rate limit exceeded\nattempt=1 "x"';
    expect(written({ error, attempt: 3, empty: '' })[1]).toBe(
      'info INFO  It happened  error="rate limit exceeded\\nattempt=1 \\"x\\"" attempt=3 empty=""',
    );
  });
});

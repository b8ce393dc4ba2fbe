// Pools while a test has replaced the program's timers, and after it has put them back.
import { mock } from 'node:test';
import { install } from '@sinonjs/fake-timers';
import pg from 'pg';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Snowflake } from '../../src/dsql.js';
import { PromisePool } from '../../src/engine.js';
import { leasesFrom, Pool } from '../../src/index.js';
import { FakeClient } from '../support/fake-client.js';
import { rejectionOf, watch } from '../support/outcomes.js';

interface Fakes {
  readonly name: string;
  begin(): void;
  advance(milliseconds: number): void;
  end(): void;
}

let clock: ReturnType<typeof install> | undefined;

const tools: readonly Fakes[] = [
  {
    name: 'node:test',
    begin: () => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] }),
    // Within one tick, a timer that is set by another one counts from the end of the tick.
    advance: (milliseconds) => {
      for (let passed = 0; passed < milliseconds; passed += 100) mock.timers.tick(100);
    },
    end: () => mock.timers.reset(),
  },
  {
    name: 'vitest',
    begin: () => void vi.useFakeTimers(),
    advance: (milliseconds) => void vi.advanceTimersByTime(milliseconds),
    end: () => void vi.useRealTimers(),
  },
  {
    name: 'sinon and jest',
    begin: () => {
      clock = install({
        toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
      });
    },
    advance: (milliseconds) => void clock?.tick(milliseconds),
    end: () => {
      clock?.uninstall();
      clock = undefined;
    },
  },
];

afterEach(() => {
  for (const { end } of tools) end();
});

let connections = 0;
function newPool(options: object = {}): PromisePool<object> {
  return new PromisePool<object>({ connect: () => ({ id: ++connections }), max: 1, ...options });
}

describe.each(tools)('With the timers of $name', ({ begin, advance, end }) => {
  test('a timeout of 5 s fires when 6 s have passed, and not before', async () => {
    const pool = newPool({ acquireTimeout: '5s' });
    const held = await pool.acquire();
    begin();
    const waiting = watch(pool.acquire());
    advance(4_000);
    expect(pool.stats().waiting).toBe(1);
    advance(2_000);
    expect(pool.stats().waiting).toBe(0);
    end();
    expect((await rejectionOf(waiting.promise)).message).toContain('timeout exceeded');
    held.release();
    await pool.drain();
  });

  test('a pool that has seen them fires its timeouts again when the real ones are back', async () => {
    const pool = newPool({ acquireTimeout: '40ms', idleTimeout: '40ms' });
    const held = await pool.acquire();
    begin();
    const lost = watch(pool.acquire());
    end();
    expect((await rejectionOf(pool.acquire())).message).toContain('timeout exceeded');
    await rejectionOf(lost.promise);
    held.release();
    await vi.waitFor(() => expect(pool.stats().live).toBe(0), { timeout: 20_000 });
    await pool.drain();
  });

  test('an idle connection is closed when the time for it has passed', async () => {
    const pool = newPool({ idleTimeout: '10s' });
    begin();
    (await pool.acquire()).release();
    advance(9_000);
    expect(pool.stats().idle).toBe(1);
    advance(2_000);
    expect(pool.stats().idle).toBe(0);
    end();
    await pool.drain();
  });

  test('an idle timeout counts from the release, though the turn began before them', async () => {
    const pool = newPool({ idleTimeout: '10s', acquireTimeout: '5s' });
    const held = await pool.acquire();
    begin();
    const waiting = watch(pool.acquire());
    advance(6_000);
    held.release();
    advance(9_000);
    expect(pool.stats().idle).toBe(1);
    advance(2_000);
    expect(pool.stats().idle).toBe(0);
    end();
    await rejectionOf(waiting.promise);
    await pool.drain();
  });

  test('a pool made while they are on serves when they are gone', async () => {
    begin();
    const pool = newPool({ acquireTimeout: '40ms' });
    const held = await pool.acquire();
    end();
    await rejectionOf(pool.acquire());
    held.release();
    await pool.drain();
  });
});

test.each([
  ['pg.Pool', pg.Pool],
  ['headgate Pool', Pool],
])('end() settles while nextTick is faked, by promise and by callback: %s', async (_name, PoolClass) => {
  const pools = [1, 2].map(() => new PoolClass({ max: 1, Client: FakeOnMicrotasks as never }));
  for (const pool of pools) (await pool.connect()).release();
  const fakes = install({ toFake: ['nextTick', 'setTimeout', 'setImmediate', 'Date', 'performance'] });
  try {
    await pools[0]?.end();
    await new Promise<void>((resolve) => pools[1]?.end(resolve));
    expect(pools.map(({ totalCount }) => totalCount)).toEqual([0, 0]);
  } finally {
    fakes.uninstall();
  }
});

test.each([
  ['pg.Pool', pg.Pool],
  ['headgate Pool', Pool],
])(
  'Advancing 6 s fires a connection timeout of 5 s, and 11 s an idle timeout of 10 s: %s',
  async (_name, PoolClass) => {
    const fakes = install({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
    try {
      const pool = new PoolClass({
        max: 1,
        connectionTimeoutMillis: 5_000,
        idleTimeoutMillis: 10_000,
        Client: FakeOnMicrotasks as never,
      });
      const held = await pool.connect();
      const waiting = rejectionOf(pool.connect());
      fakes.tick(6_000);
      expect((await waiting).message).toContain('timeout exceeded when trying to connect');
      held.release();
      expect(pool.idleCount).toBe(1);
      fakes.tick(11_000);
      expect(pool.idleCount).toBe(0);
      await pool.end();
    } finally {
      fakes.uninstall();
    }
  },
);

test('Timers that ring move time on where the test has replaced no clock', async () => {
  const pool = newPool();
  const held = await pool.acquire();
  mock.timers.enable({ apis: ['setTimeout'] });
  const waiting = ['5s', '8s'].map((timeout) => watch(pool.acquire({ timeout })));
  for (const left of [1, 0]) {
    mock.timers.tick(left === 1 ? 5_001 : 3_500);
    expect(pool.stats().waiting).toBe(left);
  }
  mock.timers.reset();
  for (const { promise } of waiting) await rejectionOf(promise);
  held.release();
  await pool.drain();
});

test.each([
  ['with its clock', ['setTimeout', 'Date']],
  ['without its clock', ['setTimeout']],
] as const)(
  'A pool fires its timeouts in a second test with the timers of node:test, %s, which begins at the time of the first',
  async (_how, apis) => {
    const pool = newPool({ idleTimeout: '10s', acquireTimeout: '10s' });
    const idle = newPool({ idleTimeout: '10s' });
    const held = await pool.acquire();
    const waiting: Promise<Error>[] = [];
    for (const round of [1, 2]) {
      if (round === 2) mock.timers.reset();
      mock.timers.enable({ apis: [...apis] });
      waiting.push(rejectionOf(pool.acquire()));
      (await idle.acquire()).release();
    }
    mock.timers.tick(11_000);
    expect([pool.stats().waiting, idle.stats().idle]).toEqual([0, 0]);
    mock.timers.reset();
    await Promise.all(waiting);
    held.release();
    await Promise.all([pool.drain(), idle.drain()]);
  },
);

test('leasesFrom() asks its coordinator while queueMicrotask is faked', async () => {
  const fakes = install({ toFake: ['queueMicrotask', 'nextTick', 'setTimeout', 'setImmediate'] });
  try {
    const leases = leasesFrom({ acquire: async () => true, release: async () => {} });
    const pool = newPool({ leases });
    (await pool.acquire()).release();
    await pool.drain();
  } finally {
    fakes.uninstall();
  }
});

test('Snowflake.nextId() waits for a clock that is behind in the time of the test', async () => {
  const fakes = install({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'], now: 1e12 });
  try {
    const ids = new Snowflake({ nodeId: 1, epoch: 0, maxWait: '5s' });
    ids.next();
    fakes.setSystemTime(1e12 - 500);
    let id: bigint | undefined;
    const coming = ids.nextId().then((value) => {
      id = value;
    });
    for (let n = 0; id === undefined && n < 100; n++) await fakes.tickAsync(100);
    await coming;
    expect(id).toBeDefined();
    await ids.end();
  } finally {
    fakes.uninstall();
  }
});

/** A client that needs no faked function. */
class FakeOnMicrotasks extends FakeClient {
  override connect(callback: (error?: Error | null) => void): void {
    queueMicrotask(callback);
  }

  override end(callback?: () => void): void {
    queueMicrotask(() => callback?.());
  }
}

// Wrong options, wrong releases, and a connect() that throws, hangs, answers late or answers nothing.
import { expect, test } from 'vitest';
import {
  BadConnectionError,
  ConnectFailedError,
  DialTimeoutError,
  DoubleReleaseError,
  ForeignReleaseError,
  PoolClosedError,
} from '../../src/core/errors.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { PromisePool } from '../../src/runtime/promise-pool.js';
import { nextTurn, rejectionOf } from '../support/outcomes.js';
import { type FakeConnection, FakeConnections, gate } from './fake-connections.js';

/** Fails fast: the first failed dial is the answer. */
const rejecting = { onDialFailure: 'reject', max: 1 } as const;

function errorOf(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('Nothing was thrown.');
}

/** Lets so much time pass by the clock that the pool reads. */
async function letIdle(milliseconds: number): Promise<void> {
  const end = performance.now() + milliseconds;
  while (performance.now() <= end) await nextTurn();
}

test('Options that make no sense are refused with all problems at once, and the name that was probably meant', () => {
  const error = errorOf(
    () =>
      new PromisePool({
        max: 0,
        minIdle: -1,
        acquireTimeout: 'soon',
        idletimeout: 5,
        close: 'yes',
        keepalive: '1m',
      } as never),
  );
  expect(error).toBeInstanceOf(PoolOptionsError);
  expect(error).toMatchObject({ code: 'HG_BAD_OPTIONS' });
  expect((error as PoolOptionsError).problems.map(({ path }) => path).toSorted()).toEqual(
    ['acquireTimeout', 'check', 'close', 'connect', 'idletimeout', 'max', 'minIdle'].toSorted(),
  );
  expect(error.message).toContain('idletimeout: is not an option; did you mean idleTimeout?');
  expect(error.message).toContain('connect: is missing: it must be a function');
});

test.each([undefined, null, {}])(
  'Options that make no sense such as %j, are told to have no connect',
  (options) => {
    expect(errorOf(() => new PromisePool(options as never)).message).toContain('connect: is missing');
  },
);

test('Options that make no sense of a single call reject that call', async () => {
  const { connect } = new FakeConnections();
  const pool = new PromisePool({ connect });
  expect(await rejectionOf(pool.ready(11))).toBeInstanceOf(PoolOptionsError);
  expect(await rejectionOf(pool.ready(-1))).toBeInstanceOf(PoolOptionsError);
  expect(await rejectionOf(pool.ready(1, { timeout: 'soon' }))).toBeInstanceOf(PoolOptionsError);
  expect(await rejectionOf(pool.acquire({ timeout: 'soon' }))).toBeInstanceOf(PoolOptionsError);
  expect(await rejectionOf(pool.drain({ deadline: -5 }))).toBeInstanceOf(PoolOptionsError);
  expect(pool.stats()).toMatchObject({ state: 'open', waiting: 0, pending: 0 });
  await pool.drain();
});

test('Options that make no sense of resize() are refused, and the limit stays as it was', async () => {
  const { connect } = new FakeConnections();
  const pool = new PromisePool({ connect, max: 3 });
  for (const limit of [-1, 2.5, Number.NaN, '5' as never])
    expect(() => pool.resize(limit)).toThrow(/whole number/);
  expect(pool.stats().limit).toBe(3);
  await pool.drain();
});

test('A release of the same lease twice is refused, and the second one changes nothing', async () => {
  const { connect } = new FakeConnections();
  const pool = new PromisePool({ connect, max: 1 });
  const first = await pool.acquire();
  first.release();
  expect(() => first.release()).toThrow(DoubleReleaseError);
  const second = await pool.acquire();
  expect(() => first.release()).toThrow(DoubleReleaseError);
  expect(() => first.destroy()).toThrow(DoubleReleaseError);
  expect(() => pool.release(first)).toThrow(DoubleReleaseError);
  expect(pool.stats()).toMatchObject({ inUse: 1, idle: 0 });
  second.release();
  await pool.drain();
});

test('A release of something that this pool did not lend is refused', async () => {
  const { connect } = new FakeConnections();
  const [mine, other] = [new PromisePool({ connect }), new PromisePool({ connect })];
  const lease = await other.acquire();
  for (const foreign of [lease, lease.connection, {}, undefined, null, 5]) {
    expect(() => mine.release(foreign as never)).toThrow(ForeignReleaseError);
  }
  expect(other.stats().inUse).toBe(1);
  other.release(lease);
  await Promise.all([mine.drain(), other.drain()]);
});

test('A pool that was drained refuses every further use', async () => {
  const { connect } = new FakeConnections();
  const pool = new PromisePool({ connect });
  await pool.drain();
  const error = await rejectionOf(pool.acquire());
  expect(error).toBeInstanceOf(PoolClosedError);
  expect(error.message).toMatch(/^Cannot use a pool after calling end on the pool/);
  expect(await rejectionOf(pool.ready(1))).toBeInstanceOf(PoolClosedError);
  expect(pool.tryAcquire()).toBeUndefined();
});

test('A connect() that throws, at once or later, is a failed dial; nothing is lost', async () => {
  const made = new FakeConnections();
  let attempt = 0;
  const connect = (): Promise<FakeConnection> => {
    attempt++;
    if (attempt === 1) throw new Error('thrown at once');
    return attempt === 2 ? Promise.reject(new Error('rejected')) : made.connect();
  };
  const pool = new PromisePool({ ...rejecting, connect });
  await expect(pool.acquire()).rejects.toThrow('thrown at once');
  await expect(pool.acquire()).rejects.toThrow('rejected');
  expect(pool.stats()).toMatchObject({ pending: 0, live: 0 });
  (await pool.acquire()).release();
  await pool.drain();
});

test('A connect() that throws something that is no error still fails with one', async () => {
  const pool = new PromisePool({ ...rejecting, connect: () => Promise.reject('a text') });
  await expect(pool.acquire()).rejects.toThrow('a text');
  await pool.drain();
});

test('A connect() that keeps failing is reported with its own error as the cause, after as many attempts as the breaker waits for', async () => {
  const refused = new Error('ECONNREFUSED');
  const pool = new PromisePool({
    connect: () => Promise.reject(refused),
    max: 1,
    backoffBase: 1,
    backoffCap: 1,
    breakerThreshold: 3,
  });
  const error = await rejectionOf(pool.acquire());
  expect(error).toBeInstanceOf(ConnectFailedError);
  expect(error).toMatchObject({ code: 'HG_CONNECT_FAILED', attempts: 3, cause: refused });
  await pool.drain();
});

test.each([undefined, null])('A connect() that answers %s is a failed dial that says so', async (nothing) => {
  const pool = new PromisePool<FakeConnection>({ ...rejecting, connect: async () => nothing as never });
  const error = await rejectionOf(pool.acquire());
  expect(error).toBeInstanceOf(BadConnectionError);
  expect(error.message).toContain(`answered with ${nothing}`);
  expect(pool.stats()).toMatchObject({ pending: 0, live: 0 });
  await pool.drain();
});

test('A connect() that hangs is given up at its deadline, and told so through its signal', async () => {
  let signal: AbortSignal | undefined;
  const pool = new PromisePool<FakeConnection>({
    ...rejecting,
    dialTimeout: 5,
    closeTimeout: 5,
    connect: (context) => {
      signal = context.signal;
      return new Promise<FakeConnection>(() => {});
    },
  });
  const error = await rejectionOf(pool.acquire());
  expect(error).toBeInstanceOf(DialTimeoutError);
  expect(signal?.aborted).toBe(true);
  await pool.drain();
  expect(pool.stats()).toMatchObject({ pending: 0, closing: 0 });
});

test('A connect() that answers after it was given up has its connection closed, never handed out', async () => {
  const made = new FakeConnections();
  const late = gate<FakeConnection>();
  let attempt = 0;
  const closed: FakeConnection[] = [];
  const pool = new PromisePool<FakeConnection>({
    ...rejecting,
    dialTimeout: 5,
    connect: () => (++attempt === 1 ? late.promise : made.connect()),
    close: (connection) => {
      closed.push(connection);
      made.remove(connection);
    },
  });
  await expect(pool.acquire()).rejects.toThrow(DialTimeoutError);
  const ghost = made.make();
  late.open(ghost);
  await nextTurn();
  expect(closed).toEqual([ghost]);
  const lease = await pool.acquire();
  expect(lease.connection).not.toBe(ghost);
  expect(pool.stats().totals.discarded.late_dial).toBe(1);
  lease.release();
  await pool.drain();
  expect(made.open.size).toBe(0);
});

test('A close() that throws, at once or later, is followed by destroy(), and the slot is free', async () => {
  for (const close of [
    () => {
      throw new Error('at once');
    },
    () => Promise.reject(new Error('later')),
  ]) {
    const made = new FakeConnections();
    const pool = new PromisePool({ connect: made.connect, close, destroy: made.destroy, max: 1 });
    (await pool.acquire()).release(new Error('bad'));
    expect((await pool.acquire()).connection.id).toBe(2);
    expect(made.destroyed).toBe(1);
    await pool.drain({ deadline: 1 });
  }
});

test('A close() that hangs is ended by destroy() after its deadline, even if that throws', async () => {
  const made = new FakeConnections();
  const pool = new PromisePool({
    connect: made.connect,
    close: () => new Promise<void>(() => {}),
    destroy: (connection: FakeConnection) => {
      made.destroy(connection);
      throw new Error('from destroy');
    },
    closeTimeout: 5,
    max: 1,
  });
  (await pool.acquire()).release(new Error('bad'));
  expect((await pool.acquire()).connection.id).toBe(2);
  expect(made.peak).toBe(1);
  await pool.drain({ deadline: 1 });
});

test.each<[string, () => Promise<boolean | void> | boolean]>([
  ['answers no', () => false],
  ['answers no later', async () => false],
  ['rejects', () => Promise.reject(new Error('gone'))],
  [
    'throws',
    () => {
      throw new Error('gone');
    },
  ],
])('A check() that %s has the connection replaced', async (_what, check) => {
  const made = new FakeConnections();
  const pool = new PromisePool({
    connect: made.connect,
    close: made.close,
    check,
    checkAfterIdle: 20,
    max: 1,
  });
  (await pool.acquire()).release();
  await letIdle(25);
  const lease = await pool.acquire();
  expect(lease.connection.id).toBe(2);
  expect(pool.stats().totals.discarded.failed_check).toBe(1);
  lease.release();
  await pool.drain();
});

test.each<[string, () => Promise<boolean | void> | boolean | void]>([
  ['answers yes', () => true],
  ['answers nothing', async () => {}],
])('A check() that %s has it kept', async (_what, check) => {
  const made = new FakeConnections();
  const pool = new PromisePool({ connect: made.connect, check, checkAfterIdle: 20, max: 1 });
  (await pool.acquire()).release();
  await letIdle(25);
  expect((await pool.acquire()).connection.id).toBe(1);
  await pool.drain({ deadline: 1 });
});

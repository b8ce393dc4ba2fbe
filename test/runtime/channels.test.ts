// What pools publish on diagnostics channels.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import type { PoolChannels } from '../../src/runtime/channels.js';
import { PromisePool } from '../../src/runtime/promise-pool.js';
import { nextTurn, rejectionOf } from '../support/outcomes.js';
import { FakeConnections, gate } from './fake-connections.js';

type Name = keyof PoolChannels;

/** Collects the messages of one channel until the test ends. */
function listen<N extends Name>(name: N): PoolChannels[N][] {
  const messages: PoolChannels[N][] = [];
  const take = (message: unknown): void => {
    messages.push(message as PoolChannels[N]);
  };
  subscribe(name, take);
  onTestFinished(() => {
    unsubscribe(name, take);
  });
  return messages;
}

test('A pool tells each step of the life of a connection, in its order, naming the pool and the connection', async () => {
  const names = ['opened', 'acquired', 'released', 'discarded', 'closed'] as const;
  const story: string[] = [];
  for (const name of names) {
    const take = (): void => void story.push(name);
    subscribe(`headgate:pool:${name}`, take);
    onTestFinished(() => void unsubscribe(`headgate:pool:${name}`, take));
  }
  const [opened, acquired, released] = [
    listen('headgate:pool:opened'),
    listen('headgate:pool:acquired'),
    listen('headgate:pool:released'),
  ];
  const [discarded, closed] = [listen('headgate:pool:discarded'), listen('headgate:pool:closed')];
  const { connect, close } = new FakeConnections();
  const pool = new PromisePool({ connect, close, name: 'orders' });
  const lease = await pool.acquire();
  lease.release(new Error('bad'));
  await pool.drain();

  expect(story).toEqual([...names]);
  const common = { pool, poolName: 'orders', connection: lease.connection, connectionId: 1 };
  expect(opened).toEqual([{ ...common, dialMs: expect.any(Number) }]);
  expect(acquired).toEqual([{ ...common, waitMs: expect.any(Number) }]);
  expect(released).toEqual([{ ...common, useMs: expect.any(Number) }]);
  const remainingMs = expect.any(Number);
  expect(discarded).toEqual([{ ...common, reason: 'released_with_error', remainingMs }]);
  expect(closed).toEqual([{ ...common, reason: 'released_with_error' }]);
  for (const message of [...opened, ...acquired, ...released, ...discarded]) {
    for (const value of Object.values(message))
      if (typeof value === 'number') expect(value).toBeGreaterThanOrEqual(0);
  }
});

test('A pool tells failed dials, timeouts and changes of its state', async () => {
  const failed = listen('headgate:pool:dial-failed');
  const timeouts = listen('headgate:pool:timeout');
  const states = listen('headgate:pool:state');
  const refused = new Error('refused');
  const pool = new PromisePool({
    connect: () => Promise.reject(refused),
    onDialFailure: 'reject',
    name: 'down',
  });
  await rejectionOf(pool.acquire());
  await rejectionOf(pool.acquire());
  expect(failed).toEqual([
    { pool, poolName: 'down', error: refused, failuresInARow: 1, dialMs: expect.any(Number) },
    { pool, poolName: 'down', error: refused, failuresInARow: 2, dialMs: expect.any(Number) },
  ]);
  pool.pause();
  await rejectionOf(pool.acquire({ timeout: 1 }));
  expect(timeouts).toEqual([{ pool, poolName: 'down', waitMs: expect.any(Number) }]);
  pool.resume();
  await pool.drain();
  expect(states.map(({ state }) => state)).toEqual(['paused', 'open', 'draining', 'closed']);
});

test('A pool tells of a leak: which connection, for how long, and where in the program it was taken', async () => {
  const told = gate<PoolChannels['headgate:pool:leak']>();
  const take = (message: unknown): void => told.open(message as PoolChannels['headgate:pool:leak']);
  subscribe('headgate:pool:leak', take);
  onTestFinished(() => void unsubscribe('headgate:pool:leak', take));
  const { connect } = new FakeConnections();
  const pool = new PromisePool({ connect, leakThreshold: 5, max: 1 });
  const lease = await pool.acquire();
  const leak = await told.promise;
  expect(leak).toMatchObject({ pool, connection: lease.connection, connectionId: 1 });
  expect(leak.heldMs).toBeGreaterThanOrEqual(4);
  expect(leak.takenAt).toContain('channels.test.ts');
  expect(pool.stats().totals.leaks).toBe(1);
  lease.release();
  await pool.drain();
});

test('A pool tells where a leak was taken by tryAcquire()', async () => {
  const told = gate<PoolChannels['headgate:pool:leak']>();
  const take = (message: unknown): void => told.open(message as PoolChannels['headgate:pool:leak']);
  subscribe('headgate:pool:leak', take);
  onTestFinished(() => void unsubscribe('headgate:pool:leak', take));
  const { connect } = new FakeConnections();
  const pool = new PromisePool({ connect, leakThreshold: 5, max: 1 });
  (await pool.acquire()).release();
  const lease = pool.tryAcquire();
  expect((await told.promise).takenAt).toContain('channels.test.ts');
  lease?.release();
  await pool.drain();
});

test('A pool tells nothing about checkouts that began before anyone listened, and nothing after', async () => {
  const { connect } = new FakeConnections();
  const pool = new PromisePool({ connect });
  const before = await pool.acquire();
  const messages: unknown[] = [];
  const take = (message: unknown): void => void messages.push(message);
  subscribe('headgate:pool:released', take);
  before.release();
  unsubscribe('headgate:pool:released', take);
  (await pool.acquire()).release();
  await nextTurn();
  expect(messages).toHaveLength(1);
  await pool.drain();
});

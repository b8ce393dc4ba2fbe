// The texts that a `log` function is given, as far as programs can rely on them.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type FaultyServer, portWhereNobodyListens, startFaultyServer } from '../../support/faulty-server.js';
import { eventOf, rejectionOf } from '../../support/outcomes.js';
import { everyPool } from './every-pool.js';

// Not here: 'pulse queue', 'no queued requests', 'checking client timeout' and the like. They tell how pg-pool goes
// about its work, which is nobody's business, and no program can draw a conclusion from them.
everyPool(({ newPool, server }) => {
  let front: FaultyServer;
  const log = vi.fn();
  const texts = () => log.mock.calls.map(([text]) => text);

  beforeEach(async () => {
    front = await startFaultyServer(server());
    log.mockClear();
  });

  afterEach(async () => {
    await front.stop();
  });

  /** The texts among those given, in the order in which they came. */
  const order = (...wanted: string[]) => texts().filter((text) => wanted.includes(text));

  test('the log of a pool tells of a new client and of a query, in this order', async () => {
    const pool = newPool({ log });
    await pool.query('select 1');
    const wanted = ['connecting new client', 'new client connected', 'dispatching query', 'query dispatched'];
    expect(order(...wanted)).toEqual(wanted);
    await pool.end();
  });

  test('the log of a pool tells of no new client when one is used again', async () => {
    const pool = newPool({ log });
    await pool.query('select 1');
    log.mockClear();
    await pool.query('select 1');
    const wanted = ['dispatching query', 'query dispatched'];
    expect(order('connecting new client', 'new client connected', ...wanted)).toEqual(wanted);
    await pool.end();
  });

  test('the log of a pool tells of a client that failed to connect, with the error', async () => {
    const pool = newPool({ log, port: await portWhereNobodyListens() });
    const error = await rejectionOf(pool.connect());
    expect(log).toHaveBeenCalledWith('client failed to connect', error);
    expect(texts()).not.toContain('new client connected');
  });

  test('the log of a pool tells of a client that is given up because connecting takes too long', async () => {
    front.stall();
    const pool = newPool({ log, port: front.port, connectionTimeoutMillis: 40 });
    await rejectionOf(pool.connect());
    const wanted = ['ending client due to timeout', 'client failed to connect'];
    await vi.waitFor(() => expect(order(...wanted)).toEqual(wanted));
  });

  test('the log of a pool tells of a client that has had its uses', async () => {
    const pool = newPool({ log, maxUses: 1 });
    const client = await pool.connect();
    client.release();
    expect(texts()).toContain('remove expended client');
    await pool.end();
  });

  test('the log of a pool tells of a client that was idle too long', async () => {
    const pool = newPool({ log, idleTimeoutMillis: 20 });
    const removed = eventOf(pool, 'remove');
    await pool.query('select 1');
    await removed;
    expect(texts()).toContain('remove idle client');
    await pool.end();
  });

  test('the log of a pool tells of a client that is too old, idle', async () => {
    const pool = newPool({ log, maxLifetimeSeconds: 0.1 });
    const removed = eventOf(pool, 'remove');
    await pool.query('select 1');
    await removed;
    const wanted = ['ending client due to expired lifetime', 'remove expired client'];
    expect(order(...wanted)).toEqual(wanted);
    await pool.end();
  });

  test('the log of a pool tells of a client that is too old, in use', async () => {
    const pool = newPool({ log, maxLifetimeSeconds: 0.1 });
    const client = await pool.connect();
    await vi.waitFor(() => expect(pool.expiredCount).toBe(1));
    expect(texts()).not.toContain('remove expired client');
    client.release();
    const wanted = ['ending client due to expired lifetime', 'remove expired client'];
    expect(order(...wanted)).toEqual(wanted);
    await pool.end();
  });

  test('the log of a pool tells of further errors of a client that is gone because of the first', async () => {
    const pool = newPool({ log });
    pool.on('error', () => {});
    const client = await pool.connect();
    client.release();
    client.emit('error', new Error('the first'));
    client.emit('error', new Error('the second'));
    expect(log).toHaveBeenCalledWith(
      'additional client error after disconnection due to error',
      expect.any(Error),
    );
    await pool.end();
  });

  test('the log of a pool tells of the end', async () => {
    const pool = newPool({ log });
    expect(texts()).not.toContain('ending');
    await pool.end();
    expect(texts()).toContain('ending');
  });
});

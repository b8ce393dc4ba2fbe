// In ordinary use a pool causes no process warning: no leak of listeners, nothing deprecated, nothing experimental.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventOf, nextTurn, rejectionOf } from '../../support/outcomes.js';
import { everyPool } from './every-pool.js';

everyPool(({ newPool }) => {
  let warnings: string[] = [];
  const note = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`);

  beforeEach(() => {
    warnings = [];
    process.on('warning', note);
  });

  afterEach(() => {
    process.off('warning', note);
  });

  /** Warnings come a tick after their cause. */
  async function noWarnings(): Promise<void> {
    await nextTurn();
    expect(warnings).toEqual([]);
  }

  test('process warnings do not come from queries and checkouts, many at once and again and again', async () => {
    const pool = newPool({ max: 4, connectionTimeoutMillis: 20_000 });
    await Promise.all(Array.from({ length: 100 }, () => pool.query('select 1')));
    for (let turn = 0; turn < 50; turn += 1) (await pool.connect()).release();
    await pool.end();
    await noWarnings();
  });

  test('process warnings do not come from a client that has been out many times: it has no more listeners than at first', async () => {
    const pool = newPool({ max: 1, allowExitOnIdle: true, maxLifetimeSeconds: 600 });
    const client = await pool.connect();
    const listeners = () => client.eventNames().map((name) => [name, client.listenerCount(name)]);
    const outAtFirst = listeners();
    client.release();
    const idleAtFirst = listeners();
    for (let turn = 0; turn < 50; turn += 1) await pool.query('select 1');
    expect(listeners()).toEqual(idleAtFirst);
    await pool.connect();
    expect(listeners()).toEqual(outAtFirst);
    client.release();
    await pool.end();
    await noWarnings();
  });

  test('process warnings do not come from failures, timeouts and removals', async () => {
    const pool = newPool({ max: 2, maxUses: 3, idleTimeoutMillis: 30, connectionTimeoutMillis: 2_000 });
    pool.on('error', () => {});
    const failing = Array.from({ length: 30 }, () => rejectionOf(pool.query('select no_such_column')));
    await Promise.all(failing);
    const idle = await pool.connect();
    idle.release();
    idle.emit('error', new Error('on purpose'));
    const removed = eventOf(pool, 'remove');
    await pool.query('select 1');
    await removed;
    await pool.end();
    await noWarnings();
  });

  test('process warnings do not come from many pools', async () => {
    const pools = Array.from({ length: 15 }, () => newPool({ max: 1 }));
    await Promise.all(pools.map((pool) => pool.query('select 1')));
    await Promise.all(pools.map((pool) => pool.end()));
    await noWarnings();
  });
});

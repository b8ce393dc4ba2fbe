// Real pools that share a budget: together never over it, and every caller is served.
import { expect, test } from 'vitest';
import { LeaseLimitError } from '../../src/coordination/errors.js';
import { localLeases } from '../../src/coordination/local-leases.js';
import { leasesFrom } from '../../src/coordination/promised-leases.js';
import { tokenBucket } from '../../src/coordination/token-bucket.js';
import type { Leases } from '../../src/core/leases.js';
import { PromisePool } from '../../src/runtime/promise-pool.js';
import { type FakeConnection, FakeConnections } from '../runtime/fake-connections.js';
import { nextTurn, rejectionOf } from '../support/outcomes.js';

/** Several pools on one server, which sees all of their connections. */
function poolsOn(
  leases: Leases,
  count: number,
): { made: FakeConnections; pools: PromisePool<FakeConnection>[] } {
  const made = new FakeConnections();
  const { connect, close, destroy } = made;
  const pools = Array.from(
    { length: count },
    (_, n) =>
      new PromisePool<FakeConnection>({
        connect,
        close,
        destroy,
        leases,
        max: 5,
        // A connection keeps its lease while it is idle: this gives it up for the others at once.
        maxUses: 1,
        backoffBase: 1,
        backoffCap: 20,
        name: `pool ${n}`,
      }),
  );
  return { made, pools };
}

async function useAll(pools: readonly PromisePool<FakeConnection>[], callersEach: number): Promise<void> {
  const callers = pools.flatMap((pool) =>
    Array.from({ length: callersEach }, async () => {
      const lease = await pool.acquire();
      await nextTurn();
      lease.release();
    }),
  );
  await Promise.all(callers);
  await Promise.all(pools.map((pool) => pool.drain()));
}

test('Pools that share a budget never have more connections together than it has leases, and serve every caller', async () => {
  const leases = localLeases({ limit: 3 });
  const { made, pools } = poolsOn(leases, 4);
  await useAll(pools, 25);
  expect(made.peak).toBe(3);
  expect(leases.stats()).toMatchObject({ held: 0, strayReleases: 0 });
});

test('Pools that share a budget do so with a coordinator that takes its time and fails now and then', async () => {
  let taken = 0;
  let calls = 0;
  const seen = new Set<string>();
  const trouble = async (): Promise<void> => {
    await nextTurn();
    if (++calls % 7 === 0) throw new Error('now and then');
  };
  const leases = leasesFrom({
    acquire: async (count) => {
      await trouble();
      if (taken + count > 3) return false;
      taken += count;
      return true;
    },
    release: async (count, { id }) => {
      await trouble();
      if (seen.has(id)) return;
      seen.add(id);
      taken -= count;
    },
    random: { next: () => 0 },
  });
  const { made, pools } = poolsOn(leases, 3);
  await useAll(pools, 15);
  expect(made.peak).toBeLessThanOrEqual(3);
  expect(await leases.flush()).toBe(0);
  expect(taken).toBe(0);
  expect(leases.stats()).toMatchObject({ held: 0, strayReleases: 0 });
});

test('Pools that share a budget say why a caller got nothing', async () => {
  const leases = localLeases({ limit: 1 });
  const [one, other] = poolsOn(leases, 2).pools as [PromisePool<FakeConnection>, PromisePool<FakeConnection>];
  const held = await one.acquire();
  const error = await rejectionOf(other.acquire({ timeout: 20 }));
  expect(error.cause).toBeInstanceOf(LeaseLimitError);
  held.release();
  await Promise.all([one.drain(), other.drain()]);
});

test('Pools that share a budget close connections when the budget is lowered, and no caller notices', async () => {
  const leases = localLeases({ limit: 4 });
  const made = new FakeConnections();
  const { connect, close, destroy } = made;
  const pool = new PromisePool<FakeConnection>({ connect, close, destroy, leases, max: 4, minIdle: 4 });
  await pool.ready(4);
  leases.resize(1);
  await nextTurn();
  expect(pool.stats()).toMatchObject({ live: 1 });
  (await pool.acquire()).release();
  await pool.drain();
  expect(leases.stats()).toMatchObject({ held: 0, strayReleases: 0 });
});

test('Pools that share a budget share the rate of one bucket', async () => {
  const made = new FakeConnections();
  const { connect, close, destroy } = made;
  const rateLimiter = tokenBucket({ rate: 0.001, burst: 3 });
  const pools = [1, 2].map(
    () => new PromisePool<FakeConnection>({ connect, close, destroy, rateLimiter, minIdle: 3 }),
  );
  await nextTurn();
  await nextTurn();
  expect(made.opened).toBe(3);
  await Promise.all(pools.map((pool) => pool.drain()));
});

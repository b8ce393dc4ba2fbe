// @ts-check
// Work done with a pool while the clock runs. Every contestant gets exactly the same code.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** After so many checkouts the event loop gets a turn, so that timers and other work run as they would in a program. */
const checkoutsPerTurn = 1_000;

/**
 * @typedef {import('./in-process-pools.mjs').PoolUnderTest} PoolUnderTest
 * @typedef {import('./postgres-pools.mjs').DatabaseUnderTest} DatabaseUnderTest
 * @typedef {(pool: PoolUnderTest & DatabaseUnderTest, operations: number) => Promise<void>} Workload
 */

/** @type {Record<string, Workload>} */
export const workloads = {
  /** One caller: take, give back, take, ... */
  async 'one at a time'(pool, operations) {
    for (let left = operations; left > 0; left -= checkoutsPerTurn) {
      for (let i = Math.min(left, checkoutsPerTurn); i > 0; i -= 1) {
        const handle = await pool.acquire();
        pool.release(/** @type {never} */ (handle));
      }
      await nextTurn();
    }
  },

  /** The same without promises. */
  async synchronous(pool, operations) {
    const tryAcquire = /** @type {() => { release(): void } | undefined} */ (pool.tryAcquire);
    const first = await pool.acquire();
    pool.release(/** @type {never} */ (first));
    for (let left = operations; left > 0; left -= checkoutsPerTurn) {
      for (let i = Math.min(left, checkoutsPerTurn); i > 0; i -= 1) {
        const lease = tryAcquire();
        if (lease === undefined) throw new Error('The pool had nothing although nobody else takes from it.');
        lease.release();
      }
      await nextTurn();
    }
  },

  /** Without promises or leases: take, give back, take, ... */
  async 'take and give back'(pool, operations) {
    const tryAcquire = /** @type {() => unknown} */ (pool.tryAcquire);
    for (let left = operations; left > 0; left -= checkoutsPerTurn) {
      for (let i = Math.min(left, checkoutsPerTurn); i > 0; i -= 1) {
        const handle = tryAcquire();
        if (handle === undefined) throw new Error('The pool had nothing although nobody else takes from it.');
        pool.release(/** @type {never} */ (handle));
      }
      await nextTurn();
    }
  },

  /** Looks for what has expired, again and again. */
  async looks(pool, operations) {
    const look = /** @type {() => number} */ (pool.look);
    for (let left = operations; left > 0; left -= checkoutsPerTurn) {
      let expired = 0;
      for (let i = Math.min(left, checkoutsPerTurn); i > 0; i -= 1) expired += look();
      if (expired > 0) throw new Error('Something has expired although nothing should.');
      await nextTurn();
    }
  },

  /** 1,000 callers in a loop: take, hold for one turn of the microtask queue, give back. */
  async '1,000 callers'(pool, operations) {
    let left = operations;
    const caller = async () => {
      while (left > 0) {
        left -= 1;
        const handle = await pool.acquire();
        await (left % checkoutsPerTurn === 0 ? nextTurn() : undefined);
        pool.release(/** @type {never} */ (handle));
      }
    };
    await together(1_000, caller);
  },

  /** As many callers as operations, all in the queue before the first gives back; each takes once and gives back. */
  async 'all at once'(pool, operations) {
    const giveBack = (/** @type {unknown} */ handle) => pool.release(/** @type {never} */ (handle));
    const done = new Array(operations);
    for (let i = 0; i < operations; i += 1) done[i] = pool.acquire().then(giveBack);
    await Promise.all(done);
  },

  /** 1,000 users who ask, wait for the answer, and ask again. */
  async '1,000 users'(pool, operations) {
    let left = operations;
    await together(1_000, async () => {
      while (left > 0) {
        left -= 1;
        await pool.query();
      }
    });
  },

  /** 20 users who take a connection, ask, and give it back. */
  async '20 users with a checkout each'(pool, operations) {
    const checkout = /** @type {() => Promise<void>} */ (pool.checkout);
    let left = operations;
    await together(20, async () => {
      while (left > 0) {
        left -= 1;
        await checkout();
      }
    });
  },
};

/**
 * Bytes of heap that one waiter in the queue takes, measured with all connections taken and `waiters` callers waiting.
 * @param {PoolUnderTest} pool
 * @param {number} waiters
 */
export async function bytesPerWaiter(pool, waiters) {
  const collect = globalThis.gc;
  if (collect === undefined) throw new Error('Run with --expose-gc.');
  // The callers' own hold on their promises is there before the first figure is taken.
  const held = new Array(waiters).fill(undefined);
  const taken = await Promise.all(Array.from({ length: 10 }, () => pool.acquire()));
  void pool.acquire();
  await nextTurn();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < waiters; i += 1) held[i] = pool.acquire();
  await nextTurn();
  collect();
  const after = process.memoryUsage().heapUsed;
  if (taken.length + held.length !== waiters + 10) throw new Error('Somebody went missing.');
  return (after - before) / waiters;
}

/**
 * @param {number} count
 * @param {() => Promise<void>} caller
 */
async function together(count, caller) {
  await Promise.all(Array.from({ length: count }, caller));
}

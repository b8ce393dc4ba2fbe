// The load of the benchmarks: nobody may be lost, and who waited must be told from who did not.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { OpenLoop, type PoolUnderLoad } from '../../bench/burst-expiry/open-loop.mjs';

const load = { perSecond: 500, seconds: 0.1, text: 'select 1' };
const callers = 50;

interface Behaviour {
  /** Work before a caller has its connection. */
  readonly beforeServing?: () => Promise<unknown>;
  readonly query?: () => Promise<unknown>;
}

/** A pool with a connection for everyone, which counts those that are not given back. */
function endlessPool({ beforeServing, query = nextTurn }: Behaviour = {}): PoolUnderLoad & { lent: number } {
  return {
    lent: 0,
    idleCount: 7,
    totalCount: 9,
    async connect() {
      await beforeServing?.();
      this.lent += 1;
      return {
        query,
        release: () => {
          this.lent -= 1;
        },
      };
    },
  };
}

test('every caller asks once, and releases its connection', async () => {
  const pool = endlessPool();
  const outcome = await new OpenLoop(pool, load).run();
  expect(outcome.tookMs).toHaveLength(callers);
  expect(outcome.lateMs.every((ms) => ms >= 0)).toBe(true);
  expect(outcome.longestHoldMs).toBeGreaterThan(0);
  expect(outcome).toMatchObject({ refusedMs: [], unserved: 0, failedQueries: 0, failures: {} });
  expect(pool.lent).toBe(0);
});

test('a caller that is served in the same turn has not waited, whatever ticks and microtasks that took', async () => {
  const steps = async (): Promise<void> => {
    await new Promise<void>((resolve) => process.nextTick(resolve));
    for (let i = 0; i < 10; i++) await undefined;
  };
  const outcome = await new OpenLoop(endlessPool({ beforeServing: steps }), load).run();
  expect(outcome.waited).toEqual(Array(callers).fill(false));
});

test('a caller that is served in a later turn has waited', async () => {
  const outcome = await new OpenLoop(endlessPool({ beforeServing: () => nextTurn() }), load).run();
  expect(outcome.waited).toEqual(Array(callers).fill(true));
});

test('a refusal and a failed query are counted by their code, and the load goes on', async () => {
  let asked = 0;
  const refuseEveryTenth = async (): Promise<void> => {
    asked += 1;
    if (asked % 10 === 0) throw Object.assign(new Error('none left'), { code: 'EMPTY' });
  };
  let ran = 0;
  const failEveryFifth = async (): Promise<void> => {
    ran += 1;
    if (ran % 5 === 0) throw Object.assign(new Error('cut off'), { code: 'LOST' });
  };
  const pool = endlessPool({ beforeServing: refuseEveryTenth, query: failEveryFifth });
  const outcome = await new OpenLoop(pool, load).run();
  expect(outcome.refusedMs).toHaveLength(5);
  expect(outcome.failedQueries).toBe(9);
  expect(outcome.failures).toEqual({
    EMPTY: { times: 5, first: 'none left' },
    LOST: { times: 9, first: 'cut off' },
  });
  expect(pool.lent).toBe(0);
});

test('the connections of the pool are sampled while the load runs', async () => {
  const { samples } = await new OpenLoop(endlessPool(), load).run();
  expect(samples.atMs.length).toBeGreaterThan(0);
  expect(new Set(samples.ready)).toEqual(new Set([7]));
  expect(new Set(samples.total)).toEqual(new Set([9]));
});

// Everything at once, in an order drawn anew for each run: shared queries, transactions, intruders, lost connections, callers
// without patience, pauses and new limits. At the end the server says what was kept, and it had never more sessions than allowed.
//
// HEADGATE_SEED=<seed> plays one order of draws again; HEADGATE_SEQUENCES plays as many as it says.
import { describe, expect, it } from 'vitest';
import { type LoadPlan, MixedLoad } from '../support/mixed-load.js';
import { usePipelinedPools } from '../support/pipelined-pools.js';
import { seededRandom } from '../support/seeded-random.js';

const { newPool, ask, sessionsOf } = usePipelinedPools(MixedLoad.schema);

const plans: Record<string, LoadPlan> = {
  'in peace': { losesConnections: false, isSteered: false },
  'while it is paused and resized': { losesConnections: false, isSteered: true },
  'while connections are lost': { losesConnections: true, isSteered: false },
  'while all of it happens': { losesConnections: true, isSteered: true },
};

const runs = Number(process.env['HEADGATE_SEQUENCES'] ?? 1);

describe('a mixed load', () => {
  it.each(Object.entries(plans))(
    'keeps exactly what was committed and acknowledged, %s',
    async (_how, plan) => {
      for (let run = 0; run < runs; run++) {
        const random = seededRandom();
        await ask('truncate entry');
        const max = 2 + random.below(4);
        const pool = newPool({ max, pipeline: { depth: 1 + random.below(8) } });
        pool.on('error', () => {});
        const load = new MixedLoad(pool, random, plan, { ask, sessionsOf });
        await load.run(30, 10);
        const hint = `replay with HEADGATE_SEED=${random.seed}`;
        expect(load.wrong, hint).toEqual([]);
        expect(await load.differences(), hint).toEqual({ lost: [], tooMany: [] });
        expect(load.mostSessions, hint).toBeLessThanOrEqual(load.highestLimit);
        expect(pool.stats(), hint).toMatchObject({ lent: 0, waiting: 0 });
        expect(pool.stats().peak, hint).toBeLessThanOrEqual(load.highestLimit);
        await pool.end();
        expect(await sessionsOf(pool), hint).toBe(0);
      }
    },
    30_000 + runs * 10_000,
  );
});

// Everything at once, in an order drawn anew for each run: shared queries, transactions, intruders, lost connections, callers
// without patience, pauses and new limits. At the end the server says what was kept. That there are never more sessions than
// allowed is the server's own doing: it would refuse them to the role that the pool connects as.
//
// HEADGATE_SEED=<seed> makes the same draws again; HEADGATE_SEQUENCES says how many loads to run.
import { afterAll, beforeAll, expect, test } from 'vitest';
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
const role = `limited_${process.pid}`;

beforeAll(async () => {
  await ask(`create role ${role} login password 'limited'`);
  await ask(`grant all on entry to ${role}`);
});

afterAll(async () => {
  await ask(`drop owned by ${role}`);
  await ask(`drop role ${role}`);
});

test.each(Object.entries(plans))(
  'a mixed load keeps exactly what was committed and acknowledged, %s',
  async (_how, plan) => {
    for (let run = 0; run < runs; run++) {
      const random = seededRandom();
      const hint = `replay with HEADGATE_SEED=${random.seed}`;
      const max = 2 + random.below(4);
      const limit = plan.isSteered ? MixedLoad.highestLimit : max;
      await ask(`alter role ${role} connection limit ${limit}`);
      await ask('truncate entry');
      const depth = 1 + random.below(8);
      const pool = newPool({ max, pipeline: { depth }, user: role, password: 'limited' });
      pool.on('error', () => {});
      const load = new MixedLoad(pool, random, plan, { ask, sessionsOf });
      await load.run(30, 10);
      expect(load.wrong, hint).toEqual([]);
      expect(await load.differences(), hint).toEqual({ lost: [], tooMany: [] });
      expect(load.mostSessions, hint).toBeLessThanOrEqual(limit);
      expect(pool.stats().peak, hint).toBeLessThanOrEqual(limit);
      expect(pool.stats(), hint).toMatchObject({ inUse: 0, waiting: 0 });
      await pool.end();
      // A dial that nobody needed any more was cut short; its session is about to notice.
      while ((await sessionsOf(pool)) > 0);
    }
  },
  30_000 + runs * 10_000,
);

// Bad clients at a real pooler in front of a real server: whatever they send, in whatever order and at whatever moment, others
// are served as before. HEADGATE_SEED=<seed> sends the same again, HEADGATE_CASES=<number> more of it.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { material } from '../../net/certificates.js';
import { SessionCounter } from '../../support/counting.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { seededRandom } from '../../support/seeded-random.js';
import { goodbyes, lives } from './bad-lives.js';
import { GoodClient } from './good-client.js';

const cases = Number(process.env['HEADGATE_CASES'] ?? 400);
const casesAtOnce = 40;
const poolSize = 4;
/** More than connections, so that their statements share these. */
const goodClients = 8;
const stuckAfterMs = 20_000;
const largestGrowth = 48 * 1_024 * 1_024;
const { seed } = seededRandom();

/** A server of its own: PostgreSQL itself can be made to crash by what is sent here. */
let server: Awaited<ReturnType<typeof startPostgres>>;
let db: TestDatabase;
let counter: SessionCounter;
beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
  const admin = new pg.Client({ connectionString: db.url });
  await admin.connect();
  await admin.query('create table fuzzed (n int); create schema other');
  await admin.end();
  counter = await SessionCounter.open(db.url);
});
afterAll(async () => {
  await counter.close();
  await server.stop();
});

/** Everybody is asked in another way who they are, and none of the passwords below is right. */
function start(): Promise<TestPooler> {
  const { host, port, user, password, database } = db;
  const rules = ['scram-sha-256', 'md5'].map(
    (method) => `host all ${method.slice(0, 5)} 127.0.0.0/8 ${method}`,
  );
  return startTestPooler(
    db,
    {
      auth: { type: 'hba', hbaFile: 'hba.conf', file: 'users.txt', failedLoginDelay: 0 },
      admin: { statsUsers: ['watcher'] },
      clientTls: { mode: 'allow', keyFile: 'server.key', certFile: 'server.pem' },
      databases: { [database]: { host, port, user, password } },
      pooling: { poolSize, multiplexDepth: 4, multiplexLongest: '10s' },
    },
    {
      files: {
        'hba.conf': [...rules, 'host all clear 127.0.0.0/8 password', 'host all all 127.0.0.0/8 trust'].join(
          '\n',
        ),
        'users.txt': ['scram', 'md5', 'clear', 'nobody', 'watcher']
          .map((name) => `"${name}" "a secret of 20 letters"`)
          .join('\n'),
        'server.pem': material('server').cert,
        'server.key': material('server').key,
      },
    },
  );
}

/** Nobody is there any more, and nothing is held for anybody. */
async function untilAllIsQuiet({ pooler }: TestPooler): Promise<void> {
  const isQuiet = (): boolean => {
    const { clients, waiting, pinned, pools } = pooler.stats();
    const inUse = pools.reduce((sum, pool) => sum + pool.inUse, 0);
    return clients + waiting + pinned + inUse === 0;
  };
  while (!isQuiet()) await new Promise((resolve) => setImmediate(resolve));
  // Not even on the server.
  await counter.until({ database: db.database }, (sessions) => sessions <= poolSize);
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function memory(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The one with this number, as it is each time. Nobody may hang, so that after a very long time it counts as stuck. */
async function playOne(pooler: TestPooler, number: number): Promise<void> {
  const random = seededRandom(seed + number);
  const life = random.pick(lives);
  let timer: NodeJS.Timeout | undefined;
  const stuck = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('it is stuck')), stuckAfterMs);
  });
  try {
    await Promise.race([life(pooler, random, `bad ${number}`), stuck]);
  } catch (error) {
    throw new Error(`bad client ${number} with HEADGATE_SEED=${seed}: ${String(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

test(`${cases} bad clients do no harm (HEADGATE_SEED=${seed})`, async () => {
  const pooler = await start();
  let before: number | undefined;
  let played = 0;
  while (played < cases) {
    const good = await Promise.all(
      Array.from({ length: goodClients }, (_, number) => GoodClient.enter(pooler, `good ${number}`)),
    );
    const size = Math.min(casesAtOnce, cases - played);
    const ends = await Promise.allSettled(
      Array.from({ length: size }, (_, index) => playOne(pooler, played + index)),
    );
    played += size;
    expect(ends.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []))).toEqual([]);
    for (const client of good) expect(await client.leave()).toBeGreaterThan(0);
    await untilAllIsQuiet(pooler);
    before ??= memory();
  }
  expect(memory() - (before as number)).toBeLessThan(largestGrowth);
  expect(played).toBe(cases);
  const shared = pooler.pooler.stats().pools.reduce((sum, { tally }) => sum + tally.multiplexed, 0);
  expect(shared).toBeGreaterThan(0);
  // They were as bad as they were meant to be.
  expect(goodbyes.get('08P01')).toBeGreaterThan(cases / 20);
  expect(goodbyes.get('28P01')).toBeGreaterThan(0);
}, 600_000);

// Bad clients at a real pooler in front of a real server: whatever they send, in any order and at any moment, others
// are served as before, and the memory of the pooler's process returns to what it was. HEADGATE_SEED=<seed> sends the same again, HEADGATE_CASES=<number> more of it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { frontendRules, type ScanRules } from '../../../src/wire/scan-rules.js';
import { material } from '../../net/certificates.js';
import { SessionCounter } from '../../support/counting.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { seededRandom } from '../../support/seeded-random.js';
import type { Served } from '../workers/served.js';
import { goodbyes, lives, type Place } from './bad-lives.js';
import { GoodClient } from './good-client.js';
import { expectMemory, leastMemory, serveMeasured } from './resident-memory.js';

const cases = Number(process.env['HEADGATE_CASES'] ?? 240);
const casesAtOnce = 40;
const poolSize = 4;
/** More than connections, so that their statements share these. */
const goodClients = 8;
const stuckAfterMs = 20_000;
/** Of resident memory. */
const largestGrowth = 50 * 1_024 * 1_024;
const { seed } = seededRandom();

type Section = Readonly<Record<string, unknown>>;

interface Mode {
  readonly admin?: Section;
  readonly pooling?: Section;
  readonly rules?: ScanRules;
}

const modes: readonly (readonly [name: string, mode: Mode])[] = [
  ['as it comes', {}],
  [
    'compatible with PgBouncer, and with statements that it prepares',
    {
      admin: { compatibility: 'pgbouncer' },
      pooling: { prepareUnnamed: true },
      // PgBouncer accepts longer names than PostgreSQL.
      rules: frontendRules({ close: { longest: 65_536 }, describe: { longest: 65_536 } }),
    },
  ],
];

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
function start({ admin = {}, pooling = {} }: Mode): Promise<Served> {
  const { host, port, user, password, database } = db;
  const folder = mkdtempSync(join(tmpdir(), 'headgate-fuzz-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const rules = ['scram-sha-256', 'md5'].map(
    (method) => `host all ${method.slice(0, 5)} 127.0.0.0/8 ${method}`,
  );
  const users = ['scram', 'md5', 'clear', 'nobody', 'watcher', user];
  return serveMeasured(db, {
    auth: {
      type: 'hba',
      hbaFile: file(
        'hba.conf',
        [...rules, 'host all clear 127.0.0.0/8 password', 'host all all 127.0.0.0/8 trust'].join('\n'),
      ),
      file: file('users.txt', users.map((name) => `"${name}" "a secret of 20 letters"`).join('\n')),
      failedLoginDelay: 0,
    },
    admin: { statsUsers: ['watcher'], ...admin },
    clientTls: {
      mode: 'allow',
      keyFile: file('server.key', material('server').key),
      certFile: file('server.pem', material('server').cert),
    },
    databases: { [database]: { host, port, user, password } },
    pooling: { poolSize, multiplexDepth: 4, multiplexLongest: '10s', ...pooling },
  });
}

/** Nobody is there any more, and nothing is held for anybody. */
async function untilAllIsQuiet(admin: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await admin.query('SHOW POOLS');
    const ofDatabase = rows.filter(({ database }) => database === db.database);
    const busy = ['cl_active', 'cl_waiting', 'sv_active'].flatMap((state) =>
      ofDatabase.map((row) => Number(row[state])),
    );
    if (busy.every((count) => count === 0)) break;
  }
  // Not even on the server.
  await counter.until({ database: db.database }, (sessions) => sessions <= poolSize);
}

/** The one with this number, as it is each time. Nobody may hang, so that after a very long time it counts as stuck. */
async function playOne(pooler: Place, number: number): Promise<void> {
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

test.each(modes)(
  `${cases} bad clients do no harm to a pooler %s (HEADGATE_SEED=${seed})`,
  async (_name, mode) => {
    const { rules } = mode;
    goodbyes.clear();
    const served = await start(mode);
    const pooler = { port: served.port, database: db.database, rules };
    const admin = await served.console();
    const look = (): Promise<unknown> => admin.query('SHOW VERSION');
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
      await untilAllIsQuiet(admin);
      before ??= await leastMemory(served, look);
    }
    await expectMemory(served, look, { before: before as number, most: largestGrowth });
    expect(played).toBe(cases);
    const { rows } = await admin.query('SHOW STATS');
    expect(rows.reduce((sum, row) => sum + Number(row['total_multiplexed_count']), 0)).toBeGreaterThan(0);
    // The clients did break the protocol. PgBouncer has one code for all its errors.
    expect(goodbyes.get('08P01')).toBeGreaterThan(cases / 20);
    if (mode.admin === undefined) expect(goodbyes.get('28P01')).toBeGreaterThan(0);
  },
  600_000,
);

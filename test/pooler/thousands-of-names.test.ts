// Thousands of names of databases and users that somebody has made up, at a pooler in a process of its own: its memory and its metrics
// stay as they were, and others log in meanwhile. As many names as fit into a time, so that a busy machine tries fewer.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { parseMetrics } from './metrics/scrape.js';
import { greet, startupPacket } from './raw/greeting.js';
import { ScriptedServer } from './session/scripted-server.js';
import { Served } from './workers/served.js';

const most = 8_000;
const fewest = 300;
/** Milliseconds. After that, no further names are tried, if there were the fewest. */
const longest = 4_000;
const atOnce = 64;
const long = 'x'.repeat(40);
/** Bytes. 8,000 names that stayed would take more than a gigabyte; some of the rest is garbage that Node has not collected. */
const mostGrowth = 150_000_000;

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

interface Names {
  readonly user: string;
  readonly database: string;
}

/** Connects, asks for this database as this user, answers a question for a password wrongly, and waits for the end. */
function knock(port: number, { user, database }: Names): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('data', (bytes) => {
      // A refusal ends by itself; whoever is asked for SCRAM sends something else.
      if (bytes[0] === 'R'.charCodeAt(0)) socket.end(Buffer.from('p\0\0\0\x08abc\0'));
    });
    socket.write(startupPacket(0x3_0000, { user, database }));
  });
}

/** How many were tried. */
async function knockOften(port: number, namesOf: (n: number) => Names): Promise<number> {
  const until = performance.now() + longest;
  let n = 0;
  const worker = async (): Promise<void> => {
    while (n < most && (n < fewest || performance.now() < until)) await knock(port, namesOf(n++));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return n;
}

/** Of this process, on Linux. */
function residentBytes({ child }: Served): number {
  const [, pages] = readFileSync(`/proc/${child.pid}/statm`, 'utf8').split(' ');
  return Number(pages) * 4_096;
}

const invented = (n: number): string => `invented_${n}_${long}`;

interface Attack {
  readonly what: string;
  readonly auth: Record<string, unknown>;
  readonly refusal: string;
  readonly namesOf: (n: number) => Names;
}

const asks = {
  type: 'scram-sha-256',
  user: 'asker',
  query: 'select rolname, rolpassword from pg_authid where rolname = $1',
};
const attacks: readonly Attack[] = [
  {
    what: 'databases, by clients that are trusted',
    auth: { type: 'trust' },
    refusal: '3D000',
    namesOf: (n) => ({ user: 'someone', database: invented(n) }),
  },
  {
    what: 'users, by clients that are trusted',
    auth: { type: 'trust' },
    refusal: '28000',
    namesOf: (n) => ({ user: invented(n), database: 'elsewhere' }),
  },
  {
    what: 'databases and users, with a list of users',
    auth: { type: 'scram-sha-256' },
    refusal: '3D000',
    namesOf: (n) => ({ user: invented(n), database: invented(n) }),
  },
  {
    what: 'databases and users, with auth_query in the database of the client',
    auth: asks,
    refusal: '3D000',
    namesOf: (n) => ({ user: invented(n), database: invented(n) }),
  },
  {
    what: 'users, with auth_query in a database that is there',
    auth: { ...asks, dbname: 'known' },
    refusal: '3D000',
    namesOf: (n) => ({ user: invented(n), database: 'elsewhere' }),
  },
];

test.skipIf(process.platform !== 'linux').each(attacks.map((attack) => [attack.what, attack] as const))(
  'invented names of %s leave no memory and no metrics behind, and others log in meanwhile',
  async (_what, { auth, refusal, namesOf }) => {
    const server = await ScriptedServer.start({
      refusal: { severity: 'FATAL', code: refusal, message: 'there is no such thing' },
    });
    const { host, port, user, password, database } = db;
    const known = { host, port, user, password, dbname: database };
    const served = new Served(db, {
      listen: { workers: 1 },
      auth,
      users: { [user]: { password }, asker: { password: 'secret' } },
      databases: {
        [database]: known,
        known: { ...known, authUser: user },
        '*': { host: '127.0.0.1', port: server.db.port, password: 'x' },
      },
      observability: { metricsListen: '127.0.0.1:0' },
      logging: { poolerErrors: false, connections: false, disconnections: false, level: 'error' },
    });
    await served.says('metrics at');
    const metricsPort = Number(/metrics at http:\/\/127\.0\.0\.1:(\d+)/.exec(served.out)?.[1]);
    const metrics = async (): Promise<string> =>
      (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const logIn = async (): Promise<void> => {
      const client = await served.connect({ user, password });
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      await client.end();
    };

    // Memory that the first use takes is taken before the measurement.
    await logIn();
    await Promise.all(Array.from({ length: 100 }, (_, n) => knock(served.port, namesOf(-1 - n))));
    const [bytesBefore, residentBefore] = [(await metrics()).length, residentBytes(served)];
    let isOver = false;
    const flood = knockOften(served.port, namesOf).finally(() => {
      isOver = true;
    });
    let logins = 0;
    for (; !isOver; logins++) {
      await logIn();
      expect((await metrics()).length).toBeLessThan(bytesBefore + 40 * 30_000);
    }
    const tried = await flood;
    expect(tried).toBeGreaterThanOrEqual(fewest);
    expect(logins).toBeGreaterThan(1);
    await expect
      .poll(async () => (await metrics()).length, { timeout: 20_000 })
      .toBeLessThan(bytesBefore + 60_000);
    const { lines } = parseMetrics(await metrics());
    const refused = lines.filter(({ name }) => name === 'headgate_pooler_login_failures_total');
    expect(refused.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThanOrEqual(tried);
    expect(residentBytes(served) - residentBefore, `after ${tried} names`).toBeLessThan(mostGrowth);
  },
  120_000,
);

test('a scrape of more than 200 pools is bounded in bytes, and a login that comes after it is answered before it', async () => {
  const server = await ScriptedServer.start();
  const { host, port, user, password, database } = db;
  const pooler = await startTestPooler(db, {
    databases: {
      [database]: { host, port, user, password },
      '*': { host: '127.0.0.1', port: server.db.port, password: 'x' },
    },
    observability: { metricsListen: '127.0.0.1:0', metricsMaxPools: 200 },
    logging: { connections: false, disconnections: false },
  });
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${pooler.pooler.metricsPort}/metrics`)).text();
  const enter = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n++)
      await greet(pooler, startupPacket(0x3_0000, { user: 'someone', database: `app_${n}` }));
  };
  await (await pooler.connect()).query('select 1');
  await enter(0, 205);
  const few = (await metrics()).length;
  await enter(205, 500);
  expect(pooler.pooler.stats().pools.length).toBeGreaterThan(500);
  expect((await metrics()).length).toBeLessThan(1.05 * few);
  // One of some tries is enough: a scrape that let nobody in before its end would never be second.
  await expect
    .poll(
      async () => {
        const order: string[] = [];
        const scraped = metrics().then(() => order.push('scrape'));
        await setImmediate();
        const entered = greet(pooler, startupPacket(0x3_0000, { user, database })).then(() =>
          order.push('login'),
        );
        await Promise.all([scraped, entered]);
        return order;
      },
      { timeout: 20_000 },
    )
    .toEqual(['login', 'scrape']);
});

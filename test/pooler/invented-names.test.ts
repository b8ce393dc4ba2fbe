// Names that somebody has made up, where `*` stands for all databases: nothing of them stays.
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { writeStartup } from '../../src/wire/startup-packet.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { scrape } from './metrics/scrape.js';
import { ScriptedServer } from './session/scripted-server.js';

/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 50 };
/** Each of them costs a connection on both sides. HEADGATE_INVENTED_NAMES=8000 tries more, as `npm run bench -- soak` does while there is time. */
const names = Number(process.env['HEADGATE_INVENTED_NAMES'] ?? 400);
const atOnce = 100;
/** As PostgreSQL says it. */
const refusal = { severity: 'FATAL', code: '3D000', message: 'database does not exist' };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** Connects, asks for this database, waits for an answer or the end, and leaves. In a hurry, it leaves without waiting. */
function knock(port: number, user: string, database: string, isInAHurry = false): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const writer = new MessageWriter();
    writeStartup(writer, { version: 196_608, parameters: new Map(Object.entries({ user, database })) });
    socket.on('error', () => {});
    socket.on('data', () => socket.destroy());
    socket.on('close', () => resolve());
    socket.write(writer.take(), () => {
      if (isInAHurry) setImmediate(() => socket.destroy());
    });
  });
}

async function knockOften(
  port: number,
  names: number,
  user: (n: number) => string,
  isInAHurry = false,
): Promise<void> {
  let n = 0;
  const worker = async (): Promise<void> => {
    while (n < names) {
      n++;
      await knock(port, user(n), `invented_${n}_${'x'.repeat(40)}`, isInAHurry);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function metricBytes({ pooler }: TestPooler): Promise<number> {
  return (await (await fetch(`http://127.0.0.1:${pooler.metricsPort}/metrics`)).text()).length;
}

function start(server: TestDatabase, tree = {}): Promise<TestPooler> {
  const { host, port, password, user } = server;
  return startTestPooler(server, {
    databases: { [server.database]: undefined, '*': { host, port, password } },
    observability: { metricsListen: '127.0.0.1:0' },
    logging: { poolerErrors: false, connections: false, disconnections: false },
    admin: { adminUsers: [user] },
    limits: { maxClientConn: 1_000 },
    ...tree,
  });
}

const tries: readonly (readonly [string, Record<string, unknown>, (n: number) => string])[] = [
  ['of clients that are trusted', {}, () => 'someone'],
  [
    'of strangers, whose secrets are looked up in that database',
    { auth: { type: 'scram-sha-256', user: 'postgres' }, users: { postgres: { password: 'postgres' } } },
    (n) => `stranger_${n}`,
  ],
];

test.each(tries)(
  'invented names of databases %s leave nothing behind, however many',
  async (_who, tree, user) => {
    const server = await ScriptedServer.start({ refusal });
    const pooler = await start(server.db, tree);
    const bytesBefore = await metricBytes(pooler);
    await knockOften(pooler.port, names, user);
    // All of them would have 9 MB. One of the last may still be on its way.
    await vi.waitFor(() => expect(pooler.pooler.stats().pools.length).toBeLessThanOrEqual(1), soon);
    expect(await metricBytes(pooler)).toBeLessThan(bytesBefore + 60_000);
    const { lines } = await scrape(pooler.pooler.metricsPort as number);
    const failures = lines.filter(({ name }) => name === 'headgate_pooler_login_failures_total');
    expect(failures.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThan(0);
  },
);

test('invented names leave nothing behind when their clients hang up before the server has answered', async () => {
  // Nothing is refused before all clients have left.
  let letGo = (): void => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const server = await ScriptedServer.start({ refusal, beforeLogin: () => held });
  const pooler = await start(server.db, { limits: { maxClientConn: 1_000, maxNewPools: 8 } });
  await knockOften(pooler.port, names, () => 'someone', true);
  letGo();
  let most = 0;
  await vi.waitFor(() => {
    const { length } = pooler.pooler.stats().pools;
    most = Math.max(most, length);
    expect([server.refused > 0, length]).toEqual([true, 0]);
  }, soon);
  expect(most).toBeLessThanOrEqual(8);
});

test('a client of a database that is known does not wait for those of invented names', async () => {
  const pooler = await start(db, { limits: { maxNewPools: 1 } });
  const honest = await pooler.connect();
  const flood = knockOften(pooler.port, 100, () => db.user);
  for (let n = 0; n < 5; n++) {
    const another = await pooler.connect();
    expect((await another.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    expect((await honest.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  }
  await flood;
});

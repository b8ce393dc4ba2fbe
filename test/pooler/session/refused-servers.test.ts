import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startFaultyServer } from '../../support/faulty-server.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';
import { type Greeting, greet, startupPacket } from '../raw/greeting.js';
import { ScriptedServer } from './scripted-server.js';

const { version30 } = StartupCode;

function refusal(code: string): { severity: string; code: string; message: string } {
  return { severity: 'FATAL', code, message: 'not you' };
}

function come(pooler: TestPooler): Promise<Greeting> {
  return greet(pooler, startupPacket(version30, { user: pooler.user, database: pooler.database }));
}

test.each(['3D000', '28000', '28P01', '42501'])(
  'a permanent refusal of a server reaches the client at once: %s',
  async (code) => {
    const server = await ScriptedServer.start({ refusal: refusal(code) });
    const pooler = await startTestPooler(server.db);
    const { error } = await come(pooler);
    expect(error).toMatchObject({ severity: 'FATAL', code });
    expect(error?.message).toContain('not you');
    expect(server.refused).toBe(1);
    // And when that has changed, it is all right.
    server.options = {};
    expect((await come(pooler)).types.endsWith('Z')).toBe(true);
  },
);

test('a permanent refusal of a server reaches all waiting clients at once', async () => {
  const server = await ScriptedServer.start({ refusal: refusal('28P01') });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 2 } });
  const codes = await Promise.all(Array.from({ length: 20 }, async () => (await come(pooler)).error?.code));
  expect(new Set(codes)).toEqual(new Set(['28P01']));
  // Each attempt was for all who waited then.
  expect(server.refused).toBeLessThan(20);
});

test('a permanent refusal of a server reaches a connected client at once as an ERROR, and the client goes on when the server accepts again', async () => {
  const server = await ScriptedServer.start();
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  server.options = { refusal: refusal('28P01') };
  server.connection.socket.destroy();
  await expect.poll(() => pooler.pooler.stats().pools[0]?.live).toBe(0);
  const refused = await session.ask((writer) => writeQuery(writer, 'select 1'));
  expect([typesOf(refused), errorOf(refused)?.severity, errorOf(refused)?.code]).toEqual([
    'EZ',
    'ERROR',
    '28P01',
  ]);
  expect(server.refused).toBe(1);
  server.options = {};
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'select 2')))).toBe('CZ');
  session.socket.destroy();
});

test('a permanent refusal of a server does not reach clients that can wait for an open connection', async () => {
  const wait = "select 'wait'";
  const server = await ScriptedServer.start({ answer: (text) => text !== wait });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 2 } });
  const holder = await RawSession.start(pooler, version30);
  const waiting = await RawSession.start(pooler, version30);
  const held = holder.ask((writer) => writeQuery(writer, wait));
  await expect.poll(() => server.connection.queries).toContain(wait);
  server.options = { ...server.options, refusal: refusal('28P01') };
  const answer = waiting.ask((writer) => writeQuery(writer, 'select 1'));
  await expect.poll(() => server.refused).toBeGreaterThan(0);
  server.connection.done('SELECT 0');
  expect([typesOf(await held), typesOf(await answer)]).toEqual(['CZ', 'CZ']);
  for (const each of [holder, waiting]) each.socket.destroy();
});

test.each(['57P03', '53300'])(
  'a server that may think better of it is tried again %s, and the client notices nothing',
  async (code) => {
    const server: ScriptedServer = await ScriptedServer.start({
      get refusal() {
        return server.refused < 2 ? refusal(code) : undefined;
      },
    });
    const pooler = await startTestPooler(server.db, { pooling: { serverLoginRetry: '10ms' } });
    expect((await come(pooler)).types.endsWith('Z')).toBe(true);
    expect(server.refused).toBe(2);
  },
);

test.each(['57P03', '53300'])(
  'a server that may think better of it is tried again %s, and the client is told if it goes on saying so',
  async (code) => {
    const server = await ScriptedServer.start({ refusal: refusal(code) });
    const pooler = await startTestPooler(server.db, { pooling: { serverLoginRetry: '10ms' } });
    expect((await come(pooler)).error).toMatchObject({ severity: 'FATAL', code });
    expect(server.refused).toBeGreaterThan(1);
  },
);

describe('PostgreSQL', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await withDatabase();
  });
  afterAll(() => db.drop());

  test('PostgreSQL is asked once for a database that it does not have', async () => {
    const front = await startFaultyServer(db);
    const { host, port } = front;
    const databases = { gone: { host, port, password: db.password } };
    const pooler = await startTestPooler(db, { databases });
    const { error } = await come({ ...pooler, database: 'gone' });
    expect(error).toMatchObject({ severity: 'FATAL', code: '3D000' });
    expect(front.accepted).toBe(1);
    await pooler.stop();
    await front.stop();
  });
});

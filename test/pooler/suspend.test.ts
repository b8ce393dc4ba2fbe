// SUSPEND: whoever comes in while it holds waits as all others do.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeQuery } from '../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../src/wire/message-types.js';
import { writeStartup } from '../../src/wire/startup-packet.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { RawSession, typesOf } from '../wire/server/raw-session.js';

const { version30 } = StartupCode;

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

async function start() {
  const pooler = await startTestPooler(db, { admin: { adminUsers: [db.user] } });
  // There is a server, and what a session begins with is known.
  await (await pooler.connect()).query('select 1');
  const admin = await pooler.connect({ database: 'headgate' });
  const queries = async (): Promise<number> =>
    Number(
      (await admin.query('SHOW STATS')).rows.find((row) => row.database === db.database)?.total_query_count,
    );
  return { pooler, admin, queries };
}

test('A client that comes while all is suspended is let in, and served after RESUME', async () => {
  const { pooler, admin, queries } = await start();
  const before = await queries();
  await admin.query('SUSPEND');
  const client = await pooler.connect();
  let isAnswered = false;
  const answer = client.query('select 1 as one').finally(() => {
    isAnswered = true;
  });
  // Another client's login and a look at the console take longer than an answer would.
  await pooler.connect();
  expect(await queries()).toBe(before);
  expect(isAnswered).toBe(false);
  await admin.query('RESUME');
  expect((await answer).rows).toEqual([{ one: 1 }]);
});

test('What it has sent along with its login is neither lost nor served before that', async () => {
  const { pooler, admin, queries } = await start();
  const before = await queries();
  await admin.query('SUSPEND');
  const session = await comeWithQuery(pooler);
  const heard = session.received.length;
  writeQuery(session.writer, 'select 2; select 3');
  session.send();
  await pooler.connect();
  expect(await queries()).toBe(before);
  expect(session.received).toHaveLength(heard);
  await admin.query('RESUME');
  await session.until(Backend.readyForQuery);
  await session.until(Backend.readyForQuery);
  expect(typesOf(session.received.slice(heard))).toBe('TDCZTDCTDCZ');
  session.socket.destroy();
});

test('One that has gone before RESUME is forgotten, with what it had sent along', async () => {
  const { pooler, admin, queries } = await start();
  await admin.query('SUSPEND');
  const before = await queries();
  const session = await comeWithQuery(pooler);
  session.socket.destroy();
  await expect.poll(() => pooler.pooler.view.clients().length).toBe(2);
  await admin.query('RESUME');
  await (await pooler.connect()).query('select 1');
  expect(await queries()).toBe(before + 1);
});

/** In, with a query that came along with the login. */
async function comeWithQuery(pooler: TestPooler): Promise<RawSession> {
  const session = await RawSession.open(pooler);
  writeStartup(session.writer, {
    version: version30,
    parameters: [
      ['user', db.user],
      ['database', db.database],
    ],
  });
  writeQuery(session.writer, 'select 1');
  session.send();
  await session.until(Backend.readyForQuery);
  return session;
}

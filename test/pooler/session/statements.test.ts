import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { playIn, step } from '../raw/trace.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** A statement with a name, as node-postgres prepares it. */
function everything(client: pg.Client, name: string): Promise<pg.QueryResult> {
  return client.query({ name, text: 'select * from changing' });
}

test('a table that is changed under a prepared statement is an error for who has prepared it, as on the server, and not for who prepares it anew', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const [first, second, changer] = await Promise.all([pooler.connect(), pooler.connect(), pooler.connect()]);
  await changer.query('create table changing (a int)');
  expect((await everything(first, 'all')).fields).toHaveLength(1);
  await changer.query('alter table changing add b int');
  await expect(everything(first, 'all')).rejects.toMatchObject({
    code: '0A000',
    message: 'cached plan must not change result type',
  });
  // Another client that prepares the same text has nothing to do with it.
  expect((await everything(second, 'all')).fields).toHaveLength(2);
  // Nor has the same one, under another name.
  expect((await everything(first, 'all again')).fields).toHaveLength(2);
  // The old one stays what it was, as on the server, until the table is what it was.
  await expect(everything(first, 'all')).rejects.toMatchObject({ code: '0A000' });
  await changer.query('alter table changing drop b');
  expect((await everything(first, 'all')).fields).toHaveLength(1);
  await changer.query('drop table changing');
});

test('a table that is changed under a prepared statement is an error on every server, also on one that prepares the statement later', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1 },
    admin: { adminUsers: ['boss'] },
  });
  const [client, boss] = [
    await pooler.connect(),
    await pooler.connect({ database: 'headgate', user: 'boss' }),
  ];
  await client.query('create table changing (a int)');
  await everything(client, 'all');
  await client.query('alter table changing add b int');
  await boss.query('reconnect');
  for (let times = 0; times < 2; times++)
    await expect(everything(client, 'all')).rejects.toMatchObject({ code: '0A000' });
  expect((await everything(client, 'again')).fields).toHaveLength(2);
  await client.query('drop table changing');
});

test('statements that no client has any more are not kept without end', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1, maxPreparedStatements: 10 } });
  const client = await pooler.connect();
  for (let n = 0; n < 60; n++) await client.query({ name: `s${n}`, text: `select ${n} as n` });
  const { rows } = await client.query('select count(*)::int as kept from pg_prepared_statements');
  expect(rows[0].kept).toBeLessThanOrEqual(10);
  // The first is long gone there, and is prepared again.
  expect((await client.query({ name: 's0', text: 'select 0 as n' })).rows).toEqual([{ n: 0 }]);
});

test('a statement of more than 1 MB is not kept under a name, and the client is told and goes on', async () => {
  const pooler = await startTestPooler(db);
  const client = await pooler.connect();
  const text = `select length('${'x'.repeat(1_100_000)}') as n`;
  await expect(client.query({ name: 'long', text })).rejects.toMatchObject({
    severity: 'ERROR',
    code: '54000',
  });
  expect((await client.query({ text, values: [] })).rows).toEqual([{ n: 1_100_000 }]);
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

describe('statements that a server has lost, because something hidden has thrown them away', () => {
  const throwAway = 'select throw_away()';
  beforeAll(async () => {
    const direct = new pg.Client(db.url);
    await direct.connect();
    await direct.query(
      "create function throw_away() returns void language plpgsql as $$ begin execute 'deallocate all'; end $$",
    );
    await direct.end();
  });

  async function lone(): Promise<[pg.Client, pg.Client, TestPooler]> {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
    return [await pooler.connect(), await pooler.connect(), pooler];
  }

  function answer(client: pg.Client, name: string, text = 'select 42 as answer'): Promise<pg.QueryResult> {
    return client.query({ name, text });
  }

  test('statements that a server has lost, because something hidden has thrown them away are an error once, under the name that the client knows, and then they are prepared again', async () => {
    const [client, other] = await lone();
    await answer(client, 'mine');
    await answer(client, 'my other', 'select 43 as answer');
    await other.query(throwAway);
    await expect(answer(client, 'mine')).rejects.toMatchObject({
      severity: 'ERROR',
      code: '26000',
      message: 'prepared statement "mine" does not exist',
    });
    for (let time = 0; time < 2; time++) {
      expect((await answer(client, 'mine')).rows).toEqual([{ answer: 42 }]);
      expect((await answer(client, 'my other', 'select 43 as answer')).rows).toEqual([{ answer: 43 }]);
      expect((await answer(other, 'theirs')).rows).toEqual([{ answer: 42 }]);
    }
  });

  test('statements that a server has lost, because something hidden has thrown them away are prepared again when they are described', async () => {
    const [client, other, pooler] = await lone();
    const session = await RawSession.start(pooler, StartupCode.version30);
    const describe = step((script) => script.describeStatement('mine').sync());
    await playIn(session, [step((script) => script.parse('select 42 as answer', 'mine').sync())]);
    const described = await playIn(session, [describe]);
    await answer(client, 'the same');
    await other.query(throwAway);
    expect(await playIn(session, [describe])).toEqual([
      'E ERROR 26000 prepared statement "mine" does not exist',
      'Z I',
      '--',
    ]);
    expect(await playIn(session, [describe])).toEqual(described);
    expect((await answer(client, 'the same')).rows).toEqual([{ answer: 42 }]);
    session.socket.destroy();
  });

  test('statements that a server has lost, because something hidden has thrown them away are no error after a DO of another client', async () => {
    const [client, other] = await lone();
    await answer(client, 'mine');
    for (const text of ['null', "execute 'deallocate all'"]) {
      await other.query(`do $$ begin ${text}; end $$`);
      expect((await answer(client, 'mine')).rows).toEqual([{ answer: 42 }]);
    }
  });

  test('statements that a server has lost, because something hidden has thrown them away are gone in the transaction whose DO has thrown them away, as on the server', async () => {
    const [client] = await lone();
    await answer(client, 'mine');
    await client.query('begin');
    await client.query("do $$ begin execute 'deallocate all'; end $$");
    await expect(answer(client, 'mine')).rejects.toMatchObject({
      code: '26000',
      message: 'prepared statement "mine" does not exist',
    });
    await client.query('rollback');
  });

  test('statements that a server has lost, because something hidden has thrown them away are not kept without end on the server where they were not lost', async () => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 1, maxPreparedStatements: 10 } });
    const client = await pooler.connect();
    for (let n = 0; n < 40; n++) {
      await answer(client, `s${n}`, `select ${n} as answer`);
      if (n % 3 === 0) await client.query('do $$ begin null; end $$');
    }
    const { rows } = await client.query('select count(*)::int as kept from pg_prepared_statements');
    expect(rows[0].kept).toBeLessThanOrEqual(10);
  });

  test('statements that a server has lost, because something hidden has thrown them away are prepared again although the server has lost some of them only', async () => {
    const [client, other] = await lone();
    for (let n = 0; n < 3; n++) await answer(client, `s${n}`, `select ${n} as answer`);
    await other.query(
      `create function throw_one_away() returns void language plpgsql as $$ begin
        execute (select 'deallocate ' || name from pg_prepared_statements where statement = 'select 1 as answer');
      end $$`,
    );
    await other.query('select throw_one_away()');
    await expect(answer(client, 's1', 'select 1 as answer')).rejects.toMatchObject({ code: '26000' });
    for (let n = 0; n < 3; n++)
      expect((await answer(client, `s${n}`, `select ${n} as answer`)).rows).toEqual([{ answer: n }]);
  });

  test('statements that a server has lost, because something hidden has thrown them away fail a transaction, and are there in the next', async () => {
    const [client] = await lone();
    await answer(client, 'mine');
    await client.query('begin');
    await client.query(throwAway);
    await expect(answer(client, 'mine')).rejects.toMatchObject({ code: '26000' });
    await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' });
    await client.query('rollback');
    expect((await answer(client, 'mine')).rows).toEqual([{ answer: 42 }]);
  });

  test('statements that a server has lost, because something hidden has thrown them away can be given up', async () => {
    const [, other, pooler] = await lone();
    const session = await RawSession.start(pooler, StartupCode.version30);
    const giveUp = step((script) => script.parse('deallocate mine').bind().execute().sync());
    await playIn(session, [step((script) => script.parse('select 42', 'mine').sync())]);
    await other.query(throwAway);
    expect(await playIn(session, [giveUp])).toContain('C DEALLOCATE');
    expect(await playIn(session, [giveUp])).toContain(
      'E ERROR 26000 prepared statement "mine" does not exist',
    );
    session.socket.destroy();
  });
});

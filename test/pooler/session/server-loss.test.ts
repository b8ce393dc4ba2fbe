import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { flush } from '../../../src/wire/fixed-messages.js';
import { writeBind, writeExecute, writeParse, writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import type { MessageWriter } from '../../../src/wire/message-writer.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, type Received } from '../../wire/server/raw-session.js';

let db: TestDatabase;
let watcher: pg.Client;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  watcher = new pg.Client({ connectionString: db.url });
  await watcher.connect();
  await watcher.query('create table kept (n int)');
});
afterAll(async () => {
  await watcher.end();
  await db.drop();
});
beforeEach(async () => {
  await watcher.query('truncate kept');
  pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
});

/** Ends the pooler's sessions on the server, and waits until they are gone. */
async function killServers(): Promise<void> {
  const { rows } = await watcher.query(
    `select pid, pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and datname = current_database() and pid <> pg_backend_pid()`,
  );
  const pids = rows.map(({ pid }) => pid);
  for (;;) {
    const left = await watcher.query('select 1 from pg_stat_activity where pid = any ($1)', [pids]);
    if (left.rows.length === 0) return;
  }
}

/** All that is said until the connection is closed. */
async function lastWords(session: RawSession): Promise<Received[]> {
  const words: Received[] = [];
  try {
    for (;;) words.push(await session.next());
  } catch {
    return words;
  }
}

interface Moment {
  readonly name: string;
  readonly write: (writer: MessageWriter) => void;
  readonly heard?: number;
  readonly runs?: string;
}

const moments: readonly Moment[] = [
  {
    name: 'in a transaction',
    write: (writer) => writeQuery(writer, 'begin; insert into kept values (1)'),
    heard: Backend.readyForQuery,
  },
  {
    name: 'in a query',
    write: (writer) => writeQuery(writer, 'select pg_sleep(30), 11'),
    runs: 'pg_sleep(30), 11',
  },
  {
    name: 'in a pipeline',
    write: (writer) => {
      writeParse(writer, { text: 'insert into kept values (1)' });
      writeBind(writer, {});
      writeExecute(writer);
      writer.append(flush);
    },
    heard: Backend.commandComplete,
  },
  {
    name: 'in a COPY',
    write: (writer) => writeQuery(writer, 'copy kept from stdin'),
    heard: Backend.copyInResponse,
  },
];

describe.each(moments)('when the server ends a connection $name', ({ write, heard, runs }) => {
  test('the client is told what the server said, and disconnected', async () => {
    const session = await RawSession.start(pooler, StartupCode.version30);
    write(session.writer);
    session.send();
    if (heard !== undefined) await session.until(heard);
    while (runs !== undefined) {
      const { rows } = await watcher.query(
        'select 1 from pg_stat_activity where state = $1 and query like $2',
        ['active', `%${runs}%`],
      );
      if (rows.length > 1 || (rows.length === 1 && heard === undefined)) break;
    }
    await killServers();
    const words = await lastWords(session);
    expect(errorOf(words)).toMatchObject({ severity: 'FATAL', code: '57P01' });
    expect(words.filter(({ type }) => type === Backend.error)).toHaveLength(1);
    expect((await watcher.query('select count(*)::int as n from kept')).rows).toEqual([{ n: 0 }]);
    // The next client is served by another connection.
    expect((await (await pooler.connect()).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });
});

test('a client that has no server at that moment does not notice', async () => {
  const client = await pooler.connect();
  await client.query('select 1');
  await killServers();
  await expect.poll(() => pooler.pooler.stats().pools[0]?.live).toBe(0);
  expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }]);
});

test('a client that only said BEGIN does not notice either', async () => {
  const client = await pooler.connect();
  await client.query('begin');
  await killServers();
  await expect.poll(() => pooler.pooler.stats().pools[0]?.live).toBe(0);
  await client.query('insert into kept values (5)');
  await client.query('commit');
  expect((await watcher.query('select n from kept')).rows).toEqual([{ n: 5 }]);
});

test('clients that wait are served by the next connection', async () => {
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const waiting = await Promise.all([pooler.connect(), pooler.connect()]);
  const answers = waiting.map((client, n) => client.query('select $1::int as n', [n]));
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(2);
  await killServers();
  expect((await Promise.all(answers)).map(({ rows }) => rows[0].n)).toEqual([0, 1]);
});

test('a client pinned to a server hears of its end', async () => {
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'listen news'));
  await killServers();
  expect(errorOf(await lastWords(session))).toMatchObject({ severity: 'FATAL', code: '57P01' });
});

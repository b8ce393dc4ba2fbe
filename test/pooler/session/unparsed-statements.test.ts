// Compatibility mode: a Parse that failed, or was ignored after an error in its batch, has given its name to the client nevertheless.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { flush, sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode, Target } from '../../../src/wire/message-types.js';
import type { MessageWriter } from '../../../src/wire/message-writer.js';
import { type ConfigTree, startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** A client that has sent a batch with two Parses, the first of which has failed. */
async function afterTheError(compatibility = 'pgbouncer', tree: ConfigTree = {}): Promise<RawSession> {
  const pooling = { poolMode: 'transaction', poolSize: 1 };
  const pooler = await startTestPooler(db, { ...tree, pooling, admin: { compatibility } });
  const client = await RawSession.start(pooler, StartupCode.version30);
  const answers = await client.ask((w) => {
    writeParse(w, { name: 'bad', text: 'select * from nowhere' });
    writeParse(w, { name: 'ignored', text: 'select 7::int' });
    w.append(sync);
  });
  expect(typesOf(answers)).toBe('EZ');
  return client;
}

function use(w: MessageWriter, name: string): void {
  writeBind(w, { statement: name });
  writeExecute(w);
  w.append(sync);
}

async function refusalOf(client: RawSession, name: string): Promise<string | undefined> {
  use(client.writer, name);
  client.send();
  return errorOf(await client.lastWords())?.message;
}

test('an ignored statement is prepared when it is used', async () => {
  const client = await afterTheError();
  for (let i = 0; i < 3; i++) expect(typesOf(await client.ask((w) => use(w, 'ignored')))).toBe('2DCZ');
});

test('a statement that is ignored because its Parse comes behind the error is prepared when it is used', async () => {
  const client = await afterTheError();
  writeParse(client.writer, { name: 'worse', text: 'select 1 from nowhere' });
  client.writer.append(flush);
  client.send();
  await client.until(Backend.error);
  const answers = await client.ask((w) => {
    writeParse(w, { name: 'late', text: 'select 9::int' });
    w.append(sync);
  });
  expect(typesOf(answers)).toBe('Z');
  for (let i = 0; i < 3; i++) expect(typesOf(await client.ask((w) => use(w, 'late')))).toBe('2DCZ');
});

test('an ignored statement can be prepared anew under its name', async () => {
  const client = await afterTheError();
  const answers = await client.ask((w) => {
    writeParse(w, { name: 'ignored', text: 'select 8::int' });
    use(w, 'ignored');
  });
  expect(typesOf(answers)).toBe('12DCZ');
  expect(answers[2]?.bytes.toString('latin1')).toMatch(/8$/);
});

test('an ignored statement can be closed, and then has no name', async () => {
  const client = await afterTheError();
  const answers = await client.ask((w) => {
    writeClose(w, Target.statement, 'ignored');
    w.append(sync);
  });
  expect(typesOf(answers)).toBe('3Z');
  expect(await refusalOf(client, 'ignored')).toBe('prepared statement did not exist');
});

test('an ignored statement whose text is wrong fails when it is used, each time', async () => {
  const client = await afterTheError();
  const again = await client.ask((w) => {
    writeParse(w, { name: 'worse', text: 'select 1 from nowhere' });
    writeParse(w, { name: 'wrong', text: 'select * from nowhere_else' });
    w.append(sync);
  });
  expect(typesOf(again)).toBe('EZ');
  for (let i = 0; i < 2; i++) {
    const answers = await client.ask((w) => use(w, 'wrong'));
    expect(errorOf(answers)).toMatchObject({
      code: '42P01',
      message: 'relation "nowhere_else" does not exist',
    });
  }
});

test('a statement whose own Parse failed has its name, and works once its table is there', async () => {
  const client = await afterTheError();
  expect(errorOf(await client.ask((w) => use(w, 'bad')))).toMatchObject({ code: '42P01' });
  await client.ask((w) => writeQuery(w, 'create temporary table nowhere as select 5 as n'));
  expect(typesOf(await client.ask((w) => use(w, 'bad')))).toBe('2DCZ');
});

test('names of statements that were never parsed are forgotten when they take too much room', async () => {
  const client = await afterTheError('pgbouncer', { limits: { maxClientStatementsSize: '64kB' } });
  for (let i = 0; i < 200; i++) {
    const answers = await client.ask((w) => {
      writeParse(w, { name: `bad ${i}`, text: 'select * from nowhere' });
      w.append(sync);
    });
    expect(errorOf(answers)).toMatchObject({ code: '42P01' });
  }
});

test('without compatibility an ignored statement does not exist, as in PostgreSQL', async () => {
  const client = await afterTheError('headgate');
  const answers = await client.ask((w) => use(w, 'ignored'));
  expect(errorOf(answers)).toMatchObject({ code: '26000' });
});

import { expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler } from '../../support/pooler.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';
import { ScriptedServer, type ServerConnection } from './scripted-server.js';

const { version30 } = StartupCode;

/** The client's error when its server does this in the middle of an answer, and whether the client is ended. */
async function lastWords(act: (connection: ServerConnection) => void): Promise<unknown> {
  const server = await ScriptedServer.start({ answer: (text) => text !== 'wait' });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  const heard = session.received.length;
  writeQuery(session.writer, 'wait');
  session.send();
  await expect.poll(() => server.connection.queries).toContain('wait');
  const { connection } = server;
  act(connection);
  await expect.poll(() => session.isClosed).toBe(true);
  await expect.poll(() => connection.socket.destroyed).toBe(true);
  // The connection is not used again, and the next client notices nothing.
  const next = await RawSession.start(pooler, version30);
  expect(typesOf(await next.ask((writer) => writeQuery(writer, 'select 1')))).toBe('CZ');
  expect(server.connections).toHaveLength(2);
  next.socket.destroy();
  const words = session.received.slice(heard);
  expect(words.filter(({ type }) => type === Backend.readyForQuery)).toEqual([]);
  return errorOf(words);
}

test.each([
  ['57P01', 'terminating connection due to administrator command'],
  ['57P02', 'terminating connection because of crash of another server process'],
  ['57P03', 'the database system is shutting down'],
])('a server that goes with %s is heard by its client to the last word', async (code, message) => {
  const fatal = { severity: 'FATAL', code, message };
  const said = await lastWords((connection) => {
    connection.error(fatal);
    connection.socket.end();
  });
  expect(said).toMatchObject(fatal);
});

test.each<readonly [string, (connection: ServerConnection) => void]>([
  ['hangs up', ({ socket }) => socket.end()],
  ['resets the connection', ({ socket }) => socket.resetAndDestroy()],
])('of a server that %s without a word, the client is told FATAL 08006', async (_name, act) => {
  expect(await lastWords(act)).toMatchObject({ severity: 'FATAL', code: '08006' });
});

test.each<readonly [string, readonly number[]]>([
  ['a message of negative length', [0x44, 0xff, 0xff, 0xff, 0xff]],
  ['a message that is shorter than its own length', [0x44, 0, 0, 0, 3]],
  ['a message that is longer than any can be', [0x5a, 0x7f, 0xff, 0xff, 0xff, 0x49]],
  ['a message of a type that there is not', [0x01, 0, 0, 0, 4]],
  ['CopyBothResponse, which belongs to replication', [0x57, 0, 0, 0, 7, 0, 0, 0]],
  ['what answers another question', [0x31, 0, 0, 0, 4]],
])('a server that sends %s is not trusted any more, and the client is told', async (_name, bytes) => {
  const said = await lastWords((connection) => connection.say(...bytes));
  expect(said).toMatchObject({ severity: 'FATAL', code: '08006' });
});

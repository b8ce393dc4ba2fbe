import { expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';
import { ScriptedServer, type ServerConnection } from './scripted-server.js';

const { version30 } = StartupCode;
type Given = readonly (readonly [string, string])[];

/** A server of version 17 or older, which does not tell what the search path is. */
const parameters = { server_version: '17.1', TimeZone: 'UTC', DateStyle: 'ISO, MDY' };

/** A server that accepts every statement, and keeps no settings. */
function agree(text: string, connection: ServerConnection): boolean {
  if (/^set /i.test(text)) connection.done('SET');
  return !/^set /i.test(text);
}

async function enter(pooler: TestPooler, settings: Given): Promise<RawSession> {
  return RawSession.start(pooler, version30, settings);
}

async function ask(session: RawSession, text: string): Promise<string> {
  return typesOf(await session.ask((writer) => writeQuery(writer, text)));
}

test('a server is brought from one client’s settings to the next one’s by one query, of what differs', async () => {
  const server = await ScriptedServer.start({ parameters, answer: agree });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const first = await enter(pooler, [
    ['timezone', 'Asia/Tokyo'],
    ['datestyle', 'German'],
    ['work_mem', '5MB'],
  ]);
  const second = await enter(pooler, [
    ['timezone', 'Asia/Tokyo'],
    ['work_mem', '6MB'],
    ['lock_timeout', '7s'],
  ]);
  await ask(first, 'select 1');
  const { queries } = server.connection;
  queries.length = 0;
  await ask(first, 'select 2');
  // This client again: nothing is set.
  expect(queries.splice(0)).toEqual(['select 2']);
  await ask(second, 'select 3');
  const [brought = '', asked] = queries;
  expect([queries.length, asked]).toEqual([2, 'select 3']);
  expect(brought).not.toContain('timezone');
  expect(brought).toContain('RESET "datestyle"');
  expect(brought).toContain("'6MB'");
  expect(brought).toContain("'7s'");
  for (const each of [first, second]) each.socket.destroy();
});

test('an error while a server is brought there is not taken for one of the client’s own', async () => {
  let refuses = false;
  const server = await ScriptedServer.start({
    parameters,
    answer: (text, connection) => {
      if (!refuses || !text.includes('5MB')) return true;
      connection.error({ severity: 'ERROR', code: '22023', message: 'no longer' });
      connection.socket.write(Buffer.from([0x5a, 0, 0, 0, 5, 0x49]));
      return false;
    },
  });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await enter(pooler, [['work_mem', '5MB']]);
  const other = await enter(pooler, []);
  await ask(other, 'select 1');
  refuses = true;
  const heard = session.received.length;
  writeQuery(session.writer, 'select 2');
  session.send();
  await expect.poll(() => session.isClosed).toBe(true);
  const error = errorOf(session.received.slice(heard));
  expect(error).toMatchObject({ severity: 'FATAL', code: '22023' });
  expect(error?.message).toContain('settings of the session could not be brought to this server');
  other.socket.destroy();
});

test('the search path follows the client although the server does not report it', async () => {
  const server = await ScriptedServer.start({ parameters, answer: agree });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await enter(pooler, []);
  const other = await enter(pooler, []);
  await ask(session, 'set search_path = a, b');
  await ask(other, 'select 1');
  const { queries } = server.connection;
  expect(queries.slice(-2)).toEqual(['RESET "search_path"', 'select 1']);
  await ask(session, 'select 2');
  expect(queries.slice(-2)).toEqual(['set search_path = a, b', 'select 2']);
  for (const each of [session, other]) each.socket.destroy();
});

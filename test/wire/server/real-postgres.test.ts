// A real PostgreSQL understands what is built here, and what it says is read, and could have been built, byte for byte.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { flush, sslRequest, sync, terminate } from '../../../src/wire/fixed-messages.js';
import { ParseView } from '../../../src/wire/frontend-views.js';
import * as write from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode, Target } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeRenamed } from '../../../src/wire/rename-statement.js';
import * as rows from '../../../src/wire/rows.js';
import * as session from '../../../src/wire/session-messages.js';
import { SqlState } from '../../../src/wire/sql-states.js';
import { writeCancelRequest, writeStartup } from '../../../src/wire/startup-packet.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { kinds } from '../message-kinds.js';
import { errorOf, RawSession, type Received, typesOf } from './raw-session.js';

let db: TestDatabase;
const sessions: RawSession[] = [];

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(async () => {
  for (const { socket } of sessions) socket.destroy();
  await db.drop();
});

async function start(
  version: number = StartupCode.version32,
  more?: [string, string][],
): Promise<RawSession> {
  const started = await RawSession.start(db, version, more);
  sessions.push(started);
  return started;
}

function one(messages: readonly Received[], type: number): Buffer {
  const found = messages.filter((message) => message.type === type);
  expect(found).toHaveLength(1);
  return (found[0] as Received).bytes;
}

function valuesOf(messages: readonly Received[]): (string | undefined)[][] {
  return messages
    .filter(({ type }) => type === Backend.dataRow)
    .map(({ bytes }) => rows.readDataRow(bytes, 0, bytes.length).map((value) => value?.toString()));
}

function keyOf({ received }: RawSession): session.BackendKey {
  const bytes = one(received, Backend.backendKeyData);
  return session.readBackendKeyData(bytes, 0, bytes.length);
}

test('A session of protocol 3.0 has a key of 4 bytes, and of 3.2 a longer one', async () => {
  expect(keyOf(await start(StartupCode.version30)).secretKey).toHaveLength(4);
  expect(keyOf(await start(StartupCode.version32)).secretKey.length).toBeGreaterThan(4);
});

test('A session reports its settings, and those that the startup packet had', async () => {
  const { received } = await start(StartupCode.version30, [['application_name', 'prüfung']]);
  const settings = received
    .filter(({ type }) => type === Backend.parameterStatus)
    .map(({ bytes }) => session.readParameterStatus(bytes, 0, bytes.length));
  expect(settings).toContainEqual({ name: 'client_encoding', value: 'UTF8' });
  expect(settings.map(({ name }) => name)).toContain('server_version');
});

test('A session with an unknown version and unknown options is negotiated', async () => {
  const { received } = await start((3 << 16) | 9_999, [['_pq_.headgate_test', 'on']]);
  const bytes = one(received, Backend.negotiateProtocolVersion);
  expect(session.readNegotiateProtocolVersion(bytes, 0, bytes.length)).toEqual({
    version: StartupCode.version32,
    unknownOptions: ['_pq_.headgate_test'],
  });
});

test('A session of another major version is refused with 0A000', async () => {
  const other = await RawSession.open(db);
  writeStartup(other.writer, { version: 4 << 16, parameters: [['user', 'x']] });
  other.send();
  expect(errorOf([await other.next()])).toMatchObject({
    severity: 'FATAL',
    code: SqlState.featureNotSupported,
  });
});

test('A session can ask for encryption, and is answered with a byte', async () => {
  const { socket } = await RawSession.open(db);
  socket.removeAllListeners('data');
  socket.write(sslRequest);
  const answer = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  socket.destroy();
  expect(['S', 'N']).toContain(answer.toString());
});

test('A session ends with Terminate', async () => {
  const ending = await start();
  ending.socket.write(terminate);
  await expect(ending.next()).rejects.toThrow('The server closed the connection.');
});

test('Queries are answered with columns, rows and a tag', async () => {
  const answer = await (await start()).ask((w) => write.writeQuery(w, "select 1 as a, null as b, 'é' as c"));
  expect(typesOf(answer)).toBe('TDCZ');
  const description = one(answer, Backend.rowDescription);
  expect(rows.readRowDescription(description, 0, description.length)).toMatchObject([
    { name: 'a', typeId: 23, typeSize: 4 },
    { name: 'b', typeId: 25 },
    { name: 'c', typeId: 25, typeSize: -1, typeModifier: -1, format: 0 },
  ]);
  expect(valuesOf(answer)).toEqual([['1', undefined, 'é']]);
  const tag = one(answer, Backend.commandComplete);
  expect(rows.readCommandComplete(tag, 0, tag.length)).toBe('SELECT 1');
  expect(rows.isCommandTag(tag, 0, tag.length, 'SELECT 1')).toBe(true);
});

test('Queries are prepared under another name than the client gave, described, bound and executed in parts', async () => {
  const running = await start();
  const client = new MessageWriter();
  const text = 'select n, $1::text from generate_series(1, $2) n';
  write.writeParse(client, { name: 'of the client', text, parameterTypes: [25] });
  const parse = client.take();
  const answer = await running.ask((w) => {
    writeRenamed(w, new ParseView().read(parse, 0, parse.length), Buffer.from('s1'));
    write.writeDescribe(w, Target.statement, 's1');
    write.writeBind(w, { portal: 'p', statement: 's1', values: ['x', '3'], resultFormats: [0] });
    write.writeExecute(w, 'p', 2);
    write.writeExecute(w, 'p', 2);
    write.writeClose(w, Target.portal, 'p');
    write.writeClose(w, Target.statement, 's1');
    w.append(sync);
  });
  expect(typesOf(answer)).toBe('1tT2DDsDC33Z');
  const types = one(answer, Backend.parameterDescription);
  expect(rows.readParameterDescription(types, 0, types.length)).toEqual([25, 23]);
  expect(valuesOf(answer)).toEqual([
    ['1', 'x'],
    ['2', 'x'],
    ['3', 'x'],
  ]);
});

test('Queries show errors field by field, and the state of the transaction', async () => {
  const running = await start();
  await running.ask((w) =>
    write.writeQuery(w, 'create temp table t (a int constraint positive check (a > 0)); begin'),
  );
  const failed = await running.ask((w) => write.writeQuery(w, 'insert into t values (-1)'));
  expect(errorOf(failed)).toMatchObject({
    severity: 'ERROR',
    code: '23514',
    table: 't',
    constraint: 'positive',
    detail: 'Failing row contains (-1).',
  });
  const ready = one(failed, Backend.readyForQuery);
  expect(String.fromCharCode(session.readReadyForQuery(ready, 0, ready.length))).toBe('E');
  const refused = await running.ask((w) => write.writeQuery(w, 'select 1'));
  expect(errorOf(refused)?.code).toBe(SqlState.inFailedSqlTransaction);
  expect(errorOf(await running.ask((w) => write.writeQuery(w, 'rollback; selekt')))).toMatchObject({
    position: '11',
  });
});

test('Queries copy both ways, and can be given up', async () => {
  const running = await start();
  await running.ask((w) => write.writeQuery(w, 'create temp table c (a int, b text)'));
  write.writeQuery(running.writer, 'copy c from stdin');
  running.send();
  const [copyIn] = await running.until(Backend.copyInResponse);
  expect(rows.readCopyResponse((copyIn as Received).bytes, 0, copyIn?.bytes.length ?? 0)).toEqual({
    format: 0,
    columnFormats: [0, 0],
  });
  write.writeCopyData(running.writer, Buffer.from('1\tone\n2\ttw'));
  write.writeCopyData(running.writer, Buffer.from('o\n'));
  running.writer.append(Buffer.from('6300000004', 'hex'));
  running.send();
  expect(typesOf(await running.until(Backend.readyForQuery))).toBe('CZ');
  expect(typesOf(await running.ask((w) => write.writeQuery(w, 'copy c to stdout')))).toBe('HddcCZ');
  write.writeQuery(running.writer, 'copy c from stdin');
  write.writeCopyFail(running.writer, 'no more');
  running.send();
  const failed = await running.until(Backend.readyForQuery);
  expect(errorOf(failed)).toMatchObject({
    code: SqlState.queryCanceled,
    message: expect.stringContaining('no more'),
  });
});

test('Queries notify, warn, are empty, or call a function', async () => {
  const running = await start();
  const notified = await running.ask((w) => write.writeQuery(w, "listen ch; notify ch, 'load'"));
  const notification = one(notified, Backend.notification);
  expect(session.readNotification(notification, 0, notification.length)).toMatchObject({
    channel: 'ch',
    payload: 'load',
    processId: keyOf(running).processId,
  });
  expect(typesOf(await running.ask((w) => write.writeQuery(w, 'rollback')))).toBe('NCZ');
  expect(typesOf(await running.ask((w) => write.writeQuery(w, '')))).toBe('IZ');
  const called = await running.ask((w) => {
    write.writeFunctionCall(w, { functionId: 177, values: ['40', '2'] });
  });
  const result = one(called, Backend.functionCallResponse);
  expect(rows.readFunctionCallResponse(result, 0, result.length)?.toString()).toBe('42');
});

test.each([StartupCode.version30, StartupCode.version32])(
  'Queries of version %i are cancelled with the key',
  async (version) => {
    const running = await start(version);
    const { processId, secretKey } = keyOf(running);
    write.writeParse(running.writer, { text: 'select pg_sleep(600)' });
    running.writer.append(flush);
    write.writeBind(running.writer, {});
    running.writer.append(flush);
    write.writeExecute(running.writer);
    running.writer.append(sync);
    running.send();
    // Once BindComplete is here, Execute is what the server does next. A cancel before it began would be lost, so it is repeated.
    await running.until(Backend.bindComplete);
    const answer = running.until(Backend.readyForQuery);
    let isAnswered = false;
    void answer.finally(() => {
      isAnswered = true;
    });
    while (!isAnswered) {
      const canceller = await RawSession.open(db);
      writeCancelRequest(canceller.writer, processId, secretKey);
      canceller.send();
      await expect(canceller.next()).rejects.toThrow('closed');
    }
    expect(errorOf(await answer)?.code).toBe(SqlState.queryCanceled);
  },
);

// A body of each kind that test/wire/malformed.test.ts has refused, for one reason each.
test.each([
  ['Query', 'Q', '4100 4100'],
  ['Parse', 'P', '00 00'],
  ['Parse', 'P', '00 00 0001'],
  ['Bind', 'B', '00 41'],
  ['Bind', 'B', '00 00 0000 0001 7fffffff 41'],
  ['Bind', 'B', '00 00 ffff 0000'],
  ['Describe', 'D', '58 00'],
  ['Describe', 'D', '53 41'],
  ['Close', 'C', '53 00 00'],
  ['Execute', 'E', '00 000000'],
  ['FunctionCall', 'F', '000000b1 0000 ffff 0000'],
])('What is refused here is refused by PostgreSQL with the same SQLSTATE: %s', async (_name, type, hex) => {
  const running = await start();
  const answer = await running.ask((w) => {
    // A statement to bind, so that nothing else is wrong.
    write.writeParse(w, { text: 'select $1::text' });
    w.begin(type.charCodeAt(0));
    w.bytes(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
    w.end();
    w.append(sync);
  });
  expect(errorOf(answer)?.code).toBe(SqlState.protocolViolation);
});

test.each(['5100000003', '51ffffffff', '4300002712'])(
  'What is refused here as a length ends the connection to PostgreSQL too: %s',
  async (hex) => {
    const running = await start();
    running.socket.write(Buffer.from(hex, 'hex'));
    await expect(running.next()).rejects.toThrow('closed');
  },
);

test('What is refused here as a type is fatal to PostgreSQL too', async () => {
  const running = await start();
  running.socket.write(Buffer.from('7a', 'hex'));
  expect(errorOf([await running.next()])).toMatchObject({
    severity: 'FATAL',
    code: SqlState.protocolViolation,
  });
  await expect(running.next()).rejects.toThrow('closed');
});

test('Everything that the server said above is, built from what was read of it, the same bytes again', () => {
  const readers = kinds.filter(({ direction }) => direction === 'backend');
  const seen = new Set<string>();
  for (const { type, bytes } of sessions.flatMap(({ received }) => received)) {
    const kind = readers.find((candidate) => candidate.type === type);
    if (kind === undefined) continue;
    seen.add(kind.name);
    const writer = new MessageWriter();
    kind.write(writer, kind.read(bytes, 0, bytes.length));
    expect(writer.take().toString('latin1')).toBe(bytes.toString('latin1'));
  }
  expect([...seen].sort()).toEqual(
    [
      ...[
        'Authentication',
        'BackendKeyData',
        'CommandComplete',
        'CopyData from the server',
        'CopyInResponse',
      ],
      ...['CopyOutResponse', 'DataRow', 'ErrorResponse', 'FunctionCallResponse', 'NegotiateProtocolVersion'],
      ...[
        'NoticeResponse',
        'NotificationResponse',
        'ParameterDescription',
        'ParameterStatus',
        'ReadyForQuery',
      ],
      'RowDescription',
    ].sort(),
  );
});

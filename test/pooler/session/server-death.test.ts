// However and whenever a server connection ends, the client that holds it gets an ErrorResponse, and never a bare EOF.
import { describe, expect, test } from 'vitest';
import { writeError } from '../../../src/wire/error-fields.js';
import { readyIdle } from '../../../src/wire/fixed-messages.js';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCommandComplete, writeCopyResponse, writeDataRow } from '../../../src/wire/rows.js';
import { startTestPooler } from '../../support/pooler.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';
import { ScriptedServer, type ServerConnection } from './scripted-server.js';

/** The scripted server's answer at the moment of its death. Leaves nothing in the session. */
const moment = "select 'moment'";

const terminated = { severity: 'FATAL', code: '57P01', message: 'terminating connection due to a test' };

function bytesOf(write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  write(writer);
  return writer.take();
}

const fatal = bytesOf((writer) => writeError(writer, terminated));
const row = bytesOf((writer) => writeDataRow(writer, ['a row of an answer']));
const inTransaction = bytesOf((writer) => {
  writeCommandComplete(writer, 'SELECT 0');
  writer.append(Buffer.from([...readyIdle.subarray(0, 5), 0x54]));
});
const copyIn = bytesOf((writer) =>
  writeCopyResponse(writer, Backend.copyInResponse, { format: 0, columnFormats: [0] }),
);
const copyOut = bytesOf((writer) => {
  writeCopyResponse(writer, Backend.copyOutResponse, { format: 0, columnFormats: [0] });
  writer.append(Buffer.from([Backend.copyData, 0, 0, 0, 6, 0x31, 0x0a]));
});
const someCopyData = Buffer.concat(Array(4_000).fill(Buffer.from([0x64, 0, 0, 0, 6, 0x31, 0x0a])));
const nextQuery = bytesOf((writer) => writeQuery(writer, 'select 2'));

interface Death {
  readonly name: string;
  readonly strike: (connection: ServerConnection) => void;
  /** The client's error; undefined where it depends on which bytes arrive. */
  readonly code?: string;
}

const deaths: readonly Death[] = [
  { name: 'a FIN', strike: ({ socket }) => socket.end(), code: '08006' },
  { name: 'a RST', strike: ({ socket }) => socket.resetAndDestroy(), code: '08006' },
  { name: 'a FATAL and a FIN', strike: ({ socket }) => socket.end(fatal), code: '57P01' },
  {
    name: 'a FATAL and a RST',
    strike: ({ socket }) => socket.write(fatal, () => socket.resetAndDestroy()),
  },
  { name: 'a FATAL and nothing more', strike: ({ socket }) => socket.write(fatal), code: '57P01' },
  {
    name: 'half a FATAL and a FIN',
    strike: ({ socket }) => socket.end(fatal.subarray(0, 30)),
    code: '08006',
  },
];

interface Moment {
  readonly name: string;
  /** The query at which it comes, of the client (where it has the client's number) or of the pooler. */
  readonly asks: string;
  readonly at: RegExp;
  /** The server's last bytes. */
  readonly says?: Buffer;
  /** The server dies when the client has got a message of this type, and not before. */
  readonly after?: number;
  /** Bytes that the client has sent by then. */
  readonly inFlight?: Buffer;
  /** Earlier statements of the client, while another has changed a setting on the only server. */
  readonly before?: string;
}

const moments: readonly Moment[] = [
  { name: 'while a query runs', asks: moment, at: /moment/ },
  { name: 'while a query runs and the next is sent', asks: moment, at: /moment/, inFlight: nextQuery },
  { name: 'between two rows', asks: moment, at: /moment/, says: Buffer.concat([row, row, row]) },
  {
    name: 'in a transaction without a query',
    asks: 'begin; moment',
    at: /moment/,
    says: inTransaction,
    after: Backend.readyForQuery,
  },
  {
    name: 'in a transaction when the next query is sent',
    asks: 'begin; moment',
    at: /moment/,
    says: inTransaction,
    after: Backend.readyForQuery,
    inFlight: nextQuery,
  },
  {
    name: 'while COPY takes data',
    asks: 'copy moment',
    at: /moment/,
    says: copyIn,
    after: Backend.copyInResponse,
    inFlight: someCopyData,
  },
  {
    name: 'while COPY sends data',
    asks: 'copy moment',
    at: /moment/,
    says: copyOut,
    after: Backend.copyData,
  },
  { name: 'in the BEGIN of the pooler', before: 'begin', asks: moment, at: /^BEGIN$/ },
  {
    name: 'while the pooler restores settings',
    before: "set search_path = 'a'",
    asks: moment,
    at: /^set search_path = 'a'/,
  },
];

/** How a session ended for its client. */
async function endOf(session: RawSession): Promise<string> {
  const words = await session.lastWords();
  session.socket.destroy();
  if (session.isInsideMessage) return 'inside a message';
  const errors = words.filter(({ type }) => type === Backend.error);
  const { severity, code } = errorOf(words) ?? {};
  return errors.length === 0 ? 'a bare EOF' : `${errors.length} ${severity} ${code}`;
}

/** Runs what dies at the moment on the scripted server, for many clients, and counts how it ended for them. */
async function endsAt(moment: Moment, death: Death): Promise<Record<string, number>> {
  const { asks, at, says = Buffer.alloc(0), after, inFlight = Buffer.alloc(0), before } = moment;
  const server = await ScriptedServer.start({
    answer(text, connection) {
      // A client's own comes first; the pooler repeats it.
      const isFirst = connection.queries.indexOf(text) === connection.queries.length - 1;
      if (text.startsWith('set ') && isFirst) {
        connection.done('SET');
        return false;
      }
      if (!at.test(text)) return true;
      connection.socket.write(says);
      if (after === undefined) death.strike(connection);
      return false;
    },
  });
  const clientsAtOnce = before === undefined ? 4 : 1;
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: clientsAtOnce } });
  const die = async (number: number): Promise<string> => {
    const session = await RawSession.start(pooler, StartupCode.version30);
    if (before !== undefined) {
      await session.ask((writer) => writeQuery(writer, before));
      const other = await RawSession.start(pooler, StartupCode.version30);
      await other.ask((writer) => writeQuery(writer, "set search_path = 'b'"));
      other.socket.destroy();
    }
    const text = `${asks} ${number}`;
    writeQuery(session.writer, text);
    if (after === undefined) session.writer.append(inFlight);
    session.send();
    if (after !== undefined) {
      await session.until(after);
      session.socket.write(inFlight);
      death.strike(server.connections.find(({ queries }) => queries.includes(text)) as ServerConnection);
    }
    return endOf(session);
  };
  const counts: Record<string, number> = {};
  for (let run = 0; run < 40; run += clientsAtOnce) {
    const numbers = Array.from({ length: clientsAtOnce }, (_, index) => run + index);
    for (const end of await Promise.all(numbers.map(die))) counts[end] = (counts[end] ?? 0) + 1;
  }
  return counts;
}

describe.each(moments)('a server that dies $name', (moment) => {
  test.each(deaths)('by $name leaves no client without an ErrorResponse', async (death) => {
    const ends = await endsAt(moment, death);
    if (death.code === undefined) {
      const told = (ends['1 FATAL 57P01'] ?? 0) + (ends['1 FATAL 08006'] ?? 0);
      expect(told, JSON.stringify(ends)).toBe(40);
    } else expect(ends).toEqual({ [`1 FATAL ${death.code}`]: 40 });
  });
});

/** A pooler with one server connection, which is idle, and a client. */
async function idleServer(
  later: (connection: ServerConnection) => void,
): Promise<{ server: ScriptedServer; session: RawSession }> {
  const server: ScriptedServer = await ScriptedServer.start({
    answer(text, connection) {
      if (text !== moment || connection !== server.connections[0]) return true;
      later(connection);
      return false;
    },
  });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  return { server, session };
}

test('an idle server connection that gets a FATAL is not given to clients any more, also while the server has not closed it yet', async () => {
  const { server, session } = await idleServer(({ socket }) => socket.end());
  const [first] = server.connections;
  const closed = new Promise((resolve) => first?.socket.once('end', resolve));
  first?.socket.write(fatal);
  // The pooler closes it by itself.
  await closed;
  expect(typesOf(await session.ask((writer) => writeQuery(writer, moment)))).toBe('CZ');
  expect(first?.queries).not.toContain(moment);
  session.socket.destroy();
});

test('an idle server connection that gets a FATAL at the moment that a client asks reaches that client, or none', async () => {
  const ends: Record<string, number> = {};
  for (let run = 0; run < 40; run++) {
    const { server, session } = await idleServer(({ socket }) => socket.end());
    server.connections[0]?.socket.write(fatal);
    // Before, after and in the same turn as the FATAL.
    for (let turn = 0; turn < run % 8; turn++) await new Promise((resolve) => setImmediate(resolve));
    writeQuery(session.writer, moment);
    session.send();
    const answered = session.until(Backend.readyForQuery).then(
      () => 'answered',
      async () => {
        const error = session.received.find(({ type }) => type === Backend.error);
        return error === undefined ? 'a bare EOF' : 'told';
      },
    );
    const end = await answered;
    ends[end] = (ends[end] ?? 0) + 1;
    session.socket.destroy();
  }
  expect(ends, JSON.stringify(ends)).not.toHaveProperty('a bare EOF');
});

test('a FATAL right behind the whole answer does not concern a client that needs the server no more', async () => {
  const { server, session } = await idleServer(({ socket }) => {
    const answer = bytesOf((writer) => {
      writeCommandComplete(writer, 'SELECT 0');
      writer.append(readyIdle);
      writer.append(fatal);
    });
    socket.end(answer);
  });
  expect(typesOf(await session.ask((writer) => writeQuery(writer, moment)))).toBe('CZ');
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'select 2')))).toBe('CZ');
  expect(server.connections).toHaveLength(2);
  session.socket.destroy();
});

test('a client that has got a part of a message is disconnected, and nothing is put in the middle of it', async () => {
  for (const death of deaths.slice(0, 2)) {
    const { session } = await idleServer((connection) => {
      connection.socket.write(Buffer.concat([row, row.subarray(0, 12)]), () => death.strike(connection));
    });
    writeQuery(session.writer, moment);
    session.send();
    expect(typesOf(await session.lastWords())).toBe('D');
    expect(session.isInsideMessage).toBe(true);
  }
});

test('a server that breaks the protocol within an answer gives its client the rows that came before, and an ErrorResponse', async () => {
  const nonsense = Buffer.from([0x01, 0, 0, 0, 4]);
  for (const pieces of [
    [row, nonsense],
    [row.subarray(0, 12), row.subarray(12), nonsense],
  ]) {
    const { session } = await idleServer(async ({ socket }) => {
      socket.setNoDelay(true);
      const last = Buffer.concat(pieces.slice(-2));
      for (const piece of pieces.slice(0, -2)) {
        socket.write(piece);
        // The pooler has passed it on.
        await expect.poll(() => session.isInsideMessage).toBe(true);
      }
      socket.write(last);
    });
    writeQuery(session.writer, moment);
    session.send();
    expect(typesOf(await session.lastWords())).toBe('DE');
  }
});

// What one client, or one server, can make the pooler keep: each bound is met, and holds, and others are served meanwhile.
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { Outgoing } from '../../../src/pooler/servers/outgoing.js';
import { readErrorFields } from '../../../src/wire/error-fields.js';
import { sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeCopyData,
  writeDescribe,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode, Target } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';
import { scrape } from '../metrics/scrape.js';
import { ScriptedServer } from './scripted-server.js';

const kilobyte = 1_024;
const observability = { metricsListen: '127.0.0.1:0' };
/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 20 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

function repeated(times: number, write: (writer: MessageWriter, n: number) => void): Buffer {
  const writer = new MessageWriter();
  for (let n = 0; n < times; n++) write(writer, n);
  return writer.take();
}

function parseAndClose(writer: MessageWriter): void {
  writeParse(writer, { name: 'a', text: 'select 1' });
  writeClose(writer, Target.statement, Buffer.from('a'));
}

const received = ({ pooler }: TestPooler): number =>
  pooler.stats().pools.reduce((sum, { tally }) => sum + tally.received, 0);

async function timesReached({ pooler }: TestPooler, limit: string): Promise<number> {
  const { lines } = await scrape(pooler.metricsPort as number);
  return lines
    .filter(
      ({ name, labels }) => name === 'headgate_pooler_memory_limits_reached_total' && labels.limit === limit,
    )
    .reduce((sum, { value }) => sum + value, 0);
}

test('a client whose messages get no answer is read from up to max_client_pipeline_size, and no further', async () => {
  const server = await ScriptedServer.start();
  const pooler = await startTestPooler(server.db, {
    limits: { maxClientPipelineSize: '256KB' },
    pooling: { poolSize: 2 },
    observability,
  });
  const greedy = await RawSession.start(pooler, StartupCode.version30);
  const pairs = repeated(20_000, parseAndClose);
  greedy.socket.write(pairs);
  await expect.poll(() => timesReached(pooler, 'max_client_pipeline_size'), soon).toBe(1);
  const other = await pooler.connect();
  // So many times the pooler could have read more of it.
  for (let n = 0; n < 200; n++) await other.query('select 1');
  expect(received(pooler)).toBeLessThan(256 * kilobyte);
  expect(greedy.socket.bytesWritten - greedy.socket.writableLength).toBeGreaterThan(0);
  expect(greedy.isClosed).toBe(false);
});

test('a client that does not read gets no more than max_client_unread_size ahead, and everything once it reads', async () => {
  const limit = 256 * kilobyte;
  const pooler = await startTestPooler(db, {
    limits: { maxClientUnreadSize: '256KB' },
    pooling: { poolSize: 2 },
  });
  const lazy = await RawSession.start(pooler, StartupCode.version30);
  let mostUnread = 0;
  const { sendTo } = Outgoing.prototype;
  const send = vi.spyOn(Outgoing.prototype, 'sendTo').mockImplementation(function (this: Outgoing, to) {
    const sent = sendTo.call(this, to);
    if (to.localPort === pooler.port) mostUnread = Math.max(mostUnread, to.unsent);
    return sent;
  });
  onTestFinished(() => send.mockRestore());
  lazy.socket.pause();
  const rows = 4_000;
  // The server reads no more while its answers are not taken, so that they are taken as long as there is room for them.
  lazy.socket.write(repeated(rows, (writer) => writeQuery(writer, `select '${'x'.repeat(8_000)}'`)));
  await expect.poll(() => mostUnread, soon).toBeGreaterThanOrEqual(limit);
  const other = await pooler.connect();
  // So many times the pooler could have read more from the server.
  for (let n = 0; n < 200; n++) await other.query('select 1');
  // One read of the server's socket comes on top.
  expect(mostUnread).toBeLessThan(limit + 256 * kilobyte);
  lazy.socket.resume();
  for (let n = 0; n < rows; n++) await lazy.until(Backend.readyForQuery);
});

const pipelines: readonly (readonly [string, (writer: MessageWriter, n: number) => void, string])[] = [
  ['statements that are prepared and closed', parseAndClose, '13'],
  [
    'statements that are run',
    (writer, n) => {
      writeParse(writer, { text: 'select $1::int' });
      writeBind(writer, { values: [String(n)] });
      writeExecute(writer);
    },
    '12DC',
  ],
  [
    'batches',
    (writer, n) => {
      writeBind(writer, { statement: 'kept', values: [String(n)] });
      writeExecute(writer);
      writer.append(sync);
    },
    '2DCZ',
  ],
];

test.each(pipelines)(
  'a pipeline of %s that is longer than max_client_pipeline_size is answered in full and in order',
  async (_name, write, answer) => {
    const times = 5_000;
    const pooler = await startTestPooler(db, { limits: { maxClientPipelineSize: '64KB' }, observability });
    const session = await RawSession.start(pooler, StartupCode.version30);
    const prepared = await session.ask((writer) => {
      writeParse(writer, { name: 'kept', text: 'select $1::int' });
      writer.append(sync);
    });
    expect(typesOf(prepared)).toBe('1Z');
    session.socket.write(repeated(times, write));
    // The end of the pipeline, which nothing else is answered with.
    const last = await session.ask((writer) => {
      writeDescribe(writer, Target.statement, Buffer.from('kept'));
      writer.append(sync);
    });
    while (!typesOf(last).endsWith('tTZ')) last.push(...(await session.until(Backend.readyForQuery)));
    expect(typesOf(last) === `${answer.repeat(times)}tTZ`).toBe(true);
    expect(await timesReached(pooler, 'max_client_pipeline_size')).toBeGreaterThan(0);
  },
);

test('a COPY that begins in a pipeline longer than max_client_pipeline_size gets all of its data', async () => {
  const pooler = await startTestPooler(db, { limits: { maxClientPipelineSize: '64KB' } });
  const other = await pooler.connect();
  await other.query('create table copied_behind (n int)');
  const session = await RawSession.start(pooler, StartupCode.version30);
  const rows = 20_000;
  const writer = new MessageWriter();
  for (let n = 0; n < 500; n++) {
    writeParse(writer, { text: `select ${n}` });
    writer.append(sync);
  }
  writeQuery(writer, 'copy copied_behind from stdin');
  for (let n = 0; n < rows; n++) writeCopyData(writer, Buffer.from(`${n}\n`));
  writer.append(Buffer.from([0x63, 0, 0, 0, 4]));
  session.socket.write(writer.take());
  await session.until(Backend.copyInResponse);
  await session.until(Backend.readyForQuery);
  expect((await other.query('select count(*)::int as n from copied_behind')).rows).toEqual([{ n: rows }]);
});

test('a client that has prepared too much is told so with numbers, and goes on when it has closed some', async () => {
  const pooler = await startTestPooler(db, { limits: { maxClientStatementsSize: '64KB' }, observability });
  const session = await RawSession.start(pooler, StartupCode.version30);
  const prepare = (n: number): Promise<string> =>
    session
      .ask((writer) => {
        writeParse(writer, { name: `s${n}`, text: `select ${n}` });
        writer.append(sync);
      })
      .then((answers) => {
        const error = errorOf(answers);
        return error === undefined ? typesOf(answers) : `${error.code} ${error.message} ${error.hint}`;
      });
  let n = 0;
  let said = '';
  for (; n < 100 && (said === '' || said === '1Z'); n++) said = await prepare(n);
  expect(said).toMatch(
    /^53400 too many prepared statements: this client has \d+, which take \d+ of 65536 bytes/,
  );
  expect(said).toContain('max_client_statements_size');
  await session.ask((writer) => {
    writeClose(writer, Target.statement, Buffer.from('s0'));
    writer.append(sync);
  });
  expect(await prepare(1_000)).toBe('1Z');
  expect(await prepare(1_001)).toContain('53400');
  const ran = await session.ask((writer) => {
    writeBind(writer, { statement: 's1' });
    writeExecute(writer);
    writer.append(sync);
  });
  expect(typesOf(ran)).toBe('2DCZ');
  expect(await timesReached(pooler, 'max_client_statements_size')).toBe(2);
  const other = await pooler.connect();
  expect((await other.query({ name: 'own', text: 'select 1 as one' })).rows).toEqual([{ one: 1 }]);
});

test('long names of prepared statements count against max_client_statements_size', async () => {
  const pooler = await startTestPooler(db, { limits: { maxClientStatementsSize: '1MB' }, observability });
  const session = await RawSession.start(pooler, StartupCode.version30);
  const said: string[] = [];
  for (let n = 0; n < 20; n++) {
    const answers = await session.ask((writer) => {
      writeParse(writer, { name: `${'n'.repeat(50_000)}${n}`, text: 'select 1' });
      writer.append(sync);
    });
    said.push(errorOf(answers)?.code ?? typesOf(answers));
  }
  expect(said.filter((word) => word === '1Z')).toHaveLength(10);
  expect(said.filter((word) => word === '53400')).toHaveLength(10);
  expect(await timesReached(pooler, 'max_client_statements_size')).toBe(10);
});

test('a statement longer than max_prepared_statement_size is refused under a name, and run without one', async () => {
  const pooler = await startTestPooler(db, { limits: { maxPreparedStatementSize: '16KB' } });
  const client = await pooler.connect();
  const text = `select 1 as one -- ${'x'.repeat(20_000)}`;
  await expect(client.query({ name: 'long', text })).rejects.toMatchObject({
    code: '54000',
    message: expect.stringContaining('the most is 16384'),
  });
  expect((await client.query({ text, values: [] })).rows).toEqual([{ one: 1 }]);
});

test('a client with more settings than max_client_settings_size keeps its server, with all of them', async () => {
  const pooler = await startTestPooler(db, {
    limits: { maxClientSettingsSize: '4KB' },
    pooling: { poolSize: 2 },
    observability,
  });
  const greedy = await pooler.connect();
  const other = await pooler.connect();
  const count = 300;
  for (let n = 0; n < count; n++) await greedy.query(`set my.a${n} = '${'v'.repeat(40)}${n}'`);
  const reasons = await scrape(pooler.pooler.metricsPort as number);
  expect(reasons.value('headgate_pooler_clients_pinned', { reason: 'too_many_settings' })).toBe(1);
  await Promise.all([other.query('select 1'), other.query('select 1')]);
  for (const n of [0, 100, count - 1]) {
    const { rows } = await greedy.query(`select current_setting('my.a${n}') as is`);
    expect(rows).toEqual([{ is: `${'v'.repeat(40)}${n}` }]);
  }
  expect(await timesReached(pooler, 'max_client_settings_size')).toBeGreaterThan(0);
  await greedy.end();
  // The next client of the server finds nothing of it.
  const next = await pooler.connect();
  await expect
    .poll(async () => {
      const asked = await Promise.all(
        [other, next].map((client) =>
          client.query(`select pg_sleep(0.02), current_setting('my.a${count - 1}', true) as is`),
        ),
      );
      return asked.map(({ rows }) => rows[0]?.is ?? '');
    }, soon)
    .toEqual(['', '']);
});

test('a transaction that sets and resets more than max_client_settings_size keeps its server, and is rolled back there', async () => {
  const pooler = await startTestPooler(db, {
    limits: { maxClientSettingsSize: '4KB' },
    pooling: { poolSize: 2 },
    observability,
  });
  const greedy = await pooler.connect();
  const other = await pooler.connect();
  await greedy.query("set my.first = 'before'");
  await greedy.query('begin');
  await greedy.query("set my.first = 'after'");
  for (let n = 0; n < 500; n++) {
    await greedy.query(`set my.name_${n} = 1`);
    await greedy.query(`reset my.name_${n}`);
  }
  await greedy.query('rollback');
  expect(await timesReached(pooler, 'max_client_settings_size')).toBeGreaterThan(0);
  const { value } = await scrape(pooler.pooler.metricsPort as number);
  expect(value('headgate_pooler_clients_pinned', { reason: 'too_many_settings' })).toBe(1);
  await Promise.all([other.query('select 1'), other.query('select 1')]);
  const { rows } = await greedy.query("select current_setting('my.first') as first");
  expect(rows).toEqual([{ first: 'before' }]);
});

test('a client that changes settings in a text of more than 8 kB keeps its server, with all of them', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 2 }, observability });
  const client = await pooler.connect({ options: '-c my.kept=start' });
  const other = await pooler.connect();
  await client.query(`reset all; set my.long = 'is set'; ${'set my.b = 1; '.repeat(700)}`);
  const { value } = await scrape(pooler.pooler.metricsPort as number);
  expect(value('headgate_pooler_clients_pinned', { reason: 'setting_not_followed' })).toBe(1);
  await Promise.all([other.query('select 1'), other.query('select 1')]);
  const { rows } = await client.query("select current_setting('my.long') as long");
  expect(rows).toEqual([{ long: 'is set' }]);
});

test('settings that are many and long in one startup packet follow the client all the same', async () => {
  const pooler = await startTestPooler(db, {
    limits: { maxClientSettingsSize: '1KB' },
    pooling: { poolSize: 2 },
  });
  const options = Array.from({ length: 100 }, (_, n) => `-c my.s${n}=${'w'.repeat(20)}${n}`).join(' ');
  const client = await pooler.connect({ options });
  const other = await pooler.connect();
  await Promise.all([other.query('begin'), client.query('select 1')]);
  const { rows } = await client.query("select current_setting('my.s99') as is");
  expect(rows).toEqual([{ is: `${'w'.repeat(20)}99` }]);
  await other.query('commit');
});

test('a server that reports settings without end is disconnected, and its client is told', async () => {
  const server = await ScriptedServer.start({
    answer: (text, connection) => {
      if (text !== 'flood') return true;
      for (let n = 0; n < 2_000; n++) connection.report(`name_${n}`, 'x'.repeat(1_000));
      return true;
    },
  });
  const pooler = await startTestPooler(server.db, { observability });
  const session = await RawSession.start(pooler, StartupCode.version30);
  const other = await pooler.connect();
  writeQuery(session.writer, 'flood');
  session.send();
  await session.lastWords();
  const errors = session.received.filter(({ type }) => type === Backend.error);
  const [{ bytes } = { bytes: Buffer.alloc(0) }] = errors;
  const told = readErrorFields(bytes, 0, bytes.length);
  expect(told.code).toBe('08006');
  expect(told.message).toContain('max_server_parameters_size');
  expect(await timesReached(pooler, 'max_server_parameters_size')).toBe(1);
  await other.query('select 1');
});

test('a server that reports settings without end while it lets the pooler in is not let go on', async () => {
  const parameters = Object.fromEntries(
    Array.from({ length: 200 }, (_, n) => [`name_${n}`, 'x'.repeat(1_000)]),
  );
  const server = await ScriptedServer.start({ parameters });
  const pooler = await startTestPooler(server.db, { timeouts: { queryWaitTimeout: '300ms' } });
  await expect(pooler.connect()).rejects.toThrow('max_server_parameters_size');
});

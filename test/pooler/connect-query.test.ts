// The query that is run on each new server connection: what it may do wrong, and when.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LogDetails } from '../../src/pooler/log.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { ScriptedServer } from './session/scripted-server.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly details: LogDetails | undefined;
}

/** A pooler that runs this query, and what its log says. */
async function start(
  connectQuery: string,
  { entry = {}, tree = {} } = {},
): Promise<TestPooler & { lines: LogLine[] }> {
  const { host, port, password } = db;
  const lines: LogLine[] = [];
  const pooler = await startTestPooler(
    db,
    { databases: { [db.database]: { host, port, password, connectQuery, ...entry } }, ...tree },
    { host: { log: (level, message, details) => lines.push({ level, message, details }) } },
  );
  return { ...pooler, lines };
}

const warnings = (lines: readonly LogLine[]): LogLine[] =>
  lines.filter(({ message }) => message.includes('connect_query'));

test('A connect_query that fails is logged with what the server said, and the connection is used', async () => {
  const { connect, lines } = await start("set work_mem = '9MB'; select 1/0");
  const client = await connect();
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(warnings(lines)).toEqual([
    {
      level: 'warn',
      message: expect.stringContaining('connect_query'),
      details: {
        database: db.database,
        user: db.user,
        error: 'connect_query failed: division by zero (22012).',
        code: '22012',
        attempt: 1,
      },
    },
  ]);
});

test('A connect_query that fails is not logged for each connection: the 1st, 2nd, 4th and so on', async () => {
  const { connect, lines } = await start('select * from missing', {
    tree: { pooling: { poolSize: 1, serverMaxUses: 1 } },
  });
  const client = await connect();
  for (let i = 0; i < 8; i++) await client.query('select 1');
  const attempts = warnings(lines).map(({ details }) => details?.attempt);
  expect(attempts).toEqual([1, 2, 4, 8].slice(0, attempts.length));
  expect(attempts.length).toBeGreaterThanOrEqual(3);
});

test.each(['begin', 'begin; select 1/0'])(
  'A connect_query that fails is one that leaves a transaction open (%s): such a connection is not used, and the client is told',
  async (query) => {
    const { connect } = await start(query, { tree: { timeouts: { queryWaitTimeout: '2s' } } });
    await expect(connect()).rejects.toThrow('connect_query left a transaction open');
  },
);

test('A connect_query that fails because the server hangs up is a connection that could not be opened', async () => {
  const server = await ScriptedServer.start({
    answer: (text, { socket }) => {
      if (text === 'go') socket.end();
      return text !== 'go';
    },
  });
  const { host, port, database } = server.db;
  const pooler = await startTestPooler(server.db, {
    databases: { [database]: { host, port, connectQuery: 'go' } },
    pooling: { serverLoginRetry: '10ms' },
  });
  await expect(pooler.connect()).rejects.toMatchObject({ code: '08001' });
  for (const { queries } of server.connections) expect(queries).toEqual(['go']);
});

test('A server is judged by target_session_attrs after its connect_query', async () => {
  const { connect } = await start('set default_transaction_read_only = on', {
    entry: { targetSessionAttrs: 'read-only' },
    tree: { timeouts: { queryWaitTimeout: '2s' } },
  });
  const { rows } = await (await connect()).query('show transaction_read_only');
  expect(rows).toEqual([{ transaction_read_only: 'on' }]);
});

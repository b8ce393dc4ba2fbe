// Real clients at the console, over real sockets: node-postgres, postgres.js and psql.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { promisify } from 'node:util';
import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import { showNames } from '../../../src/pooler/console/command.js';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeStartup } from '../../../src/wire/startup-packet.js';
import { ConsoleServer } from './console-server.js';
import { columnList, documentedColumns } from './documented-columns.js';
import { clientRecord, countersOf, poolRecord, serverRecord } from './fake-pooler.js';

const typeIds: Readonly<Record<string, number>> = {
  ...{ bytea: 17, int8: 20, int4: 23, text: 25, numeric: 1_700, decimal: 1_700 },
};

/** A server with something to show in most places. */
async function startServer(): Promise<ConsoleServer> {
  const server = await ConsoleServer.start();
  const { pooler } = server;
  pooler.clientRecords = Array.from({ length: 3 }, (_, id) => clientRecord({ id: id + 1, state: 'waiting' }));
  pooler.serverRecords = [serverRecord()];
  pooler.poolRecords = [
    poolRecord({ clients: { waiting: 3 }, servers: { idle: 1 }, discarded: { broken: 5 } }),
  ];
  pooler.userRecords = [{ name: 'alice', servers: 1, clients: 3 }];
  pooler.statsRecord = {
    windowMs: 1_000,
    databases: [
      {
        database: 'app',
        total: countersOf({ queries: 123_456_789_012 }),
        before: countersOf({ queries: 0 }),
      },
    ],
  };
  return server;
}

async function connectPg(server: ConsoleServer, user = 'admin', host = '127.0.0.1'): Promise<pg.Client> {
  const port = host === '127.0.0.1' ? server.port : 6_432;
  const client = new pg.Client({ host, port, user, database: 'pgbouncer' });
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

test.each(showNames.filter((name) => name !== 'help'))(
  'node-postgres sees the documented columns of SHOW %s',
  async (name) => {
    const client = await connectPg(await startServer());
    const { fields, command } = await client.query(`SHOW ${name};`);
    expect(command).toBe('SHOW');
    expect(fields.map((field) => [field.name, field.dataTypeID])).toEqual(
      columnList(documentedColumns[name]).map((column) => {
        const [columnName, type] = column.split(' ') as [string, string];
        return [columnName, typeIds[type]];
      }),
    );
  },
);

test('node-postgres reads the same in text and in binary, with the simple and with the extended protocol', async () => {
  const client = await connectPg(await startServer());
  const numbers = (rows: Record<string, unknown>[]) =>
    rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, String(value)])));
  for (const name of ['stats', 'pools', 'clients', 'discards', 'users', 'totals']) {
    const simple = await client.query(`SHOW ${name}`);
    const prepared = await client.query({ name, text: `SHOW ${name}` });
    const again = await client.query({ name, text: `SHOW ${name}` });
    const binary = await client.query({ text: `SHOW ${name}`, binary: true } as pg.QueryConfig);
    expect(simple.rows.length).toBeGreaterThan(0);
    expect(prepared.rows).toEqual(simple.rows);
    expect(again.rows).toEqual(simple.rows);
    expect(numbers(binary.rows)).toEqual(numbers(simple.rows));
  }
});

test('node-postgres gets an error with its SQLSTATE and a hint, and goes on', async () => {
  const client = await connectPg(await startServer());
  await expect(client.query('SHOW POLS')).rejects.toMatchObject({
    code: '42601',
    severity: 'ERROR',
    message: "unknown command SHOW 'POLS'; did you mean SHOW POOLS?",
    hint: 'SHOW HELP lists all commands.',
  });
  await expect(client.query('SHOW POOLS -- $1', ['app'])).rejects.toMatchObject({ code: '08P01' });
  expect((await client.query('SHOW STATE')).rows[0]).toEqual({ key: 'active', value: 'yes' });
});

test('node-postgres may look as a user of the statistics, and change nothing', async () => {
  const server = await startServer();
  const client = await connectPg(server, 'stats');
  expect((await client.query('SHOW CLIENTS')).rows).toHaveLength(3);
  for (const text of ['KILL', 'SHOW FDS', 'SET verbose = 1', 'SHUTDOWN'])
    await expect(client.query(text)).rejects.toMatchObject({ code: '42501' });
  expect(server.pooler.told).toEqual([]);
});

test('node-postgres comes in through a Unix socket too', async () => {
  const server = await startServer();
  const client = await connectPg(server, 'admin', server.folder);
  expect((await client.query('SHOW LISTS')).rows).toContainEqual({ list: 'used_clients', items: 3 });
});

test('node-postgres reads a result that is larger than any buffer on the way', async () => {
  const server = await startServer();
  server.pooler.clientRecords = Array.from({ length: 20_000 }, (_, id) => clientRecord({ id: id + 1 }));
  const client = await connectPg(server);
  const { rows } = await client.query('SHOW CLIENTS');
  expect(rows.map(({ id }) => id)).toEqual(server.pooler.clientRecords.map(({ id }) => id));
});

test('node-postgres waits no more when it hangs up in the middle of a PAUSE', async () => {
  const server = await startServer();
  const client = await connectPg(server);
  client.query('PAUSE').catch(() => {});
  const { signal } = await server.pooler.waiting('pause all');
  const aborted = once(signal as AbortSignal, 'abort');
  await client.end();
  await aborted;
  await server.until(() => server.sessions === 0);
  expect(server.events).toEqual(['given PAUSE', 'ended']);
  expect(server.pooler.state).toBe('paused');
});

test('A socket that is reset in the middle of a command is noticed', async () => {
  const server = await startServer();
  const client = await connectPg(server);
  client.query('WAIT_CLOSE').catch(() => {});
  const { signal } = await server.pooler.waiting('waitClose all');
  const aborted = once(signal as AbortSignal, 'abort');
  (client as unknown as { connection: { stream: Socket } }).connection.stream.resetAndDestroy();
  await aborted;
  await server.until(() => server.sessions === 0);
});

const startup = messages((writer) =>
  writeStartup(writer, { version: StartupCode.version30, parameters: [['user', 'admin']] }),
);

async function open(server: ConsoleServer): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1').setNoDelay();
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

test('A socket that sends one byte at a time gets the same answer', async () => {
  const socket = await open(await startServer());
  const bytes = Buffer.concat([startup, messages((writer) => writeQuery(writer, 'SHOW VERSION'))]);
  for (const byte of bytes) await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve));
  expect(await textUntil(socket, 'SHOW\0')).toContain('PgBouncer 1.26.1 (Headgate 0.1.0)');
});

test('A socket that sends everything at once, and then no more, gets all answers in order', async () => {
  const server = await startServer();
  const socket = await open(server);
  const questions = ['SHOW STATE', 'KILL app', 'SHOW DATABASES', 'RESUME', 'SHOW POLS', 'SHOW VERSION'];
  socket.end(
    Buffer.concat([
      startup,
      messages((writer) => questions.forEach((text) => void writeQuery(writer, text))),
    ]),
  );
  const text = await textUntil(socket, undefined);
  const found = ['suspended', 'KILL', 'disabled', 'RESUME', 'did you mean', 'Headgate 0.1.0'].map((part) =>
    text.indexOf(part),
  );
  expect(found).toEqual(found.toSorted((one, other) => one - other));
  expect(found).not.toContain(-1);
  expect(server.pooler.told).toEqual(['kill app', 'resume all']);
});

function messages(write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  write(writer);
  return writer.take();
}

/** The text up to these characters, or up to the end. */
async function textUntil(socket: Socket, last: string | undefined): Promise<string> {
  let text = '';
  for await (const chunk of socket) {
    text += (chunk as Buffer).toString('latin1');
    if (last !== undefined && text.includes(last)) break;
  }
  return text;
}

test('postgres.js, which knows only the extended protocol reads rows and errors', async () => {
  const server = await startServer();
  const sql = postgres({
    host: '127.0.0.1',
    port: server.port,
    user: 'admin',
    database: 'headgate',
    fetch_types: false,
    max: 1,
  });
  onTestFinished(() => sql.end());
  const [pool] = await sql`SHOW POOLS`;
  expect(pool).toMatchObject({ database: 'app', cl_waiting: 3, sv_idle: 1, pool_mode: 'transaction' });
  expect(await sql`SHOW STATS`).toMatchObject([{ total_query_count: '123456789012' }]);
  await expect(sql`SHOW POLS`).rejects.toMatchObject({ code: '42601' });
  await sql`RECONNECT app`;
  expect(server.pooler.told).toEqual(['reconnect app']);
});

const run = promisify(execFile);

const hasPsql = await run('timeout', ['10', 'psql', '--version']).then(
  () => true,
  () => false,
);
if (!hasPsql)
  process.stderr.write('NOT RUN: the tests of the console with psql need psql on this machine.\n');

describe.runIf(hasPsql)('psql', () => {
  function place(server: ConsoleServer, user = 'admin'): string[] {
    return ['10', 'psql', '-X', `host=127.0.0.1 port=${server.port} user=${user} dbname=pgbouncer`];
  }

  async function psql(
    server: ConsoleServer,
    args: string[],
    user?: string,
  ): Promise<{ stdout: string; stderr: string }> {
    const { PATH } = process.env;
    return await run('timeout', [...place(server, user), ...args], { env: { PATH } }).catch(
      (error: unknown) => error as { stdout: string; stderr: string },
    );
  }

  test('psql on the console shows what is asked for', async () => {
    const server = await startServer();
    expect((await psql(server, ['-Atc', 'SHOW LISTS'])).stdout).toContain('\nused_clients|3\n');
    expect((await psql(server, ['-Atc', 'SHOW POOLS;'])).stdout).toBe(
      'app|alice|0|3|0|0|0|0|0|1|0|0|0|0|0|transaction||any|||||\n',
    );
    expect((await psql(server, ['-At', '-c', 'SHOW STATE', '-c', 'SHOW VERSION'])).stdout).toBe(
      'active|yes\npaused|no\nsuspended|no\nPgBouncer 1.26.1 (Headgate 0.1.0)\n',
    );
    expect((await psql(server, ['-c', 'SHOW HELP'])).stderr).toMatch(
      /NOTICE: {2}Console usage\nDETAIL: {2}\n\tSHOW /,
    );
  });

  test('psql on the console is told what is wrong, with a hint', async () => {
    const { stderr } = await psql(await startServer(), ['-c', 'SHOW POLS']);
    expect(stderr).toBe(
      "ERROR:  unknown command SHOW 'POLS'; did you mean SHOW POOLS?\nHINT:  SHOW HELP lists all commands.\n",
    );
  });

  test('psql on the console does what is asked for, and says so', async () => {
    const server = await startServer();
    expect((await psql(server, ['-c', 'RECONNECT app; SET query_timeout = 7'])).stdout).toBe(
      'RECONNECT\nSET\n',
    );
    expect(server.pooler.config.timeouts.queryTimeout).toBe(7_000);
    expect((await psql(server, ['-c', 'RECONNECT'], 'stats')).stderr).toMatch(
      /^ERROR: {2}RECONNECT is for users in/,
    );
    expect((await psql(server, ['-c', 'SHOW STATE'], 'mallory')).stderr).toMatch(
      /FATAL: {2}this is the console\n$/,
    );
  });

  test('psql on the console can interrupt a PAUSE, which is undone', async () => {
    const server = await startServer();
    const { PATH } = process.env;
    // Without `timeout`, which would not pass the signal on to a process group of its own.
    const [, ...command] = place(server);
    const child = spawn(command[0] as string, [...command.slice(1), '-c', 'PAUSE'], { env: { PATH } });
    onTestFinished(() => void child.kill('SIGKILL'));
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    await server.pooler.waiting('pause all');
    child.kill('SIGINT');
    await once(child, 'close');
    expect(stderr).toContain('ERROR:  PAUSE was cancelled, and undone');
    expect([server.pooler.state, server.pooler.told]).toEqual(['active', ['pause all', 'resume all']]);
  });
});

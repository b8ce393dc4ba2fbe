// A pooler that was given a pgbouncer.ini says what PgBouncer says: to clients, in its log and on its console.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { hasSystemCalls } from '../../../src/net/system-calls.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCancelRequest } from '../../../src/wire/startup-packet.js';
import { type ConfigTree, startTestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { FaultProxy } from '../chaos/fault-proxy.js';
import { startupPacket } from '../raw/greeting.js';

let db: TestDatabase;
let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
});
afterAll(() => server.stop());

async function start(tree: ConfigTree = {}) {
  const lines: string[] = [];
  const log = (level: string, message: string): void => void lines.push(`${level} ${message}`);
  const admin = { compatibility: 'pgbouncer', ...tree['admin'] };
  const pooler = await startTestPooler(db, { ...tree, admin }, { host: { log } });
  return { pooler, lines };
}

async function failure(client: Promise<unknown>): Promise<string> {
  const error = await client.then(
    () => undefined,
    (thrown: unknown) => thrown as { severity?: string; code?: string; message: string },
  );
  return `${error?.severity} ${error?.code} ${error?.message}`;
}

test('a client that comes and goes is logged as PgBouncer logs it', async () => {
  const { pooler, lines } = await start();
  const client = await pooler.connect();
  await client.query('select 1');
  await client.end();
  await expect.poll(() => lines.join('\n')).toContain('client close request');
  const name = String.raw`C-0x[0-9a-f]+: ${db.database}/${db.user}@127\.0\.0\.1:\d+`;
  expect(lines.join('\n')).toMatch(
    new RegExp(`^info ${name} login attempt: db=${db.database} user=${db.user} tls=no replication=no$`, 'm'),
  );
  expect(lines.join('\n')).toMatch(
    /^info S-0x[0-9a-f]+: \S+ new connection to server \(from 127\.0\.0\.1:\d+\)$/m,
  );
  expect(lines.join('\n')).toMatch(
    new RegExp(`^info ${name} closing because: client close request \\(age=\\d+s\\)$`, 'm'),
  );
});

test('a database that there is not is refused, and logged, in PgBouncer’s words', async () => {
  const { pooler, lines } = await start();
  expect(await failure(pooler.connect({ database: 'nowhere' }))).toBe(
    'FATAL 08P01 no such database: nowhere',
  );
  expect(lines.join('\n')).toMatch(/closing because: no such database: nowhere \(age=0s\)/);
  expect(lines.join('\n')).toMatch(/^warn C-0x\S+ \S+ pooler error: no such database: nowhere$/m);
});

test('timeouts end the connection with 08P01 and the name that PgBouncer gives them', async () => {
  const { pooler } = await start({
    pooling: { poolSize: 1, poolMode: 'session' },
    timeouts: { queryTimeout: '600ms', queryWaitTimeout: '500ms' },
  });
  const holder = await pooler.connect();
  await holder.query('select 1');
  expect(await failure((await pooler.connect()).query('select 1'))).toBe('FATAL 08P01 query_wait_timeout');
  expect(await failure(holder.query('select pg_sleep(60)'))).toBe('FATAL 08P01 query timeout');
});

test('a client is told the pool mode and the number of prepared statements, as since 1.26', async () => {
  const { pooler } = await start({ pooling: { poolMode: 'transaction', maxPreparedStatements: 7 } });
  const client = new pg.Client({ ...pooler, host: '127.0.0.1' });
  const told = new Map<string, string>();
  (client as unknown as { connection: NodeJS.EventEmitter }).connection.on(
    'parameterStatus',
    (message: { parameterName: string; parameterValue: string }) =>
      told.set(message.parameterName, message.parameterValue),
  );
  await client.connect();
  await client.end();
  expect(told.get('pgbouncer.pool_mode')).toBe('transaction');
  expect(told.get('pgbouncer.max_prepared_statements')).toBe('7');
  expect(told.get('pgbouncer.version')).toMatch(/^1\.26\./);
});

test('max_prepared_statements, changed on the console, holds for connected clients and open server connections', async () => {
  const { pooler } = await start({
    pooling: { poolMode: 'transaction', poolSize: 1 },
    admin: { adminUsers: [db.user] },
  });
  const client = await pooler.connect();
  const ask = async (n: number) =>
    (await client.query({ name: `s${n}`, text: `select ${n}::int as n` })).rows[0];
  for (let n = 1; n <= 6; n++) await ask(n);
  const count = async () =>
    (await client.query('select count(*)::int as n from pg_prepared_statements')).rows[0].n;
  expect(await count()).toBe(6);
  const console = await pooler.connect({ database: 'pgbouncer' });
  await console.query('set max_prepared_statements = 2');
  expect(await ask(7)).toEqual({ n: 7 });
  expect(await count()).toBeLessThanOrEqual(3);
  for (let n = 1; n <= 6; n++) expect(await ask(n)).toEqual({ n });
  expect(await count()).toBeLessThanOrEqual(3);
});

test('idle server connections that RECONNECT replaces are closed because the configuration changed', async () => {
  const { pooler, lines } = await start({ admin: { adminUsers: [db.user] } });
  await (await pooler.connect()).query('select 1');
  await (await pooler.connect({ database: 'pgbouncer' })).query('reconnect');
  await expect.poll(() => lines.join('\n')).toMatch(/closing because: database configuration changed/);
  expect(lines.join('\n')).not.toContain('too many servers');
});

test('idle server connections that a changed configuration replaces are closed once RELOAD or SET is answered', async () => {
  const { pooler, lines } = await start({ admin: { adminUsers: [db.user] } });
  await (await pooler.connect()).query('select 1');
  const console = await pooler.connect({ database: 'pgbouncer' });
  await console.query('set server_tls_sslmode = allow');
  expect(lines.join('\n')).not.toMatch(/S-0x.* closing because/);
  await expect.poll(() => lines.join('\n')).toMatch(/S-0x.* closing because: database configuration changed/);
});

test('a client that needs a server does not wait for the ones that a changed configuration replaces', async () => {
  const { pooler } = await start({ admin: { adminUsers: [db.user] }, pooling: { poolSize: 1 } });
  const client = await pooler.connect();
  const pid = async () => (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
  const before = await pid();
  const console = await pooler.connect({ database: 'pgbouncer' });
  await console.query('set server_tls_sslmode = allow');
  expect(await pid()).not.toBe(before);
});

test('a client that has logged in and waits for a server too long is told that the server is down', async () => {
  const gone = await startPostgres();
  await gone.stop();
  const { pooler } = await start({
    databases: { [db.database]: { host: gone.host, port: gone.port } },
    timeouts: { clientLoginTimeout: '300ms' },
  });
  expect(await failure(pooler.connect())).toBe('FATAL 08P01 client_login_timeout (server down)');
});

test('settings that a server connection is given for its next client are logged as varcache lines, with verbose', async () => {
  const { pooler, lines } = await start({
    logging: { level: 'debug' },
    pooling: { poolMode: 'transaction', poolSize: 1, trackExtraParameters: ['enable_seqscan'] },
  });
  const one = await pooler.connect({ options: '-c enable_seqscan=off' });
  const other = await pooler.connect();
  for (let i = 0; i < 2; i++) await one.query('select 1');
  await other.query('select 1');
  await one.query("set session authorization 'postgres'");
  await other.query('select 1');
  const applied = lines.flatMap((line) => /varcache_apply: (.*)$/.exec(line)?.[1] ?? []);
  expect(applied).toEqual([
    "SET enable_seqscan='off';",
    'RESET enable_seqscan;',
    "SET enable_seqscan='off';",
    expect.stringContaining(`SET session_authorization='${db.user}';`),
  ]);
});

test('SET of a setting without an effect here is answered with a notice, and with an error for what is no number', async () => {
  const { pooler } = await start({ admin: { adminUsers: [db.user] } });
  const console = await pooler.connect({ database: 'pgbouncer' });
  const notices: (string | undefined)[] = [];
  console.on('notice', ({ message }) => void notices.push(message));
  await console.query('SET dns_max_ttl = 30');
  expect(notices).toEqual([expect.stringMatching(/^dns_max_ttl has no effect: /)]);
  await expect(console.query("SET dns_max_ttl = 'soon'")).rejects.toThrow('SET failed');
});

test('SET of ciphers that OpenSSL does not know is held with a notice, and the log has the error of TLS', async () => {
  const { pooler, lines } = await start({ admin: { adminUsers: [db.user] } });
  const console = await pooler.connect({ database: 'pgbouncer' });
  const notices: (string | undefined)[] = [];
  console.on('notice', ({ message }) => void notices.push(message));
  await console.query("SET client_tls13_ciphers = 'unknown'");
  await console.query("SET server_tls_ciphers = 'unknown'");
  const held = 'TLS settings could not be applied, still using old configuration';
  expect(notices).toEqual([held, held]);
  expect(lines).toContainEqual(
    expect.stringMatching(/^error TLS setup failed: failed to set the TLSv1.3 cipher suites: /),
  );
  expect(lines).toContainEqual(expect.stringMatching(/^error TLS setup failed: failed to set ciphers: /));
});

test('the console is among the pools, users and lists that it shows', async () => {
  const { pooler } = await start({ admin: { adminUsers: [db.user] } });
  const console = await pooler.connect({ database: 'pgbouncer' });
  const pools = (await console.query('SHOW POOLS')).rows;
  expect(pools).toMatchObject([
    { database: 'pgbouncer', user: 'pgbouncer', cl_active: 1, sv_active: 0, pool_mode: 'statement' },
  ]);
  const users = (await console.query('SHOW USERS')).rows;
  expect(users.map(({ name }) => name)).toContain('pgbouncer');
  const lists = (await console.query('SHOW LISTS')).rows;
  expect(lists).toContainEqual({ list: 'pools', items: 1 });
  expect(lists).toContainEqual({ list: 'users', items: users.length });
});

test('a pool that pool_idle_timeout forgets is logged', async () => {
  const { pooler, lines } = await start({
    timeouts: { poolIdleTimeout: '100ms' },
    pooling: { serverIdleTimeout: '100ms' },
  });
  const client = await pooler.connect();
  await client.query('select 1');
  await client.end();
  const line = `info cleaning up idle pool: ${db.database}/${db.user}`;
  await expect.poll(() => lines, { timeout: 20_000 }).toContain(line);
});

test('SHUTDOWN WAIT_FOR_SERVERS leaves idle clients alone until they ask, and ends when no server is in use', async () => {
  const { pooler, lines } = await start({
    admin: { adminUsers: [db.user] },
    pooling: { poolMode: 'transaction', poolSize: 1 },
  });
  const [busy, waiting, idle, asking] = await Promise.all([0, 1, 2, 3].map(() => pooler.connect()));
  await busy?.query('begin');
  await busy?.query('select 1');
  const waited = failure(waiting?.query('select 1') as Promise<unknown>);
  await (await pooler.connect({ database: 'pgbouncer' })).query('shutdown wait_for_servers');
  expect(await waited).toBe('FATAL 08P01 server shutting down');
  expect(await failure(asking?.query('select 1') as Promise<unknown>)).toBe(
    'FATAL 08P01 server shutting down',
  );
  const ended = new Promise<Error>((resolve) => void idle?.once('error', resolve));
  expect((await busy?.query('select 2 as two'))?.rows).toEqual([{ two: 2 }]);
  expect((await busy?.query('commit'))?.command).toBe('COMMIT');
  expect((await ended).message).toBe('database removed');
  await pooler.pooler.stopped;
  expect(lines.join('\n')).toMatch(/closing because: server shutting down \(age=/);
});

test('a cancel request that reaches no server within cancel_wait_timeout is let go, and logged', async () => {
  const proxy = await FaultProxy.start(db);
  onTestFinished(() => proxy.stop());
  const { host, port } = proxy;
  const { pooler, lines } = await start({
    databases: { [db.database]: { host, port, password: db.password } },
    timeouts: { cancelWaitTimeout: '50ms' },
  });
  const client = await pooler.connect();
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const slept = client.query('select pg_sleep(0.5)');
  await expect.poll(() => pooler.pooler.stats().pools[0]?.inUse).toBe(1);
  proxy.stallsCancelsMs = 60_000;
  const writer = new MessageWriter();
  const secret = Buffer.alloc(4);
  secret.writeInt32BE(secretKey);
  writeCancelRequest(writer, processID, secret);
  const cancel = connect(pooler.port, '127.0.0.1').resume();
  cancel.end(writer.take());
  await once(cancel, 'close');
  expect(lines.join('\n')).toMatch(
    /^info C-0x\S+ \(nodb\)\/\(nouser\)@127\.0\.0\.1:\d+ closing because: cancel_wait_timeout \(age=0s\)$/m,
  );
  await slept;
});

test('the names of statements may be longer than PostgreSQL allows, as they may with PgBouncer', async () => {
  const { pooler } = await start({ pooling: { poolMode: 'transaction' } });
  const client = await pooler.connect();
  const name = 'n'.repeat(16_384);
  // node-postgres warns of it.
  vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  expect((await client.query({ name, text: 'select $1::int as n', values: [1] })).rows).toEqual([{ n: 1 }]);
  expect((await client.query({ name, text: 'select $1::int as n', values: [2] })).rows).toEqual([{ n: 2 }]);
});

test('a second startup packet where a password is expected is refused and logged as by PgBouncer', async () => {
  const { pooler, lines } = await start({
    auth: { type: 'scram-sha-256' },
    users: { [db.user]: { password: db.password } },
  });
  const socket = connect(pooler.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const packet = startupPacket(StartupCode.version30, { user: db.user, database: db.database });
  socket.write(packet);
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  await once(socket, 'data');
  socket.write(packet);
  await once(socket, 'close');
  expect(Buffer.concat(received).toString('latin1')).toContain('client re-sent startup pkt');
  expect(lines.join('\n')).toMatch(/closing because: client re-sent startup pkt \(age=/);
});

test('an unsupported startup parameter is refused before the protocol is negotiated', async () => {
  const { pooler } = await start();
  const answer = (more: Record<string, string>) =>
    firstByte(
      pooler.port,
      startupPacket(StartupCode.version30, {
        user: db.user,
        database: db.database,
        '_pq_.some': '',
        ...more,
      }),
    );
  expect(await answer({})).toBe('v');
  expect(await answer({ enable_seqscan: 'off' })).toBe('E');
});

test.skipIf(!hasSystemCalls())(
  'the system user of the pooler is its administrator by the Unix socket as user pgbouncer, and no other is',
  async () => {
    const dir = mkdtempSync(join(tmpdir(), 'hg-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    // With port 0 there is no Unix socket.
    const { port } = await freePort();
    const { pooler, lines } = await start({ listen: { port }, unixSocket: { dir } });
    const console = (host: string) =>
      pooler.connect({ host, port, database: 'pgbouncer', user: 'pgbouncer' });
    const client = await console(dir);
    const { rows } = await client.query({ text: 'show clients', queryMode: 'simple' } as pg.QueryConfig);
    expect(rows).toHaveLength(1);
    expect(await failure(client.query('kill_client 4711'))).toBe('ERROR 08P01 client not found');
    expect(await failure(client.query('kill nowhere'))).toBe('ERROR 08P01 no such database: nowhere');
    expect(await failure(client.query('set max_client_conn = many'))).toBe('ERROR 08P01 SET failed');
    expect(await failure(console('127.0.0.1'))).toBe('FATAL 08P01 not allowed');
    await client.end();
    const left = new RegExp(
      String.raw`@unix\(${process.pid}\):${port} closing because: client close request`,
    );
    await expect.poll(() => lines.join('\n')).toMatch(left);
  },
);

/** Type of the first message that the pooler answers with. */
async function firstByte(port: number, packet: Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(packet);
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return bytes.toString('latin1', 0, 1);
}

async function freePort(): Promise<{ port: number }> {
  const { createServer } = await import('node:net');
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return { port };
}

test('a server connection for one use is not used up by learning the parameters of sessions', async () => {
  const { pooler, lines } = await start({ pooling: { serverMaxUses: 1 } });
  const client = await pooler.connect();
  await client.query('select 1');
  expect(lines.filter((line) => line.includes('new connection to server'))).toHaveLength(1);
});

test('a login to a database that there is not asks no server for the user', async () => {
  const auth = { type: 'md5', user: db.user };
  const { pooler, lines } = await start({ auth, users: { [db.user]: { password: 'secret' } } });
  const stranger = { database: 'nowhere', user: 'stranger', password: 'wrong' };
  expect(await failure(pooler.connect(stranger))).toMatch(/^FATAL 08P01 .*authentication failed$/);
  expect(lines.join('\n')).not.toContain('new connection to server');
});

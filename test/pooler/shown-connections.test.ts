// Connections on the console that have something special: those by Unix sockets, and those that are being opened.
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { LogDetails } from '../../src/pooler/log.js';
import { type ConfigTree, startTestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { ScriptedServer } from './session/scripted-server.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-unix-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function showOn(admin: pg.Client, what: string): Promise<Record<string, unknown>[]> {
  return (await admin.query(`SHOW ${what}`)).rows;
}

/** The server's own socket, as its clients on the same machine have it: in this folder. */
async function unixWayTo({ host, port }: TestDatabase, folder: string): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const towards = connect(port, host);
    for (const socket of [client, towards]) sockets.add(socket.on('error', () => {}));
    client.pipe(towards).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(join(folder, `.s.PGSQL.${port}`), resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

const ofUnix = (port: number) => ({ addr: 'unix', port, local_addr: 'unix', local_port: port });

test('A connection by a Unix socket of a client has the port that is listened on, on both sides, as with PgBouncer', async () => {
  const folder = temporaryFolder();
  const lines: [message: string, details: LogDetails | undefined][] = [];
  const tree: ConfigTree = {
    admin: { adminUsers: [db.user] },
    unixSocket: { dir: folder },
    listen: { port: await freePort() },
  };
  const pooler = await startTestPooler(db, tree, {
    host: { log: (_, message, details) => lines.push([message, details]) },
  });
  const admin = await pooler.connect({ database: 'headgate' });
  await pooler.connect({ host: folder });
  const { port } = pooler;
  const clients = await showOn(admin, 'CLIENTS');
  expect(clients.find(({ database }) => database === db.database)).toMatchObject(ofUnix(port));
  const sockets = await showOn(admin, 'SOCKETS');
  expect(sockets.find(({ type, addr }) => type === 'C' && addr === 'unix')).toMatchObject(ofUnix(port));
  expect(await showOn(admin, 'FDS')).toContainEqual(
    expect.objectContaining({ task: 'client', addr: 'unix', port }),
  );
  expect(lines).toContainEqual([
    'client connected',
    expect.objectContaining({ database: db.database, from: 'unix', port }),
  ]);
});

test('A connection by a Unix socket to a server has the port of that server', async () => {
  const folder = temporaryFolder();
  await unixWayTo(db, folder);
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [db.user] },
    databases: { [db.database]: { host: folder, port: db.port, password: db.password } },
  });
  const admin = await pooler.connect({ database: 'headgate' });
  await (await pooler.connect()).query('select 1');
  expect(await showOn(admin, 'SERVERS')).toMatchObject([ofUnix(db.port)]);
  const sockets = await showOn(admin, 'SOCKETS');
  expect(sockets.filter(({ type }) => type === 'S')).toMatchObject([ofUnix(db.port)]);
});

test('A server connection that is being opened is shown with the host that is tried, as long as that does not answer', async () => {
  const port = await silentServer();
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [db.user] },
    databases: { [db.database]: { host: '127.0.0.1', port } },
    pooling: { serverConnectLimit: 1, serverConnectTimeout: '20s' },
  });
  const admin = await pooler.connect({ database: 'headgate' });
  const began = Date.now();
  pooler.connect().catch(() => {});
  await expect.poll(() => showOn(admin, 'SERVERS')).toHaveLength(1);
  const ends = { addr: '127.0.0.1', port, local_addr: '', local_port: 0 };
  const whose = { user: db.user, database: db.database, link: '', remote_pid: 0, tls: '', close_needed: 0 };
  const [server] = await showOn(admin, 'SERVERS');
  expect(server).toMatchObject({ type: 'S', state: 'new', ...whose, ...ends });
  expect(Date.parse(String(server?.connect_time).replace(' UTC', 'Z'))).toBeGreaterThanOrEqual(
    Math.floor(began / 1_000) * 1_000,
  );
  const sockets = await showOn(admin, 'SOCKETS');
  expect(sockets.filter(({ type }) => type === 'S')).toMatchObject([
    { state: 'sv_login', id: server?.id, ...whose, ...ends },
  ]);
  expect(await showOn(admin, 'LISTS')).toContainEqual({ list: 'used_servers', items: 1 });
  expect(await showOn(admin, 'POOLS')).toMatchObject([{ sv_login: 1 }]);
});

test('A server connection that is being opened has both ends once the server has answered, and keeps its id when it is open', async () => {
  const server = await ScriptedServer.start({ answer: (text) => text !== 'wait' });
  const { host, port, database, user } = server.db;
  const pooler = await startTestPooler(server.db, {
    admin: { adminUsers: [user] },
    databases: { [database]: { host, port, connectQuery: 'wait' } },
  });
  const admin = await pooler.connect({ database: 'headgate' });
  const coming = pooler.connect();
  await expect.poll(() => server.connections[0]?.queries).toEqual(['wait']);
  const [opening] = await showOn(admin, 'SERVERS');
  expect(opening).toMatchObject({ state: 'new', addr: '127.0.0.1', port, local_addr: '127.0.0.1' });
  expect(opening?.local_port).toBe(server.connection.socket.remotePort);
  server.connection.done('SELECT 0');
  await coming;
  const servers = await showOn(admin, 'SERVERS');
  expect(servers).toMatchObject([{ id: opening?.id, state: 'idle', ptr: opening?.ptr }]);
});

test('A server connection that is being opened is shown no more when no client wants it, or when it could not be opened', async () => {
  const server = await ScriptedServer.start({
    refusal: { severity: 'FATAL', code: '3D000', message: 'no such database' },
  });
  const pooler = await startTestPooler(server.db, { admin: { adminUsers: [server.db.user] } });
  const admin = await pooler.connect({ database: 'headgate' });
  await expect(pooler.connect()).rejects.toThrow('no such database');
  await expect.poll(() => showOn(admin, 'SERVERS')).toEqual([]);
});

/** Takes connections, and says nothing. */
async function silentServer(): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A Unix socket has it in its name, and so it must be known. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('a client whose login takes a server counts among those that wait', async () => {
  const pooler = await startTestPooler(db, { admin: { adminUsers: [db.user] } });
  const admin = await pooler.connect({ database: 'headgate' });
  await admin.query('PAUSE');
  const comes = pooler.connect({ application_name: 'early' });
  await expect
    .poll(async () => (await showOn(admin, 'POOLS')).find(({ database }) => database === db.database))
    .toMatchObject({ cl_waiting: 1, cl_active: 0 });
  const [row] = (await showOn(admin, 'CLIENTS')).filter(({ state }) => state === 'waiting');
  expect(row).toMatchObject({ database: db.database, user: db.user, application_name: 'early' });
  expect(await showOn(admin, 'LISTS')).toContainEqual({ list: 'login_clients', items: 0 });
  await admin.query('RESUME');
  expect((await (await comes).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

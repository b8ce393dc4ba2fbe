// TLS on both sides of a real pooler: logins that are bound to it, and certificates that are replaced while clients are there.
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, TLSSocket, connect as tlsConnect } from 'node:tls';
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { LogDetails } from '../../src/pooler/log.js';
import { sslRequest } from '../../src/wire/fixed-messages.js';
import {
  type ConfigTree,
  poolerConfig,
  startTestPooler,
  type TestPooler,
  treeFor,
} from '../support/pooler.js';
import type { TestDatabase } from '../support/postgres.js';
import { startTlsPostgres, type TlsPostgres, tlsPostgresCa } from '../support/tls-postgres.js';
import { has, run } from './clients/programs.js';

const pems = join(import.meta.dirname, '../net/certificates');
const hba = `
hostssl  all  bound   127.0.0.1/32  scram-sha-256
host     all  clear   127.0.0.1/32  password
host     all  all     127.0.0.1/32  scram-sha-256
`;
const password = 'pencil';

let server: TlsPostgres;
let db: TestDatabase;
beforeAll(async () => {
  server = await startTlsPostgres(hba, [
    `create role bound login password '${password}'`,
    `create role clear login password '${password}'`,
  ]);
  db = { ...server, drop: () => server.stop() };
});
afterAll(() => db.drop());

/** A folder with the certificate of a server, which the test can replace. */
class CertificateFolder {
  readonly folder = mkdtempSync(join(tmpdir(), 'headgate-tls-'));

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
    this.put('server');
  }

  put(name: 'server' | 'renewed', which: readonly string[] = ['key', 'pem']): void {
    for (const end of which) this.write(`pooler.${end}`, readFileSync(join(pems, `${name}.${end}`), 'utf8'));
  }

  /** Whole or not at all. */
  write(file: string, text: string): void {
    writeFileSync(join(this.folder, `${file}.new`), text);
    renameSync(join(this.folder, `${file}.new`), join(this.folder, file));
  }

  path(file: string): string {
    return join(this.folder, file);
  }

  tree(some: ConfigTree = {}): ConfigTree {
    return {
      clientTls: { mode: 'require', keyFile: this.path('pooler.key'), certFile: this.path('pooler.pem') },
      auth: { type: 'scram-sha-256' },
      users: { bound: { password } },
      admin: { adminUsers: ['bound'] },
      databases: { [db.database]: { host: db.host, port: db.port } },
      ...some,
    };
  }
}

const withTls = { user: 'bound', password, ssl: { ca: readFileSync(join(pems, 'ca.pem'), 'utf8') } };

/** Owner of the certificate that a new client gets. */
async function shownBy({ port }: TestPooler): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(sslRequest);
  await once(socket, 'data');
  const secure = tlsConnect({ socket, rejectUnauthorized: false });
  await once(secure, 'secureConnect');
  const name = secure.getPeerCertificate().subject.CN;
  secure.destroy();
  return String(name);
}

const first = 'Headgate test server';
const second = 'Headgate renewed test server';

test.runIf(has('psql'))(
  'A client that insists on channel binding is let in by the pooler: psql with channel_binding=require',
  async () => {
    const pooler = await startTestPooler(db, new CertificateFolder().tree());
    const attempt = (options: string) =>
      run('psql', ['-X', '-A', '-t', '-c', 'select 1', `host=127.0.0.1 ${options}`], {
        ...pooler,
        user: 'bound',
        password,
      });
    const settings = `sslmode=verify-full sslrootcert=${join(pems, 'ca.pem')} channel_binding=require`;
    expect(await attempt(settings)).toMatchObject({ code: 0, stdout: '1\n' });
    expect(await attempt('sslmode=require channel_binding=disable')).toMatchObject({
      code: 0,
      stdout: '1\n',
    });
    expect((await attempt('sslmode=disable')).code).not.toBe(0);
  },
);

test('A client that insists on channel binding is let in after the certificate was replaced, bound to the new one', async () => {
  const files = new CertificateFolder();
  const pooler = await startTestPooler(db, files.tree());
  files.put('renewed');
  await pooler.pooler.reload(poolerConfig(treeFor(db, files.tree())));
  const client = await pooler.connect({ ...withTls, enableChannelBinding: true } as pg.ClientConfig);
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

const serverTls = { mode: 'verify-ca', caFile: tlsPostgresCa };

test('The login at the server goes through TLS, which the server sees', async () => {
  const { connect: connectTo } = await startTestPooler(db, new CertificateFolder().tree({ serverTls }));
  const client = await connectTo(withTls);
  const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
  expect(rows).toEqual([{ ssl: true }]);
});

test('The login at the server is bound to the certificate of the server: a man in the middle with another one is refused', async () => {
  const port = await someoneInTheMiddle();
  const tree = new CertificateFolder().tree({
    serverTls: { mode: 'require' },
    databases: { [db.database]: { host: db.host, port, user: 'bound', password } },
    timeouts: { queryWaitTimeout: '2s' },
  });
  const { connect: connectTo } = await startTestPooler(db, tree);
  await expect(connectTo(withTls)).rejects.toThrow('channel binding');
});

test('The login at the server sends no password in clear text without TLS, unless that is allowed', async () => {
  const tree = (allowUnencryptedPasswords: boolean): ConfigTree => ({
    serverTls: { mode: 'disable' },
    auth: { allowUnencryptedPasswords },
    databases: { [db.database]: { host: db.host, port: db.port, user: 'clear', password } },
  });
  const careful = await startTestPooler(db, tree(false));
  await expect(careful.connect()).rejects.toThrow('the connection is not encrypted');
  const careless = await startTestPooler(db, tree(true));
  expect((await (await careless.connect()).query('select current_user')).rows).toEqual([
    { current_user: 'clear' },
  ]);
});

test('Certificates that are replaced are used after a reload, and clients that are there go on', async () => {
  const files = new CertificateFolder();
  const pooler = await startTestPooler(db, files.tree(), {
    host: { readConfig: () => poolerConfig(treeFor(db, files.tree())) },
  });
  const early = await pooler.connect(withTls);
  await early.query('begin');
  await early.query('create temp table mine as select 7 as n');
  expect(await shownBy(pooler)).toBe(first);
  files.put('renewed');
  const admin = await pooler.connect({ ...withTls, database: 'headgate' });
  await admin.query('RELOAD');
  expect(await shownBy(pooler)).toBe(second);
  expect((await early.query('select n from mine')).rows).toEqual([{ n: 7 }]);
  await early.query('commit');
});

test('Certificates that are replaced are used without a reload, as soon as they are there', async () => {
  const files = new CertificateFolder();
  const pooler = await startTestPooler(db, files.tree());
  const early = await pooler.connect(withTls);
  files.put('renewed');
  await vi.waitFor(async () => expect(await shownBy(pooler)).toBe(second), {
    timeout: 10_000,
    interval: 50,
  });
  expect((await early.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('Certificates that are replaced are not used as long as the key is not that of the certificate, and the log says why', async () => {
  const files = new CertificateFolder();
  const lines: [message: string, details: LogDetails | undefined][] = [];
  const pooler = await startTestPooler(db, files.tree(), {
    host: { log: (_, message, details) => lines.push([message, details]) },
  });
  files.put('renewed', ['pem']);
  await vi.waitFor(
    () => expect(lines.map(([message]) => message).join()).toContain('their former content stays in use'),
    { timeout: 10_000, interval: 20 },
  );
  // Unchanged files are not read again.
  expect(lines.filter(([message]) => /^files (?:read again|not usable)/.test(message))).toHaveLength(1);
  expect(JSON.stringify(lines)).toContain('key values mismatch');
  expect(await shownBy(pooler)).toBe(first);
  files.put('renewed', ['key']);
  await vi.waitFor(async () => expect(await shownBy(pooler)).toBe(second), {
    timeout: 10_000,
    interval: 50,
  });
});

test('Certificates that are replaced of the authority for servers are used for server connections that are opened next', async () => {
  const files = new CertificateFolder();
  copyFileSync(join(pems, 'other-ca.pem'), files.path('roots.pem'));
  const tree = files.tree({
    serverTls: { mode: 'verify-ca', caFile: files.path('roots.pem') },
    timeouts: { queryWaitTimeout: '500ms' },
    pooling: { serverLoginRetry: '50ms' },
  });
  const pooler = await startTestPooler(db, tree);
  await expect(pooler.connect(withTls)).rejects.toThrow(/certificate|no server connection/);
  files.write('roots.pem', readFileSync(tlsPostgresCa, 'utf8'));
  await vi.waitFor(() => pooler.connect(withTls), { timeout: 10_000, interval: 50 });
});

test('Certificates that are replaced that are bad do not hold up a reload of the rest: it is refused as a whole', async () => {
  const files = new CertificateFolder();
  copyFileSync(tlsPostgresCa, files.path('roots.pem'));
  const config = (some: ConfigTree = {}) =>
    poolerConfig(
      treeFor(db, files.tree({ serverTls: { mode: 'verify-ca', caFile: files.path('roots.pem') }, ...some })),
    );
  const pooler = await startTestPooler(
    db,
    files.tree({ serverTls: { mode: 'verify-ca', caFile: tlsPostgresCa } }),
  );
  const next = config({ limits: { maxClientConn: 7 } });
  rmSync(files.path('roots.pem'));
  await expect(pooler.pooler.reload(next)).rejects.toThrow("roots.pem can't be read");
  expect(pooler.pooler.view.config.limits.maxClientConn).toBe(1_000);
  await (await pooler.connect(withTls)).query('select 1');
});

async function inHandshake({ port }: TestPooler): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.write(sslRequest);
  await once(socket, 'data');
  return socket;
}

test('A client in the middle of the TLS handshake does not keep a pooler that stops from ending', async () => {
  const pooler = await startTestPooler(db, new CertificateFolder().tree());
  const socket = await inHandshake(pooler);
  const closed = once(socket, 'close');
  await pooler.stop();
  await closed;
});

test('A client in the middle of the TLS handshake can be sent away from the console', async () => {
  const pooler = await startTestPooler(db, new CertificateFolder().tree());
  const admin = await pooler.connect({ ...withTls, database: 'headgate' });
  const socket = await inHandshake(pooler);
  const closed = once(socket, 'close');
  const [late] = pooler.pooler.view.clients().filter(({ state }) => state === 'login');
  await admin.query(`KILL_CLIENT ${late?.id}`);
  await closed;
});

test('The list of users is read again when it has changed', async () => {
  const files = new CertificateFolder();
  files.write('userlist.txt', `"bound" "${password}"\n`);
  const tree = files.tree({
    users: {},
    auth: { type: 'scram-sha-256', file: files.path('userlist.txt'), failedLoginDelay: 0 },
    databases: { [db.database]: { host: db.host, port: db.port, user: 'bound', password } },
  });
  const pooler = await startTestPooler(db, tree);
  await pooler.connect(withTls);
  await expect(pooler.connect({ ...withTls, user: 'newcomer' })).rejects.toThrow('authentication failed');
  files.write('userlist.txt', `"bound" "${password}"\n"newcomer" "${password}"\n`);
  await vi.waitFor(() => pooler.connect({ ...withTls, user: 'newcomer' }), {
    timeout: 10_000,
    interval: 50,
  });
});

test('Rules are not watched where they are not used', async () => {
  const files = new CertificateFolder();
  files.write('hba.conf', 'host all all all reject\n');
  const auth = { type: 'scram-sha-256', hbaFile: files.path('hba.conf') };
  const lines: string[] = [];
  const pooler = await startTestPooler(db, files.tree({ auth }), {
    host: { log: (_, message) => lines.push(message) },
  });
  files.write('hba.conf', 'nonsense\n');
  // All files are looked at together, certificates first: after the second time, rules have been looked at once.
  for (const [name, shown] of [
    ['renewed', second],
    ['server', first],
  ] as const) {
    files.put(name);
    await vi.waitFor(async () => expect(await shownBy(pooler)).toBe(shown), {
      timeout: 10_000,
      interval: 50,
    });
  }
  await pooler.connect(withTls);
  expect(lines.filter((line) => line.startsWith('users and rules not reloaded'))).toEqual([]);
});

test('A client without TLS is not asked for its password in clear text, unless that is allowed', async () => {
  const tree = (allowUnencryptedPasswords: boolean): ConfigTree => ({
    auth: { type: 'plain', allowUnencryptedPasswords },
    users: { bound: { password } },
    databases: { [db.database]: { host: db.host, port: db.port } },
  });
  const careful = await startTestPooler(db, tree(false));
  await expect(careful.connect({ user: 'bound', password })).rejects.toThrow(
    'the connection is not encrypted',
  );
  const careless = await startTestPooler(db, tree(true));
  await careless.connect({ user: 'bound', password });
});

/** Ends TLS with a certificate of its own, and speaks to the server by TLS, too. */
async function someoneInTheMiddle(): Promise<number> {
  const sockets = new Set<Socket>();
  const secureContext = createSecureContext({
    key: readFileSync(join(pems, 'mallory.key')),
    cert: readFileSync(join(pems, 'mallory.pem')),
  });
  const middle = createServer(async (client) => {
    sockets.add(client);
    client.on('error', () => {});
    await once(client, 'data');
    client.write('S');
    const towardsClient = new TLSSocket(client, { isServer: true, secureContext });
    const plain = connect(db.port, db.host);
    sockets.add(plain);
    plain.on('error', () => {});
    await once(plain, 'connect');
    plain.write(sslRequest);
    await once(plain, 'data');
    const towardsServer = tlsConnect({ socket: plain, rejectUnauthorized: false });
    for (const socket of [towardsClient, towardsServer]) socket.on('error', () => {});
    towardsClient.pipe(towardsServer);
    towardsServer.pipe(towardsClient);
  });
  middle.listen(0, '127.0.0.1');
  await once(middle, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    middle.close();
  });
  return (middle.address() as AddressInfo).port;
}

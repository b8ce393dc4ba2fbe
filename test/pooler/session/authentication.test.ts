import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { sslRequest } from '../../../src/wire/fixed-messages.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCancelRequest } from '../../../src/wire/startup-packet.js';
import { ca, material, pem } from '../../net/certificates.js';
import { portWhereNobodyListens } from '../../support/faulty-server.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { greet, nextByte, open, readGreeting, startupPacket } from '../raw/greeting.js';

/** A server of its own: roles are the server's, and TLS has to be switched on. */
let server: Awaited<ReturnType<typeof startPostgres>>;
let db: TestDatabase;
let admin: pg.Client;
const secrets = new Map<string, string>();

beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
  admin = new pg.Client({ connectionString: db.url });
  await admin.connect();
  await admin.query("create role scrammy login password 'open sesame'");
  await admin.query("create role asker login superuser password 'ask'");
  await admin.query("set password_encryption = 'md5'");
  await admin.query("create role oldie login password 'md5 secret'");
  await admin.query('reset password_encryption');
  const { rows } = await admin.query(
    'select rolname, rolpassword from pg_authid where rolpassword is not null',
  );
  for (const { rolname, rolpassword } of rows) secrets.set(rolname, rolpassword);
  await switchTlsOn();
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

async function switchTlsOn(): Promise<void> {
  const { uid, gid } = statSync(server.folder);
  for (const [name, text] of Object.entries({
    'server.crt': pem('server.pem'),
    'server.key': pem('server.key'),
  })) {
    const file = join(server.folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    chownSync(file, uid, gid);
    await admin.query(`alter system set ssl_${name === 'server.crt' ? 'cert' : 'key'}_file = '${file}'`);
  }
  await admin.query('alter system set ssl = on');
  await admin.query('select pg_reload_conf()');
  while ((await admin.query('show ssl')).rows[0].ssl !== 'on');
}

/** The server as it is, without a password in the configuration. */
function bare(more: object = {}): Record<string, object> {
  return { [db.database]: { host: db.host, port: db.port, ...more } };
}

function userList(...users: string[]): Record<string, string> {
  return { 'users.txt': users.map((user) => `"${user}" "${secrets.get(user)}"`).join('\n') };
}

const files = { keyFile: 'server.key', certFile: 'server.pem' };
const certificates = {
  'server.pem': material('server').cert,
  'server.key': material('server').key,
  'ca.pem': ca,
};

async function whoIs(pooler: TestPooler, options: pg.ClientConfig): Promise<string> {
  const client = await pooler.connect(options);
  const { rows } = await client.query('select current_user as who');
  return rows[0].who;
}

test('a client proves who it is by SCRAM, with a secret copied from the server, and is let in there by the same proof', async () => {
  const tree = { auth: { type: 'scram-sha-256', file: 'users.txt' }, databases: bare() };
  const pooler = await startTestPooler(db, tree, { files: userList('scrammy') });
  expect(await whoIs(pooler, { user: 'scrammy', password: 'open sesame' })).toBe('scrammy');
  await expect(pooler.connect({ user: 'scrammy', password: 'wrong' })).rejects.toMatchObject({
    code: '28P01',
  });
});

test('a client proves who it is by md5, with the hash that the server has too', async () => {
  const tree = { auth: { type: 'md5', file: 'users.txt' }, databases: bare() };
  const pooler = await startTestPooler(db, tree, { files: userList('oldie', 'scrammy') });
  expect(await whoIs(pooler, { user: 'scrammy', password: 'open sesame' })).toBe('scrammy');
  await expect(pooler.connect({ user: 'oldie', password: 'wrong' })).rejects.toMatchObject({
    code: '28P01',
  });
});

test('a client proves who it is by a password in the configuration, which is good for the server too', async () => {
  const pooler = await startTestPooler(db, {
    auth: { type: 'scram-sha-256' },
    users: { scrammy: { password: 'open sesame' } },
    databases: bare(),
  });
  expect(await whoIs(pooler, { user: 'scrammy', password: 'open sesame' })).toBe('scrammy');
});

test('a client proves who it is by a secret that the server is asked for', async () => {
  const pooler = await startTestPooler(db, {
    auth: { type: 'scram-sha-256', user: 'asker' },
    users: { asker: { password: 'ask' } },
    databases: bare(),
  });
  expect(await whoIs(pooler, { user: 'scrammy', password: 'open sesame' })).toBe('scrammy');
  await expect(pooler.connect({ user: 'scrammy', password: 'wrong' })).rejects.toMatchObject({
    code: '28P01',
  });
  await expect(pooler.connect({ user: 'nobody', password: 'x' })).rejects.toMatchObject({ code: '28P01' });
  // After a change of the password, the new one is good at once.
  await admin.query("create role changing login password 'first'");
  expect(await whoIs(pooler, { user: 'changing', password: 'first' })).toBe('changing');
  await admin.query("alter role changing password 'second'");
  await expect
    .poll(
      async () => {
        try {
          return await whoIs(pooler, { user: 'changing', password: 'second' });
        } catch {
          return 'refused';
        }
      },
      { timeout: 10_000 },
    )
    .toBe('changing');
  await expect(pooler.connect({ user: 'changing', password: 'first' })).rejects.toMatchObject({
    code: '28P01',
  });
});

test('a client logs in under any name, where one user of the server is for all', async () => {
  const pooler = await startTestPooler(db, {
    auth: { type: 'any' },
    databases: bare({ user: 'scrammy', password: 'open sesame' }),
  });
  expect(await whoIs(pooler, { user: 'whoever' })).toBe('scrammy');
});

test('a client proves who it is as the rules of the HBA file say', async () => {
  const rules = [
    'host all scrammy 127.0.0.1/32 scram-sha-256',
    'host all oldie all reject',
    'host all postgres all trust',
  ];
  const tree = {
    auth: { type: 'hba', hbaFile: 'hba.conf', file: 'users.txt' },
    databases: bare({ user: 'scrammy', password: 'open sesame' }),
  };
  const pooler = await startTestPooler(db, tree, {
    files: { 'hba.conf': rules.join('\n'), ...userList('scrammy', 'oldie', 'postgres') },
  });
  expect(await whoIs(pooler, { user: 'scrammy', password: 'open sesame' })).toBe('scrammy');
  expect(await whoIs(pooler, { user: 'postgres' })).toBe('scrammy');
  for (const user of ['oldie', 'alice'])
    await expect(pooler.connect({ user, password: 'x' })).rejects.toMatchObject({ code: '28000' });
});

test.each(['pgbouncer', 'headgate'])(
  'a client proves who it is as rules for %s say, by whichever name the console is called',
  async (name) => {
    const pooler = await startTestPooler(
      db,
      {
        auth: { type: 'hba', hbaFile: 'hba.conf', file: 'users.txt' },
        admin: { adminUsers: ['postgres'] },
      },
      {
        files: {
          'hba.conf': `host ${name} all all reject\nhost all all all trust`,
          ...userList('postgres'),
        },
      },
    );
    for (const database of ['pgbouncer', 'headgate'])
      await expect(pooler.connect({ user: 'postgres', database })).rejects.toMatchObject({ code: '28000' });
    expect(await whoIs(pooler, { user: 'postgres' })).toBe('postgres');
  },
);

test.skipIf(process.platform === 'win32').each(['pgbouncer', 'headgate'])(
  'a client proves who it is through a Unix socket as rules for %s say, by whichever name the console is called',
  async (name) => {
    const dir = mkdtempSync(join(tmpdir(), 'hg-hba-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const port = await portWhereNobodyListens();
    const rules = `local ${name} all reject\nlocal all all trust\nhost all all all trust`;
    const pooler = await startTestPooler(
      db,
      {
        listen: { port },
        unixSocket: { dir },
        auth: { type: 'hba', hbaFile: 'hba.conf', file: 'users.txt' },
        admin: { adminUsers: ['postgres'] },
      },
      { files: { 'hba.conf': rules, ...userList('postgres') } },
    );
    for (const database of ['pgbouncer', 'headgate']) {
      const local = { user: 'postgres', database, host: dir };
      await expect(pooler.connect(local)).rejects.toMatchObject({ code: '28000' });
      const admin = await pooler.connect({ user: 'postgres', database });
      expect((await admin.query('SHOW VERSION')).rows).toHaveLength(1);
    }
    expect(await whoIs(pooler, { user: 'postgres', host: dir })).toBe('postgres');
  },
);

test.each(['pgbouncer', 'headgate'])(
  'a client proves who it is as rules for %s say, and no word for replication goes around them',
  async (name) => {
    const rules = `host ${name} all all reject\nhost all all all trust\nhost replication all all trust`;
    const pooler = await startTestPooler(
      db,
      {
        auth: { type: 'hba', hbaFile: 'hba.conf', file: 'users.txt' },
        admin: { adminUsers: ['postgres'] },
      },
      { files: { 'hba.conf': rules, ...userList('postgres') } },
    );
    for (const database of ['pgbouncer', 'headgate'])
      for (const replication of ['database', 'true', '1', 'on', 'yes', 'DATABASE', 'false', 'off']) {
        const packet = startupPacket(0x3_0000, { user: 'postgres', database, replication });
        const { types, error } = await greet(pooler, packet);
        expect({ replication, types, severity: error?.severity }).toEqual({
          replication,
          types: 'E',
          severity: 'FATAL',
        });
      }
  },
);

test('a client proves who it is and is told the same if it does not exist, or has a wrong password', async () => {
  const tree = { auth: { type: 'scram-sha-256', file: 'users.txt' }, databases: bare() };
  const pooler = await startTestPooler(db, tree, { files: userList('scrammy') });
  const errors = await Promise.all(
    ['scrammy', 'no such user'].map((user) =>
      pooler.connect({ user, password: 'wrong' }).catch(({ code, message, severity }) => ({
        code,
        severity,
        message: message.replace(user, 'X'),
      })),
    ),
  );
  expect(errors[0]).toEqual(errors[1]);
});

test('a client proves who it is before it learns whether its database exists', async () => {
  const tree = { auth: { type: 'scram-sha-256', file: 'users.txt' }, databases: bare() };
  const pooler = await startTestPooler(db, tree, { files: userList('scrammy') });
  const client = { user: 'scrammy', database: 'no_such_database' };
  await expect(pooler.connect({ ...client, password: 'wrong' })).rejects.toMatchObject({ code: '28P01' });
  await expect(pooler.connect({ ...client, password: 'open sesame' })).rejects.toMatchObject({
    code: '3D000',
  });
});

test('a client proves who it is and is told if the server does not believe the pooler', async () => {
  const pooler = await startTestPooler(db, {
    auth: { type: 'trust' },
    databases: bare({ user: 'scrammy', password: 'wrong' }),
    pooling: { serverLoginRetry: '10ms' },
  });
  await expect(pooler.connect()).rejects.toMatchObject({ code: '28P01', severity: 'FATAL' });
  const none = await startTestPooler(db, {
    auth: { type: 'trust' },
    databases: bare(),
    pooling: { serverLoginRetry: '10ms' },
  });
  await expect(none.connect({ user: 'scrammy' })).rejects.toMatchObject({
    code: '08001',
    severity: 'FATAL',
  });
});

const tls = { clientTls: { mode: 'require', ...files, caFile: 'ca.pem' } };

test('TLS with clients is offered, and a client without TLS is refused where it is required', async () => {
  const pooler = await startTestPooler(db, tls, { files: certificates });
  const client = await pooler.connect({ ssl: { ca, servername: 'localhost' } });
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await expect(pooler.connect({ ssl: false })).rejects.toMatchObject({ code: '28000' });
  for (let n = 0; n < 50; n++)
    expect((await client.query('select $1::int as n, repeat($2, 1000) as t', [n, 'x'])).rows[0].n).toBe(n);
  const { rows } = await client.query("select repeat('x', 2000000) as long");
  expect(rows[0].long).toHaveLength(2_000_000);
});

test('TLS with clients can come first, with the protocol named; otherwise it ends', async () => {
  const pooler = await startTestPooler(db, tls, { files: certificates });
  const packet = startupPacket(StartupCode.version30, { user: db.user, database: db.database });
  const direct = connectTls({
    host: '127.0.0.1',
    port: pooler.port,
    ca,
    servername: 'localhost',
    ALPNProtocols: ['postgresql'],
  });
  await new Promise((resolve) => direct.once('secureConnect', resolve));
  direct.write(packet);
  expect((await readGreeting(direct)).types.endsWith('Z')).toBe(true);
  const nameless = connectTls({ host: '127.0.0.1', port: pooler.port, ca, servername: 'localhost' });
  nameless.on('error', () => {});
  await new Promise((resolve) => nameless.once('close', resolve));
});

test('TLS with clients must not have anything behind the wish for it', async () => {
  const pooler = await startTestPooler(db, tls, { files: certificates });
  const packet = startupPacket(StartupCode.version30, { user: db.user, database: db.database });
  const { error } = await greet(pooler, Buffer.concat([sslRequest, packet]));
  expect(error?.code).toBe('08P01');
  // In two pieces it is the same.
  const socket = await open(pooler);
  socket.write(sslRequest);
  socket.write(packet);
  expect(await nextByte(socket)).toMatch(/^(?:S|closed|E)/);
  socket.destroy();
});

test('TLS with clients carries passwords in clear text, which are not asked for otherwise', async () => {
  const plain = {
    clientTls: { mode: 'prefer', ...files },
    auth: { type: 'plain', file: 'users.txt' },
    databases: bare(),
  };
  const pooler = await startTestPooler(db, plain, { files: { ...certificates, ...userList('scrammy') } });
  const ssl = { ca, servername: 'localhost' };
  expect(await whoIs(pooler, { user: 'scrammy', password: 'open sesame', ssl })).toBe('scrammy');
  await expect(pooler.connect({ user: 'scrammy', password: 'open sesame' })).rejects.toMatchObject({
    code: '28000',
  });
});

test.each([
  ['a token of 2,000 characters', 'plain', 2_000],
  ['a password of 60,000 characters, which takes several reads', 'plain', 60_000],
  ['a long password that is only proved to be known', 'scram-sha-256', 2_000],
])('TLS with clients carries %s', async (_name, type, length) => {
  const password = 'x'.repeat(length);
  const tree = {
    clientTls: { mode: 'prefer', ...files },
    auth: { type, file: 'users.txt' },
    databases: bare({ user: 'scrammy', password: 'open sesame' }),
  };
  const pooler = await startTestPooler(db, tree, {
    files: { ...certificates, 'users.txt': `"long" "${password}"` },
  });
  const ssl = { ca, servername: 'localhost' };
  expect(await whoIs(pooler, { user: 'long', password, ssl })).toBe('scrammy');
  await expect(pooler.connect({ user: 'long', password: `${password}y`, ssl })).rejects.toMatchObject({
    code: '28P01',
  });
});

test('TLS with clients proves by a certificate who the client is', async () => {
  const tree = {
    clientTls: { mode: 'verify-full', ...files, caFile: 'ca.pem' },
    auth: { type: 'cert' },
    databases: bare({ user: 'scrammy', password: 'open sesame' }),
  };
  const pooler = await startTestPooler(db, tree, { files: certificates });
  const ssl = { ca, servername: 'localhost' };
  expect(await whoIs(pooler, { user: 'alice', ssl: { ...ssl, ...material('alice') } })).toBe('scrammy');
  await expect(pooler.connect({ user: 'bob', ssl: { ...ssl, ...material('alice') } })).rejects.toMatchObject({
    code: '28000',
  });
  await expect(pooler.connect({ user: 'alice', ssl: { ...ssl, ...material('mallory') } })).rejects.toThrow();
  await expect(pooler.connect({ user: 'alice', ssl })).rejects.toThrow();
});

test('TLS with clients carries requests to cancel, too', async () => {
  const pooler = await startTestPooler(db, tls, { files: certificates });
  const client = await pooler.connect({ ssl: { ca, servername: 'localhost' } });
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const answer = client.query('select pg_sleep(30), 41');
  await expect
    .poll(
      async () =>
        (
          await admin.query(
            "select 1 from pg_stat_activity where query like '%(30), 41' and state = 'active'",
          )
        ).rows.length,
    )
    .toBe(1);
  const key = Buffer.alloc(4);
  key.writeInt32BE(secretKey | 0);
  const writer = new MessageWriter();
  writeCancelRequest(writer, processID, key);
  const socket = connectTls({
    host: '127.0.0.1',
    port: pooler.port,
    ca,
    servername: 'localhost',
    ALPNProtocols: ['postgresql'],
  });
  socket.on('error', () => {});
  socket.write(writer.take());
  await expect(answer).rejects.toMatchObject({ code: '57014' });
});

async function isEncrypted(pooler: TestPooler): Promise<boolean> {
  const { rows } = await (await pooler.connect()).query(
    'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
  );
  return rows[0].ssl;
}

test('TLS with the server is used if the server has it, and not if it is switched off', async () => {
  expect(await isEncrypted(await startTestPooler(db))).toBe(true);
  expect(await isEncrypted(await startTestPooler(db, { serverTls: { mode: 'disable' } }))).toBe(false);
  expect(await isEncrypted(await startTestPooler(db, { serverTls: { mode: 'allow' } }))).toBe(false);
});

test('TLS with the server is verified, by who signed the certificate and by the name in it', async () => {
  const verified = await startTestPooler(
    db,
    { serverTls: { mode: 'verify-full', caFile: 'ca.pem' } },
    { files: certificates },
  );
  expect(await isEncrypted(verified)).toBe(true);
  const wrong = await startTestPooler(
    db,
    { serverTls: { mode: 'verify-ca', caFile: 'other.pem' }, pooling: { serverLoginRetry: '10ms' } },
    { files: { 'other.pem': pem('other-ca.pem') } },
  );
  await expect(wrong.connect()).rejects.toMatchObject({ code: '08001' });
});

test('TLS with the server can come first, and carries requests to cancel', async () => {
  const pooler = await startTestPooler(db, { serverTls: { mode: 'require', negotiation: 'direct' } });
  expect(await isEncrypted(pooler)).toBe(true);
  const client = await pooler.connect({ query_timeout: 20_000 });
  const answer = client.query('select pg_sleep(30), 42');
  await expect
    .poll(
      async () =>
        (
          await admin.query(
            "select 1 from pg_stat_activity where query like '%(30), 42' and state = 'active'",
          )
        ).rows.length,
    )
    .toBe(1);
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  await expect(answer).rejects.toThrow();
  await expect
    .poll(
      async () =>
        (
          await admin.query(
            "select 1 from pg_stat_activity where query like '%(30), 42' and state = 'active'",
          )
        ).rows.length,
    )
    .toBe(0);
});

test('servers of which several are named are tried one after the other', async () => {
  const databases = {
    [db.database]: { host: ['127.0.0.2', db.host], port: db.port, password: db.password },
  };
  const pooler = await startTestPooler(db, { databases });
  const clients = await Promise.all([pooler.connect(), pooler.connect()]);
  for (const client of clients) expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('servers that are not of the wanted kind are refused', async () => {
  const entry = { host: db.host, port: db.port, password: db.password };
  const primary = await startTestPooler(db, {
    databases: { [db.database]: { ...entry, targetSessionAttrs: 'primary' } },
  });
  expect((await (await primary.connect()).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  const standby = await startTestPooler(db, {
    databases: { [db.database]: { ...entry, targetSessionAttrs: 'standby' } },
    pooling: { serverLoginRetry: '10ms' },
  });
  await expect(standby.connect()).rejects.toMatchObject({ code: '08001' });
});

test('servers run a query first, if that is wanted', async () => {
  const entry = {
    host: db.host,
    port: db.port,
    password: db.password,
    connectQuery: "set work_mem = '9MB'; select 1",
  };
  const pooler = await startTestPooler(db, { databases: { [db.database]: entry } });
  const { rows } = await (await pooler.connect()).query('show work_mem');
  expect(rows).toEqual([{ work_mem: '9MB' }]);
});

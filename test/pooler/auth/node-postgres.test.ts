// Real clients log in at a server that lets them in by our rules.
import pg from 'pg';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { md5Hash } from '../../../src/pooler/auth/md5.js';
import { formatSecret, makeScramSecret } from '../../../src/pooler/auth/secret.js';
import { rejectionOf } from '../../support/outcomes.js';
import { tools } from './conversation.js';
import { LoginServer, type LoginServerOptions } from './login-server.js';

const secrets = {
  plain: 'p\u00e9ncil',
  md5: `md5${md5Hash('p\u00e9ncil', 'joe')}`,
  scram: formatSecret(await makeScramSecret('p\u00e9ncil', 4096)),
};

async function serverWith(form: keyof typeof secrets, options: Omit<LoginServerOptions, 'tools'>) {
  const server = await LoginServer.start({ ...options, tools: tools({ joe: secrets[form] }) });
  onTestFinished(() => server.stop());
  return server;
}

interface Who {
  readonly user?: string;
  readonly password?: string;
  readonly ssl?: boolean;
  readonly enableChannelBinding?: boolean;
}

async function logInWithPg(server: LoginServer, who: Who = {}): Promise<void> {
  const { user = 'joe', password = 'p\u00e9ncil', ssl = false, enableChannelBinding = false } = who;
  const client = new pg.Client({
    host: '127.0.0.1',
    port: server.port,
    database: 'shop',
    user,
    password,
    ssl: ssl ? { rejectUnauthorized: false } : false,
    enableChannelBinding,
  });
  await client.connect();
  await client.end();
}

const ways = [
  ['scram-sha-256', 'scram'],
  ['scram-sha-256', 'plain'],
  ['md5', 'scram'],
  ['md5', 'md5'],
  ['md5', 'plain'],
  ['password', 'scram'],
  ['password', 'md5'],
  ['password', 'plain'],
] as const;

test.each(ways)('node-postgres logs in by %s where the secret is %s', async (method, form) => {
  const server = await serverWith(form, { method });
  await logInWithPg(server, { ssl: true });
  expect(server.logins).toMatchObject([{ user: 'joe', method }]);
});

test.each(ways)(
  'node-postgres is told the same by %s, %s, for a wrong password and for a wrong user',
  async (method, form) => {
    const server = await serverWith(form, { method });
    for (const who of [{ password: 'wrong' }, { user: 'ghost' }]) {
      expect(await rejectionOf(logInWithPg(server, { ...who, ssl: true }))).toMatchObject({
        severity: 'FATAL',
        code: '28P01',
        message: `password authentication failed for user "${who.user ?? 'joe'}"`,
      });
    }
    expect(server.logins).toEqual([]);
  },
);

test('node-postgres logs in without TLS where no password goes over the network', async () => {
  for (const method of ['scram-sha-256', 'md5', 'trust'] as const) {
    const server = await serverWith('plain', { method });
    await logInWithPg(server);
    expect(server.logins).toHaveLength(1);
  }
});

test('node-postgres is told to use TLS where one would', async () => {
  const server = await serverWith('plain', { method: 'password' });
  expect(await rejectionOf(logInWithPg(server))).toMatchObject({
    code: '28000',
    hint: 'Connect with TLS (sslmode=require), or through a Unix socket.',
  });
});

test('node-postgres binds the login to TLS where both can', async () => {
  const server = await serverWith('scram', { method: 'scram-sha-256', offersChannelBinding: true });
  await logInWithPg(server, { ssl: true, enableChannelBinding: true });
  await logInWithPg(server, { ssl: true });
  expect(server.logins).toHaveLength(2);
});

test('node-postgres that thinks we can not bind, when we can not, logs in', async () => {
  const server = await serverWith('scram', { method: 'scram-sha-256' });
  await logInWithPg(server, { ssl: true, enableChannelBinding: true });
  expect(server.logins).toHaveLength(1);
});

test('node-postgres is rejected, or finds no rule, with the reason', async () => {
  expect(await rejectionOf(logInWithPg(await serverWith('plain', { method: 'reject' })))).toMatchObject({
    code: '28000',
    message: 'an access rule (HBA) rejects host "127.0.0.1", user "joe", database "shop", no encryption',
  });
  expect(await rejectionOf(logInWithPg(await serverWith('plain', { method: undefined })))).toMatchObject({
    code: '28000',
    message: 'no access rule (HBA) for host "127.0.0.1", user "joe", database "shop", no encryption',
  });
});

test.each(ways)('postgres.js logs in by %s where the secret is %s', async (method, form) => {
  const server = await serverWith(form, { method });
  const sql = postgres({
    host: '127.0.0.1',
    port: server.port,
    database: 'shop',
    user: 'joe',
    password: 'p\u00e9ncil',
    ssl: { rejectUnauthorized: false },
    max: 1,
    fetch_types: false,
  });
  // A query is only sent by a client that is in.
  expect((await rejectionOf(sql`select 1`)).message).toBe('nothing can be asked here');
  await sql.end();
  expect(server.logins).toMatchObject([{ user: 'joe', method }]);
});

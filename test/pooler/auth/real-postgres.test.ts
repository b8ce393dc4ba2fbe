// We log in at a real PostgreSQL, by every method that it has for passwords, and take its own secrets for what they are.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { md5Hash } from '../../../src/pooler/auth/md5.js';
import { credentialsOfLogin } from '../../../src/pooler/auth/pass-through.js';
import {
  leftToRight,
  mappedToNothing,
  otherSpaces,
  prohibited,
  rightToLeft,
} from '../../../src/pooler/auth/saslprep-tables.js';
import {
  formatSecret,
  makeScramSecret,
  parseSecret,
  type ScramSecret,
} from '../../../src/pooler/auth/secret.js';
import type { ServerCredentials } from '../../../src/pooler/auth/server-authentication.js';
import { rejectionOf } from '../../support/outcomes.js';
import { startTlsPostgres, type TlsPostgres } from '../../support/tls-postgres.js';
import { logIn, tools } from './conversation.js';
import { logInFor, type RealLogin } from './real-login.js';

const hba = `
host  all  clear_user    127.0.0.1/32  password
host  all  md5_user      127.0.0.1/32  md5
host  all  trusted_user  127.0.0.1/32  trust
host  all  refused_user  127.0.0.1/32  reject
host  all  all           127.0.0.1/32  scram-sha-256
`;

const password: ServerCredentials = { kind: 'password', password: 'pencil' };
let server: TlsPostgres;
let admin: pg.Client;

beforeAll(async () => {
  const users = ['clear_user', 'trusted_user', 'refused_user', 'scram_user'];
  server = await startTlsPostgres(hba, [
    ...users.map((user) => `create role ${user} login password 'pencil'`),
    "set scram_iterations = 4096; create role slow_user login password 'pencil'",
    "set password_encryption = 'md5'; create role md5_user login password 'pencil'",
  ]);
  admin = new pg.Client(server.url);
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

function logInAs(user: string, credentials: ServerCredentials, some: Partial<RealLogin> = {}) {
  const { host, port, database } = server;
  return logInFor({ host, port, database, user, credentials, ...some });
}

async function secretOf(user: string): Promise<string> {
  const { rows } = await admin.query<{ secret: string }>(
    'select rolpassword as secret from pg_authid where rolname = $1',
    [user],
  );
  return rows[0]?.secret as string;
}

test('PostgreSQL lets us in by SCRAM, whatever its number of iterations', async () => {
  const scram = { outcome: 'in', mechanism: 'SCRAM-SHA-256' };
  expect(await logInAs('scram_user', password)).toEqual(scram);
  expect(await logInAs('slow_user', password)).toEqual(scram);
});

test('PostgreSQL lets us in by SCRAM with channel binding, over TLS', async () => {
  expect(await logInAs('scram_user', password, { tls: true })).toEqual({
    outcome: 'in',
    mechanism: 'SCRAM-SHA-256-PLUS',
  });
});

test('PostgreSQL lets us in by SCRAM over TLS without channel binding, where the certificate can not be bound to', async () => {
  expect(await logInAs('scram_user', password, { tls: true, withoutEndPoint: true })).toEqual({
    outcome: 'in',
    mechanism: 'SCRAM-SHA-256',
  });
});

test('PostgreSQL lets us in by md5, with the password or its hash', async () => {
  const hash = md5Hash('pencil', 'md5_user');
  expect(await secretOf('md5_user')).toBe(`md5${hash}`);
  expect((await logInAs('md5_user', password)).outcome).toBe('in');
  expect((await logInAs('md5_user', { kind: 'md5', hash })).outcome).toBe('in');
});

test('PostgreSQL lets us in by clear text over TLS, with a password or a token', async () => {
  const token: ServerCredentials = { kind: 'token', token: async () => 'pencil' };
  expect((await logInAs('clear_user', password, { tls: true })).outcome).toBe('in');
  expect((await logInAs('clear_user', token, { tls: true })).outcome).toBe('in');
});

test('PostgreSQL lets us in by trust, with nothing', async () => {
  expect((await logInAs('trusted_user', { kind: 'none' })).outcome).toBe('in');
});

test('PostgreSQL lets us in with a secret that was made here', async () => {
  const secret = formatSecret(await makeScramSecret('p\u00e4ssw\u00f6rd \u2168'));
  await admin.query(`create role our_user login password '${secret}'`);
  expect(await secretOf('our_user')).toBe(secret);
  const right: ServerCredentials = { kind: 'password', password: 'pa\u0308sswo\u0308rd IX' };
  expect((await logInAs('our_user', right)).outcome).toBe('in');
});

test.each(['scram_user', 'slow_user', 'md5_user', 'clear_user', 'no_such_user'])(
  'PostgreSQL does not let us in as %s with a wrong password',
  async (user) => {
    const wrong: ServerCredentials = { kind: 'password', password: 'pencils' };
    expect((await logInAs(user, wrong, { tls: true })).outcome).toBe('28P01');
  },
);

test('PostgreSQL does not let us in against its rules', async () => {
  expect((await logInAs('refused_user', password)).outcome).toBe('28000');
});

test('PostgreSQL does not let us in by clear text without TLS, since we do not send it', async () => {
  expect(await rejectionOf(logInAs('clear_user', password))).toMatchObject({ reason: 'unencrypted' });
  const allowed = await logInAs('clear_user', password, { allowUnencryptedPasswords: true });
  expect(allowed.outcome).toBe('in');
});

async function keysFor(user: string): Promise<ServerCredentials> {
  const { outcome } = await logIn('pencil', tools({ [user]: await secretOf(user) }), { user });
  if (outcome.kind !== 'ok') throw new Error('The client did not come in.');
  return credentialsOfLogin(outcome.login);
}

test('with the keys that a client showed, PostgreSQL lets the pooler in, which never had the password', async () => {
  const credentials = await keysFor('slow_user');
  expect(credentials.kind).toBe('scramKeys');
  expect(await logInAs('slow_user', credentials)).toEqual({ outcome: 'in', mechanism: 'SCRAM-SHA-256' });
  expect(await logInAs('slow_user', credentials, { tls: true })).toEqual({
    outcome: 'in',
    mechanism: 'SCRAM-SHA-256-PLUS',
  });
});

test('with keys that a client showed us it does not when the same password has another secret by now', async () => {
  const credentials = await keysFor('scram_user');
  await admin.query("alter role scram_user password 'pencil'");
  expect(await rejectionOf(logInAs('scram_user', credentials))).toMatchObject({ reason: 'other_secret' });
});

test('passwords are prepared exactly as PostgreSQL prepares them, on every border of its tables', async () => {
  await admin.query(`
    create role prepared_user;
    set scram_iterations = 1;
    create function secret_of(password text) returns text language plpgsql as $$
    begin
      execute format('alter role prepared_user password %L', password);
      return (select rolpassword from pg_authid where rolname = 'prepared_user');
    end $$`);
  const borders = [prohibited, otherSpaces, mappedToNothing, rightToLeft, leftToRight].flatMap((table) =>
    table.flatMap((border) => [border - 1, border]),
  );
  const isCharacter = (code: number) => code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  const characters = [...new Set(borders)].filter(isCharacter).map((code) => String.fromCodePoint(code));
  // Each among others that become something else when they are prepared, and stay what they are when they are not.
  const passwords = characters.flatMap((character) => [`${character}\ufb01`, `\ufb1d${character}\ufb1d`]);
  const { rows } = await admin.query<{ secret: string }>(
    'select secret_of(password) as secret from unnest($1::text[]) as password',
    [passwords],
  );
  const wrong: string[] = [];
  for (const [index, password] of passwords.entries()) {
    const theirs = parseSecret(rows[index]?.secret as string) as ScramSecret;
    const ours = await makeScramSecret(password, theirs.iterations, theirs.salt);
    if (formatSecret(ours) !== formatSecret(theirs)) wrong.push(JSON.stringify(password));
  }
  expect(wrong).toEqual([]);
  expect(passwords.length).toBeGreaterThan(3_000);
});

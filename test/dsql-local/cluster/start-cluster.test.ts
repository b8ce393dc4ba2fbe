// The PostgreSQL behind the stand-in: who can reach it, what is left of it, and what keeps it from starting.
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { ClusterStartError } from '../../../src/dsql-local/cluster/errors.js';
import { findPostgres, type PostgresPrograms } from '../../../src/dsql-local/cluster/find-postgres.js';
import {
  type Cluster,
  type ClusterOptions,
  startCluster,
} from '../../../src/dsql-local/cluster/start-cluster.js';

let programs: PostgresPrograms;
beforeAll(async () => {
  programs = await findPostgres();
});

test('a cluster of its own is PostgreSQL 16 with the encoding, collation, time zone and isolation of DSQL', async () => {
  const cluster = await start();
  const [row] = await query(
    cluster,
    `select current_setting('server_version_num')::int / 10000 as major, current_setting('server_encoding') as encoding,
         (select datcollate from pg_database where datname = 'postgres') as collation, current_setting('TimeZone') as zone,
         current_setting('transaction_isolation') as isolation, current_setting('max_connections') as connections,
         (select usesuper from pg_user where usename = current_user) as is_superuser`,
  );
  expect(row).toEqual({
    major: 16,
    encoding: 'UTF8',
    collation: 'C',
    zone: 'UTC',
    isolation: 'repeatable read',
    connections: '500',
    is_superuser: true,
  });
  expect(cluster.version).toBe(programs.version);
});

test.skipIf(process.platform === 'win32')(
  'a cluster of its own listens only on a Unix socket in a folder that only its owner may enter',
  async () => {
    const cluster = await start();
    expect(cluster.socketFolder).toBe(cluster.host);
    expect(statSync(cluster.host).mode & 0o777).toBe(0o700);
    expect(statSync(cluster.dataFolder).mode & 0o777).toBe(0o700);
    expect(await query(cluster, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
  },
);

test('a cluster of its own asks for its password where it listens on the loopback', async () => {
  const cluster = await start({ transport: 'tcp' });
  expect(cluster.host).toBe('127.0.0.1');
  expect(cluster.socketFolder).toBeUndefined();
  expect(await query(cluster, 'select 1 as one')).toEqual([{ one: 1 }]);
  await expect(query({ ...cluster, password: 'wrong' }, 'select 1')).rejects.toThrow(
    'password authentication failed',
  );
});

test('a cluster of its own takes settings of PostgreSQL, except those that the stand-in relies on', async () => {
  const cluster = await start({
    settings: { max_connections: 23, deadlock_timeout: '50ms', timezone: 'Asia/Tokyo' },
  });
  const [row] = await query(
    cluster,
    `select current_setting('max_connections') as connections, current_setting('deadlock_timeout') as deadlock,
         current_setting('TimeZone') as zone`,
  );
  expect(row).toEqual({ connections: '23', deadlock: '50ms', zone: 'UTC' });
});

test('a cluster of its own logs to a file', async () => {
  const cluster = await start();
  await expect(query(cluster, 'select no_such_column')).rejects.toThrow('no_such_column');
  await expect.poll(() => readFileSync(cluster.logFile, 'utf8')).toContain('column "no_such_column"');
});

test('a cluster of its own says what PostgreSQL said when a setting is wrong, and leaves no folder', async () => {
  const starting = start({ settings: { no_such_setting: 1 } });
  await expect(starting).rejects.toThrow(ClusterStartError);
  await expect(starting).rejects.toThrow('no_such_setting');
});

test('a cluster of its own runs beside another one, and does not see its data', async () => {
  const [one, other] = await Promise.all([start(), start()]);
  await query(one, 'create table t (id int)');
  await expect(query(other, 'select * from t')).rejects.toThrow('relation "t" does not exist');
  await one.stop();
  expect(await query(other, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('the end of a cluster leaves neither a process nor a folder behind', async () => {
  const cluster = await start();
  await cluster.stop();
  expect(await cluster.ended).toBeUndefined();
  expect(remains(cluster)).toEqual([]);
  await cluster.stop();
});

test('the end of a cluster comes with the end of the program that started it, even when that is killed', async () => {
  const cluster = await startInProcess('SIGKILL');
  await expect.poll(() => remains(cluster), { timeout: 20_000 }).toEqual([]);
});

test('the end of a cluster comes with the end of the program that forgets to stop it', async () => {
  const cluster = await startInProcess(undefined);
  await expect.poll(() => remains(cluster), { timeout: 20_000 }).toEqual([]);
});

test('the end of a cluster comes with the end of its guard, and is told with the reason', async () => {
  const cluster = await start();
  process.kill(parentOf(cluster.pid), 'SIGKILL');
  expect(await cluster.ended).toBe('The guard of the PostgreSQL server ended with SIGKILL.');
  expect(remains(cluster)).toEqual([]);
  await cluster.stop();
});

test('the end of a cluster is told with the reason when the server was killed', async () => {
  const cluster = await start();
  process.kill(cluster.pid, 'SIGKILL');
  expect(await cluster.ended).toContain('PostgreSQL ended with SIGKILL');
  expect(existsSync(cluster.host)).toBe(false);
});

test('a data folder that is kept has its data again at the next start', async () => {
  const dataFolder = join(temporaryFolder(), 'new', 'kept');
  const first = await start({ dataFolder });
  expect(first.dataFolder).toBe(join(dataFolder, 'postgres'));
  await query(first, 'create table t as select 7 as n');
  await first.stop();
  expect(existsSync(first.host)).toBe(false);

  const second = await start({ dataFolder });
  expect(await query(second, 'select n from t')).toEqual([{ n: 7 }]);
  process.kill(second.pid, 'SIGKILL');
  await second.ended;

  const afterCrash = await start({ dataFolder });
  expect(await query(afterCrash, 'select n from t')).toEqual([{ n: 7 }]);
});

test('a data folder that is kept keeps the password of the loopback', async () => {
  const dataFolder = join(temporaryFolder(), 'kept');
  const first = await start({ dataFolder, transport: 'tcp' });
  await first.stop();
  const second = await start({ dataFolder, transport: 'tcp' });
  expect(second.password).toBe(first.password);
  expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a data folder that is kept is refused while another cluster uses it', async () => {
  const dataFolder = join(temporaryFolder(), 'kept');
  const cluster = await start({ dataFolder });
  await expect(start({ dataFolder })).rejects.toThrow(
    `${join(dataFolder, 'postgres')} is in use by another PostgreSQL server.`,
  );
  expect(await query(cluster, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a data folder that is kept is refused when it was made by another version', async () => {
  const dataFolder = temporaryFolder();
  mkdirSync(join(dataFolder, 'postgres'));
  writeFileSync(join(dataFolder, 'postgres/PG_VERSION'), '15\n');
  await expect(start({ dataFolder })).rejects.toThrow('was made by PostgreSQL 15, and 16 is needed.');
});

test("a data folder that is kept is refused when it is another server's, a file, or full of other things", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'PG_VERSION'), '16\n');
  await expect(start({ dataFolder: folder })).rejects.toThrow('the data folder of another PostgreSQL server');
  await expect(start({ dataFolder: join(folder, 'PG_VERSION') })).rejects.toThrow('is not a folder');
  const other = temporaryFolder();
  mkdirSync(join(other, 'postgres'));
  writeFileSync(join(other, 'postgres/notes'), 'mine');
  await expect(start({ dataFolder: other })).rejects.toThrow('has files that are not of PostgreSQL');
});

async function start(options: Omit<ClusterOptions, 'programs'> = {}): Promise<Cluster> {
  const cluster = await startCluster({ programs, ...options });
  onTestFinished(() => cluster.stop());
  return cluster;
}

type Left = Pick<Cluster, 'host' | 'pid' | 'dataFolder'>;

/** Starts a cluster in a program that is then killed, or comes to its end. */
async function startInProcess(signal: NodeJS.Signals | undefined): Promise<Left> {
  const module = (name: string): string =>
    JSON.stringify(
      pathToFileURL(join(import.meta.dirname, '../../../dist/dsql-local/cluster', `${name}.js`)).href,
    );
  const program = `const { findPostgres } = await import(${module('find-postgres')});
    const { startCluster } = await import(${module('start-cluster')});
    const { host, pid, dataFolder } = await startCluster({ programs: await findPostgres() });
    console.log(JSON.stringify({ host, pid, dataFolder }));
    ${signal === undefined ? '' : 'setInterval(() => {}, 1_000);'}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: child.stdout }).once('line', resolve),
  );
  const cluster = JSON.parse(line) as Left;
  if (signal !== undefined) {
    expect(remains(cluster)).not.toEqual([]);
    child.kill(signal);
  }
  return cluster;
}

async function query(
  { host, port, user, password }: Pick<Cluster, 'host' | 'port' | 'user' | 'password'>,
  sql: string,
): Promise<unknown[]> {
  const client = new pg.Client({ host, port, user, password, database: 'postgres' });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-kept-'));
  // PostgreSQL runs as another user when the tests run as root.
  chmodSync(folder, 0o711);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Process and folders that are left of a cluster whose data is not kept. */
function remains({ host, pid, dataFolder }: Left): string[] {
  const folders = [host, dirname(dataFolder)].filter((folder) => existsSync(folder));
  return isRunning(pid) ? [`process ${pid}`, ...folders] : folders;
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

function parentOf(pid: number): number {
  const output = execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' });
  return Number(output);
}

// @ts-check
// The two poolers of the comparison, each in a process of its own, before the same PostgreSQL and with the same limits.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres
 * @typedef {import('node:child_process').ChildProcess} ChildProcess
 */

/**
 * @typedef {object} RunningPooler
 * @property {string} title
 * @property {number} pid
 * @property {number} port
 * @property {boolean} preparesInTransactions whether named statements work with transaction pooling
 * @property {() => number} cpuSeconds processor time until now, user and system
 * @property {() => number} residentMegabytes
 * @property {() => Promise<void>} stop
 */

const poolSize = 20;
export const mostClients = 6_000;

const host = '127.0.0.1';
const builtProgram = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
/** As `getconf CLK_TCK` says on every Linux there is. */
const ticksPerSecond = 100;
const startMs = 10_000;

/**
 * @typedef {object} HeadgateOptions
 * @property {string} [program] of another build than `dist/`
 * @property {string} [title]
 * @property {readonly string[]} [nodeOptions]
 * @property {Record<string, Record<string, unknown>>} [settings] sections of the configuration, on top of the usual ones
 */

/**
 * @param {EmbeddedPostgres} database
 * @param {HeadgateOptions} [options]
 * @returns {Promise<RunningPooler>}
 */
export async function startHeadgate(
  database,
  { program = builtProgram, title = 'headgate', nodeOptions = [], settings = {} } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const configFile = join(folder, 'headgate.json');
  /** @type {Record<string, Record<string, unknown>>} */
  const config = {
    listen: { port: 0 },
    unixSocket: { dir: '' },
    auth: { type: 'trust' },
    databases: { [database.database]: { host, port: database.port, password: database.password } },
    pooling: { poolMode: 'transaction', poolSize },
    limits: { maxClientConn: mostClients },
    serverTls: { mode: 'disable' },
    logging: { connections: false, disconnections: false },
  };
  for (const [name, section] of Object.entries(settings)) config[name] = { ...config[name], ...section };
  writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });
  const args = [...nodeOptions, program, 'serve', '--config', configFile];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const port = await announcedPort(child, collect(child.stderr));
  return describe(title, child, port, folder, true);
}

/**
 * @typedef {object} PgBouncerOptions
 * @property {string} [title] behind its name
 * @property {readonly string[]} [users] beside the database's own, with the same password
 * @property {Record<string, string | number>} [settings] on top of the usual ones
 */

/**
 * @param {EmbeddedPostgres} database
 * @param {PgBouncer} pgbouncer
 * @param {PgBouncerOptions} [options]
 * @returns {Promise<RunningPooler>}
 */
export async function startPgBouncer(database, pgbouncer, { title = '', users = [], settings = {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  // PgBouncer runs as another user where this is root. The folder has credentials for the database of this run alone.
  chmodSync(folder, 0o755);
  const userFile = join(folder, 'users.txt');
  const configFile = join(folder, 'pgbouncer.ini');
  const port = await freePort();
  writeFileSync(
    userFile,
    [database.user, ...users].map((user) => `"${user}" "${database.password}"\n`).join(''),
  );
  writeFileSync(
    configFile,
    [
      '[databases]',
      `${database.database} = host=${host} port=${database.port} dbname=${database.database}`,
      '[pgbouncer]',
      `listen_addr = ${host}`,
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `auth_file = ${userFile}`,
      'pool_mode = transaction',
      `default_pool_size = ${poolSize}`,
      `max_client_conn = ${mostClients}`,
      'log_connections = 0',
      'log_disconnections = 0',
      ...(pgbouncer.preparesInTransactions ? ['max_prepared_statements = 200'] : []),
      // Of what is said twice, the last holds.
      ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
      '',
    ].join('\n'),
  );
  const args = process.getuid?.() === 0 ? ['-q', '-u', someoneElse(), configFile] : ['-q', configFile];
  // PgBouncer does not raise its own limit of open files as far as it may.
  const child = spawn(
    'sh',
    ['-c', 'ulimit -n "$(ulimit -H -n)"; exec "$@"', 'sh', pgbouncer.program, ...args],
    {
      stdio: ['ignore', 'inherit', 'pipe'],
    },
  );
  const lines = collect(child.stderr);
  if (!(await answers(port, child))) throw new Error(`PgBouncer did not start: ${lines()}`);
  return describe(
    `PgBouncer ${pgbouncer.version}${title}`,
    child,
    port,
    folder,
    pgbouncer.preparesInTransactions,
  );
}

/**
 * @typedef {object} PgBouncer
 * @property {string} program
 * @property {string} version
 * @property {boolean} preparesInTransactions
 */

/** @returns {PgBouncer | undefined} undefined where it is not installed */
export function findPgBouncer() {
  for (const program of ['pgbouncer', '/usr/sbin/pgbouncer', '/usr/local/sbin/pgbouncer']) {
    const version = /PgBouncer (\d+)\.(\d+)/i.exec(versionOf(program) ?? '');
    if (version === null) continue;
    const [, major = '', minor = ''] = version;
    // Since 1.21.
    const preparesInTransactions = Number(major) > 1 || Number(minor) >= 21;
    return { program, version: `${major}.${minor}`, preparesInTransactions };
  }
  return undefined;
}

/** @param {string} program */
export function versionOf(program) {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return undefined;
  }
}

/**
 * @param {string} title
 * @param {ChildProcess} child
 * @param {number} port
 * @param {string} folder
 * @param {boolean} preparesInTransactions
 * @returns {RunningPooler}
 */
function describe(title, child, port, folder, preparesInTransactions) {
  const { pid } = child;
  return {
    title,
    pid: pid ?? 0,
    port,
    preparesInTransactions,
    cpuSeconds() {
      // The name of the program, in parentheses, may have spaces in it.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    },
    residentMegabytes() {
      const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      return Number(kilobytes) / 1024;
    },
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        // At once, for both.
        child.kill(title.startsWith('PgBouncer') ? 'SIGTERM' : 'SIGQUIT');
        await gone;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * @param {ChildProcess} child
 * @param {() => string} complaints
 * @returns {Promise<number>}
 */
function announcedPort(child, complaints) {
  const text = collect(child.stdout);
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', () => {
      const [, port] = /listening on .*:(\d+)/.exec(text()) ?? [];
      if (port !== undefined) resolve(Number(port));
    });
    child.once('exit', (code) => reject(new Error(`headgate serve ended with ${code}: ${complaints()}`)));
  });
}

/**
 * Collects a program's output, for the report if it fails.
 * @param {import('node:stream').Readable | null} stream
 */
function collect(stream) {
  let text = '';
  stream?.on('data', (chunk) => {
    text += chunk;
  });
  return () => text;
}

/**
 * @param {number} port
 * @param {ChildProcess} child
 */
async function answers(port, child) {
  const deadline = Date.now() + startMs;
  while (Date.now() < deadline && child.exitCode === null) {
    const socket = connect(port, host);
    const isThere = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (isThere) return true;
    await sleep(50);
  }
  return false;
}

async function freePort() {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

/** PgBouncer does not run as root. */
function someoneElse() {
  try {
    execFileSync('id', ['-u', 'postgres'], { stdio: 'ignore' });
    return 'postgres';
  } catch {
    return 'nobody';
  }
}

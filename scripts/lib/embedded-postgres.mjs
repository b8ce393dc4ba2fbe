// @ts-check
// A real PostgreSQL server for tests, benchmarks and the demonstration: starts in under a second, leaves nothing behind.
import { execFileSync, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { findNativeFolder, temporaryFolder, usableNativeFolder } from './postgres-binaries.mjs';

/**
 * @typedef {object} EmbeddedPostgresOptions
 * @property {number | undefined} [port] any free port when it is not given
 * @property {string} [user]
 * @property {string} [password]
 * @property {number} [maxConnections]
 * @property {Record<string, string | number | boolean>} [settings] more lines for postgresql.conf
 * @property {string} [nativeFolder] where PostgreSQL's programs are; those that npm installed when it is not given
 */

/**
 * @typedef {object} EmbeddedPostgres
 * @property {string} host
 * @property {number} port
 * @property {string} user
 * @property {string} password
 * @property {string} database
 * @property {string} url
 * @property {number} pid the server's process
 * @property {string} folder where its data is until it stops
 * @property {() => Promise<void>} stop ends the server and removes its folder; a second call waits for the first
 */

const host = '127.0.0.1';
const database = 'postgres';
const guard = fileURLToPath(new URL('postgres-guard.mjs', import.meta.url));

/** What is in here dies with the test, so nothing is made safe on disk, and the server stays small. */
const throwawaySettings = {
  fsync: false,
  synchronous_commit: false,
  full_page_writes: false,
  wal_level: 'minimal',
  max_wal_senders: 0,
  shared_buffers: '32MB',
  huge_pages: false,
  io_method: 'sync',
  jit: false,
  unix_socket_directories: '',
};

/**
 * Starts a server of its own on the loopback. It ends with `stop()`, and also when this process ends in whatever way.
 * @param {EmbeddedPostgresOptions} [options]
 * @returns {Promise<EmbeddedPostgres>}
 */
export async function startEmbeddedPostgres(options = {}) {
  const { user = 'postgres', password = 'headgate', maxConnections = 100 } = options;
  const settings = { ...throwawaySettings, max_connections: maxConnections, ...options.settings };
  const owner = findOwner();
  const folder = temporaryFolder(owner !== undefined);

  /** @type {import('./postgres-guard.mjs').GuardOrders} */
  let orders;
  try {
    const native = options.nativeFolder ?? findNativeFolder();
    const programs = join(usableNativeFolder(native, owner !== undefined, folder), 'bin');
    orders = {
      initdb: join(programs, 'initdb'),
      postgres: join(programs, 'postgres'),
      folder,
      owner,
      host,
      port: options.port,
      user,
      password,
      serverArguments: Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }

  // A group of its own: a Ctrl-C in the terminal must not end the server before those who use it.
  const child = spawn(process.execPath, [guard], { detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  const gone = new Promise((resolve) => child.once('close', resolve));
  child.stdin.on('error', () => {}); // The guard that ended first says why itself.
  child.stdin.write(`${JSON.stringify(orders)}\n`);
  const { port, pid } = await firstReport(child);

  // A program that forgets stop() can still end; the guard notices and cleans up.
  child.unref();
  for (const pipe of [child.stdin, child.stdout]) /** @type {import('node:net').Socket} */ (pipe).unref();

  const account = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
  return {
    host,
    port,
    user,
    password,
    database,
    url: `postgresql://${account}@${host}:${port}/${database}`,
    pid,
    folder,
    async stop() {
      child.ref();
      child.stdin.end();
      await gone;
    },
  };
}

/**
 * @param {import('node:child_process').ChildProcessByStdio<import('node:stream').Writable, import('node:stream').Readable, null>} child
 * @returns {Promise<{ port: number, pid: number }>}
 */
function firstReport(child) {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => {
      /** @type {import('./postgres-guard.mjs').GuardReport} */
      const report = JSON.parse(line);
      if (report.state === 'ready') resolve(report);
      else reject(new Error(report.message));
    });
    child.once('error', reject);
    child.once('close', (code) =>
      reject(new Error(`The guard of the PostgreSQL server ended with ${code} before it was ready.`)),
    );
  });
}

/**
 * PostgreSQL refuses to run as root, so root runs it as somebody else: the user `postgres` where there is one, else `nobody`.
 * @returns {{ uid: number, gid: number } | undefined}
 */
function findOwner() {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const [uid, gid] = ['-u', '-g'].map((flag) =>
        Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })),
      );
      if (uid !== undefined && gid !== undefined) return { uid, gid };
    } catch {
      // No such user here.
    }
  }
  throw new Error(
    'PostgreSQL refuses to run as root, and this system has neither a user "postgres" nor a user "nobody" to run it as. ' +
      'Add one (useradd --system postgres), or do not run as root.',
  );
}

// @ts-check
// A real PostgreSQL server for tests, benchmarks and the demonstration: starts in under a second, leaves nothing behind.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../dist/dsql-local/cluster/folders.js';
import { startGuardedServer } from '../../dist/dsql-local/cluster/guarded-server.js';
import { usableNativeFolder } from '../../dist/dsql-local/cluster/npm-programs.js';
import { findServerOwner } from '../../dist/dsql-local/cluster/server-owner.js';
import { findNativeFolder } from './postgres-binaries.mjs';

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

/** Data dies with the test, so nothing is made safe on disk, and the server stays small. */
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
};

/**
 * Starts a server of its own on the loopback. It ends with `stop()`, and also when this process ends in whatever way.
 * @param {EmbeddedPostgresOptions} [options]
 * @returns {Promise<EmbeddedPostgres>}
 */
export async function startEmbeddedPostgres(options = {}) {
  const { user = 'postgres', password = 'headgate', maxConnections = 100 } = options;
  const settings = { ...throwawaySettings, max_connections: maxConnections, ...options.settings };
  const owner = findServerOwner();
  const folder = temporaryFolder({ forAnotherUser: owner !== undefined });
  const { port, pid, stop } = await startGuardedServer({
    ...findPrograms(options.nativeFolder, owner !== undefined, folder),
    dataFolder: join(folder, 'data'),
    temporaryFolders: [folder],
    owner,
    address: { kind: 'tcp', host, port: options.port },
    user,
    password,
    settings,
    logFile: undefined,
  });

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
    stop,
  };
}

/**
 * @param {string | undefined} nativeFolder
 * @param {boolean} forAnotherUser
 * @param {string} scratch removed when there are no programs
 */
function findPrograms(nativeFolder, forAnotherUser, scratch) {
  try {
    const native = usableNativeFolder(nativeFolder ?? findNativeFolder(), forAnotherUser, scratch);
    return { initdb: join(native, 'bin/initdb'), postgres: join(native, 'bin/postgres') };
  } catch (error) {
    rmSync(scratch, { recursive: true, force: true });
    throw error;
  }
}

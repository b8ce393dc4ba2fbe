// @ts-check
// The pooler for the demonstration: before the demonstration's own PostgreSQL, on the first port that is free.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../dist/pooler/config/load-config.js';
import { startPooler } from '../../dist/pooler/process/pooler.js';

/** @typedef {import('./embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres */

const usualPort = 6_432;
const portsToTry = 100;

/**
 * @param {EmbeddedPostgres} server
 * @param {number | undefined} wantedPort the first free one from 6432 on when it is not given
 * @returns {Promise<{ url: string, console: string, stop: () => Promise<void> }>}
 */
export async function startPoolerFor(server, wantedPort) {
  const first = wantedPort ?? usualPort;
  for (let port = first; ; port++) {
    try {
      const pooler = await startPooler(configFor(server, port));
      const login = `${server.user}:${server.password}@127.0.0.1:${port}`;
      return {
        url: `postgresql://${login}/${server.database}`,
        console: `postgresql://${login}/headgate`,
        stop: () => pooler.shutdown({ deadlineMs: 2_000 }),
      };
    } catch (error) {
      const isTaken = /** @type {{ code?: string }} */ (error).code === 'HG_LISTEN';
      if (!isTaken || wantedPort !== undefined || port >= first + portsToTry) throw error;
    }
  }
}

/**
 * @param {EmbeddedPostgres} server
 * @param {number} port
 */
function configFor(server, port) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pooler-'));
  const file = join(folder, 'headgate.json');
  const config = {
    listen: { addresses: ['127.0.0.1'], port },
    unixSocket: { dir: '' },
    databases: { [server.database]: { host: server.host, port: server.port } },
    users: { [server.user]: { password: server.password } },
    admin: { adminUsers: [server.user] },
  };
  try {
    writeFileSync(file, JSON.stringify(config));
    return loadConfig({ configFile: file }).config;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

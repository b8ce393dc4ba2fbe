// @ts-check
// The pooler for the demonstration: before the demonstration's own PostgreSQL, on the first port that is free.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../dist/pooler/config/load-config.js';
import { startPooler } from '../../dist/pooler/process/pooler.js';
import { habits, listener } from './demo-users.mjs';

/** @typedef {import('./embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres */

/** Server connections for all users of the pooler together: fewer than they want at times. */
const budget = 20;
const usualPort = 6_432;
const portsToTry = 100;

/**
 * @param {EmbeddedPostgres} server
 * @param {number | undefined} wantedPort the first free one from 6432 on when it is not given
 * @param {() => Promise<string>} [moreMetrics] what else `/metrics` tells
 */
export async function startPoolerFor(server, wantedPort, moreMetrics) {
  const first = wantedPort ?? usualPort;
  for (let port = first; ; port++) {
    try {
      const pooler = await startPooler(configFor(server, port), { ...(moreMetrics && { moreMetrics }) });
      const http = `http://127.0.0.1:${pooler.metricsPort}`;
      const login = `${server.user}:${server.password}@127.0.0.1:${port}`;
      return {
        page: `${http}${pooler.pagePath}`,
        metrics: `${http}/metrics`,
        /** @param {import('../../dist/dashboard.js').ShownPool} pool */
        show: (pool) => pooler.showPool(pool),
        /** What it does now, in a line. */
        look() {
          const { clients, waiting, pools } = pooler.stats();
          const held = pools.reduce((sum, { live, pending, closing }) => sum + live + pending + closing, 0);
          return `pooler: ${clients} clients, ${waiting} waiting; ${held} of ${budget} server connections, ${pools.length} pools`;
        },
        address: { host: '127.0.0.1', port, database: server.database, password: server.password },
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
    users: Object.fromEntries(
      [server.user, listener, ...habits.map(({ user }) => user)].map((user) => [
        user,
        { password: server.password },
      ]),
    ),
    limits: { maxServerConnections: budget },
    fairShares: { weights: Object.fromEntries(habits.map(({ user, weight }) => [user, weight])) },
    admin: { adminUsers: [server.user] },
    observability: { metricsListen: '127.0.0.1:0' },
  };
  try {
    writeFileSync(file, JSON.stringify(config));
    return loadConfig({ configFile: file }).config;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

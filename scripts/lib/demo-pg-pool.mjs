// @ts-check
// pg.Pool beside the demonstration's pool: the same size, the same load, the same faults.
import pg from 'pg';
import { DemoLoad } from './demo-load.mjs';
import { watchSessions } from './demo-watch.mjs';

const applicationName = 'headgate-demo-pg-pool';

/**
 * @param {object} options
 * @param {string} options.url
 * @param {number} options.max
 * @param {number} options.speed
 * @param {AbortSignal} options.signal
 * @param {pg.Pool} options.observer
 */
export function runBeside({ url, max, speed, signal, observer }) {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: applicationName,
    max,
    idleTimeoutMillis: 1_500 / speed,
    connectionTimeoutMillis: usualTimeoutMs,
  });
  pool.on('error', () => {}); // Sessions that are ended while idle.
  // One that is ended while it is checked out and asks nothing would end the program.
  pool.on('connect', (client) => client.on('error', () => {}));
  const load = new DemoLoad({ connect: (options) => connect(pool, options?.timeout) }, speed, signal);
  const { seen, stop } = watchSessions(observer, applicationName);
  const most = () => `${seen.highest} at most${seen.highest > max ? `: OVER ${max}` : ''}`;
  return {
    applicationName,
    load,
    /**
     * pg-pool has no resize(): connections above the new limit stay open until they are idle for long.
     * @param {number} limit
     */
    resize(limit) {
      pool.options.max = limit;
    },
    /** For the screen. */
    look: () => [
      'pg.Pool beside it, under the same load and faults (it has no pause)',
      `  sessions: ${seen.sessions}, ${most()}; ${pool.idleCount} idle, ${pool.waitingCount} waiting`,
      `  queries: ${load.summary}`,
    ],
    summary: () => `pg.Pool beside it: sessions: ${most()}; queries: ${load.summary}.`,
    async end() {
      await pool.end().catch(() => {}); // The server may go first.
      await stop();
    },
  };
}

const usualTimeoutMs = 20_000;

/**
 * The timeout is the pool's own, which reads it when it is asked.
 * @param {pg.Pool} pool
 * @param {number} [timeout]
 */
function connect(pool, timeout = usualTimeoutMs) {
  pool.options.connectionTimeoutMillis = timeout;
  return pool.connect();
}

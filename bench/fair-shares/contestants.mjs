// @ts-check
// The contestants: headgate with a budget, PgBouncer with the same number of connections for the database, PgBouncer tuned by
// hand, and PostgreSQL without anyone between.
import { startHeadgate, startPgBouncer } from '../pooler/poolers.mjs';
import { runCrowds } from './crowd.mjs';
import { directDatabase } from './server.mjs';

/**
 * @typedef {import('../pooler/poolers.mjs').PgBouncer} PgBouncer
 * @typedef {import('../pooler/poolers.mjs').RunningPooler} RunningPooler
 * @typedef {import('./server.mjs').Server} Server
 */

/**
 * @typedef {object} Contestant
 * @property {string} title
 * @property {boolean} isOurs
 * @property {number} port
 * @property {string} database
 * @property {() => Promise<void>} stop
 */

/** @typedef {(server: Server) => Promise<Contestant>} StartContestant */

/** Server connections for everybody together. */
export const capacity = 20;
/** Of these, one user may have so many where PgBouncer is tuned by hand: what the other one needs is left. */
export const tunedForUser = 16;

/**
 * @param {Record<string, Record<string, unknown>>} [settings]
 * @param {string} [title]
 * @returns {StartContestant}
 */
export function headgate(settings = {}, title = 'headgate') {
  return async (server) => {
    const pooler = await startHeadgate(server.database, {
      title,
      settings: { fairShares: { capacity }, ...settings },
    });
    return asContestant(pooler, server, true);
  };
}

/**
 * @param {PgBouncer} pgbouncer
 * @param {Record<string, string | number>} [settings]
 * @param {string} [title] behind its name
 * @returns {StartContestant}
 */
export function pgBouncer(pgbouncer, settings = {}, title = '') {
  return async (server) => {
    const pooler = await startPgBouncer(server.database, pgbouncer, {
      title,
      users: server.users,
      // The backlog is as long as ours: many clients come at once.
      settings: {
        default_pool_size: capacity,
        max_db_connections: capacity,
        listen_backlog: 4_096,
        ...settings,
      },
    });
    return asContestant(pooler, server, false);
  };
}

/**
 * @param {Server} server
 * @returns {Promise<Contestant>}
 */
export async function direct({ database }) {
  const title = 'PostgreSQL, no pooler';
  return { title, isOurs: false, port: database.port, database: directDatabase, stop: async () => {} };
}

/** Has nothing to do with what is measured. */
export const warmUpUser = 'warm_up';

/**
 * A pooler that has been running for a while: its code is compiled, and it has connections of somebody who is gone.
 * @param {Contestant} contestant
 */
function warmUp({ port, database }) {
  const group = { user: warmUpUser, clients: capacity, text: 'select 1' };
  return runCrowds([{ orders: { port, database, seconds: 1.5, comesLoggedIn: false, groups: [group] } }]);
}

/**
 * Starts it, and stops it when all is done and everyone has left.
 * @template T
 * @param {Server} server
 * @param {StartContestant} start
 * @param {(contestant: Contestant) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withContestant(server, start, use) {
  await server.empty();
  const contestant = await start(server);
  try {
    await warmUp(contestant);
    server.takeMost();
    return await use(contestant);
  } finally {
    await contestant.stop();
    await server.empty();
  }
}

/**
 * @param {RunningPooler} pooler
 * @param {Server} server
 * @param {boolean} isOurs
 * @returns {Contestant}
 */
function asContestant(pooler, { database }, isOurs) {
  return {
    title: pooler.title,
    isOurs,
    port: pooler.port,
    database: database.database,
    stop: () => pooler.stop(),
  };
}

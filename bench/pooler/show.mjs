// @ts-check
// `headgate serve` and the PgBouncer of this machine before the same PostgreSQL: pgbench's SELECTs through both, in turns, clients
// that come and go, and many that do nothing; and what a higher priority gives on cores that all share.
import { getPriority } from 'node:os';
import { startEmbeddedPostgres } from '../../scripts/lib/embedded-postgres.mjs';
import { clientsAllowed, measureIdle } from './idle-memory.mjs';
import { fillDatabase, measure } from './pgbench.mjs';
import { findPgBouncer, mostClients, startHeadgate, startPgBouncer, versionOf } from './poolers.mjs';
import {
  formatCases,
  formatIdle,
  formatPriority,
  formatVisits,
  judgeIdle,
  summarize,
  summarizePriority,
  summarizeVisits,
} from './summary.mjs';

/**
 * @typedef {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres
 * @typedef {import('./pgbench.mjs').Protocol} Protocol
 * @typedef {import('./pgbench.mjs').Round} Round
 * @typedef {import('./poolers.mjs').PgBouncer} PgBouncer
 * @typedef {import('./poolers.mjs').RunningPooler} RunningPooler
 * @typedef {import('./summary.mjs').Case} Case
 * @typedef {import('./summary.mjs').Preferred} Preferred
 * @typedef {import('./summary.mjs').Visits} Visits
 */

export const poolerSpeed = { name: 'pooler', run };

const about =
  'pgbench -S, scale 10, through headgate serve and through PgBouncer, pool of 20, transaction pooling, real PostgreSQL';
const clientCounts = [1, 16, 64, 256];
/** @type {Protocol[]} */
const protocols = ['simple', 'extended', 'prepared'];
/** Of those that connect for each query. */
const visitors = 16;
/** Of what has no target. */
const sideRounds = 3;
const sideSeconds = 4;
const idleClients = 5_000;
const priority = -5;
/** @type {{ clients: number, protocol: Protocol }[]} */
const preferredLoads = [
  { clients: 64, protocol: 'simple' },
  { clients: 256, protocol: 'extended' },
];

/**
 * @param {{ quick?: boolean, rounds?: number | undefined }} [options]
 * @returns {Promise<{ report: object, output: string, missed: number }>}
 */
async function run({ quick = false, rounds = quick ? 3 : 5 } = {}) {
  const pgbouncer = findPgBouncer();
  if (pgbouncer === undefined || versionOf('pgbench') === undefined) return notRun(pgbouncer === undefined);
  const database = await startEmbeddedPostgres({
    maxConnections: 150,
    settings: { shared_buffers: '256MB' },
  });
  try {
    await fillDatabase(database);
    const { cases, visits, preferred } = await race(database, pgbouncer, rounds, quick ? 3 : 6);
    const idle = await rest(database, pgbouncer);
    const missed = [...cases.flatMap(({ targets }) => targets), ...idle.targets].filter(({ ok }) => !ok);
    return {
      report: {
        name: poolerSpeed.name,
        about,
        pgbouncer: pgbouncer.version,
        rounds,
        cases,
        visits,
        preferred,
        idle,
      },
      output: [
        `${poolerSpeed.name}: ${about}`,
        formatCases(cases, pgbouncer),
        formatVisits(visits),
        formatPriority(priority, preferred),
        formatIdle(idle),
      ].join('\n'),
      missed: missed.length,
    };
  } finally {
    await database.stop();
  }
}

/**
 * @param {EmbeddedPostgres} database
 * @param {PgBouncer} pgbouncer
 * @param {number} rounds
 * @param {number} seconds of each
 * @returns {Promise<{ cases: Case[], visits: Visits, preferred: Preferred[] }>}
 */
async function race(database, pgbouncer, rounds, seconds) {
  /** @type {RunningPooler[]} */
  const poolers = [];
  try {
    const ours = await startHeadgate(database);
    poolers.push(ours);
    const theirs = await startPgBouncer(database, pgbouncer);
    poolers.push(theirs);
    for (const protocol of protocols)
      for (const pooler of poolers) await oneRound(database, pooler, 16, protocol, 3);
    /** @type {Case[]} */
    const cases = [];
    for (const clients of clientCounts) {
      for (const protocol of protocols) {
        /** @type {{ ours: Round, theirs: Round }[]} */
        const pairs = [];
        for (let round = 0; round < rounds; round++) {
          pairs.push({
            ours: await oneRound(database, ours, clients, protocol, seconds),
            theirs: await oneRound(database, theirs, clients, protocol, seconds),
          });
        }
        cases.push(summarize(clients, protocol, pairs));
      }
    }
    const visits = await visit(database, ours, theirs);
    const first = await startHeadgate(database, { settings: { listen: { port: 0, priority } } });
    poolers.push(first);
    return { cases, visits, preferred: await prefer(database, first, ours, theirs) };
  } finally {
    for (const pooler of poolers) await pooler.stop();
  }
}

/**
 * @param {EmbeddedPostgres} database
 * @param {RunningPooler} first the one with the priority
 * @param {RunningPooler} ours
 * @param {RunningPooler} theirs
 * @returns {Promise<Preferred[]>} nothing where the system refuses the priority
 */
async function prefer(database, first, ours, theirs) {
  if (getPriority(first.pid) !== priority) return [];
  await oneRound(database, first, 16, 'simple', 3);
  const all = [];
  for (const { clients, protocol } of preferredLoads) {
    /** @type {(pooler: RunningPooler) => Promise<Round>} */
    const load = (pooler) => oneRound(database, pooler, clients, protocol, sideSeconds);
    const rounds = [];
    for (let round = 0; round < sideRounds; round++)
      rounds.push({ first: await load(first), ours: await load(ours), theirs: await load(theirs) });
    all.push(summarizePriority(clients, protocol, rounds));
  }
  return all;
}

/**
 * @param {EmbeddedPostgres} database
 * @param {RunningPooler} ours
 * @param {RunningPooler} theirs
 * @returns {Promise<Visits>}
 */
async function visit(database, ours, theirs) {
  /** @type {(pooler: RunningPooler) => Promise<Round>} */
  const oneRound = (pooler) =>
    measure(database, pooler, {
      clients: visitors,
      protocol: 'simple',
      seconds: sideSeconds,
      reconnects: true,
    });
  const pairs = [];
  for (let round = 0; round < sideRounds; round++)
    pairs.push({ ours: await oneRound(ours), theirs: await oneRound(theirs) });
  return summarizeVisits(visitors, pairs);
}

/**
 * A pooler that can't have prepared statements with transaction pooling runs the extended protocol in their place.
 * @param {EmbeddedPostgres} database
 * @param {RunningPooler} pooler
 * @param {number} clients
 * @param {Protocol} protocol
 * @param {number} seconds
 */
function oneRound(database, pooler, clients, protocol, seconds) {
  const isPossible = protocol !== 'prepared' || pooler.preparesInTransactions;
  return measure(database, pooler, { clients, protocol: isPossible ? protocol : 'extended', seconds });
}

/**
 * @param {EmbeddedPostgres} database
 * @param {PgBouncer} pgbouncer
 */
async function rest(database, pgbouncer) {
  const clients = clientsAllowed(Math.min(idleClients, mostClients));
  const memory = async (/** @type {RunningPooler} */ pooler) => {
    try {
      return await measureIdle(database, pooler, clients);
    } finally {
      await pooler.stop();
    }
  };
  const ours = await memory(await startHeadgate(database));
  const theirs = await memory(await startPgBouncer(database, pgbouncer));
  return judgeIdle({ wanted: idleClients, clients, ours, theirs });
}

/** @param {boolean} isPgBouncerMissing */
function notRun(isPgBouncerMissing) {
  const missing = isPgBouncerMissing
    ? 'PgBouncer is not installed: on Debian and Ubuntu, apt-get install pgbouncer'
    : 'pgbench is not installed, or not in PATH: on Debian and Ubuntu, apt-get install postgresql-contrib';
  const output = `${poolerSpeed.name}: NOT RUN. ${missing}.`;
  return { report: { name: poolerSpeed.name, about, notRun: missing }, output, missed: 1 };
}

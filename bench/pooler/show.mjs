// @ts-check
// `headgate serve` and the PgBouncer of this machine before the same PostgreSQL: pgbench's SELECTs through both, in turns, clients
// that come and go, and many that do nothing; and what settings give that are off unless they are asked for.
import { getPriority } from 'node:os';
import { startEmbeddedPostgres } from '../../scripts/lib/embedded-postgres.mjs';
import { clientsAllowed, measureIdle } from './idle-memory.mjs';
import { fillDatabase, measure } from './pgbench.mjs';
import { findPgBouncer, mostClients, startHeadgate, startPgBouncer, versionOf } from './poolers.mjs';
import {
  formatCases,
  formatIdle,
  formatVariant,
  formatVisits,
  judgeIdle,
  judgeMixed,
  judgeShared,
  judgeUnshared,
  summarize,
  summarizeLoad,
  summarizeVisits,
} from './summary.mjs';

/**
 * @typedef {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres
 * @typedef {import('./pgbench.mjs').Protocol} Protocol
 * @typedef {import('./pgbench.mjs').Round} Round
 * @typedef {import('./poolers.mjs').PgBouncer} PgBouncer
 * @typedef {import('./poolers.mjs').RunningPooler} RunningPooler
 * @typedef {import('./summary.mjs').Case} Case
 * @typedef {import('./summary.mjs').Target} Target
 * @typedef {import('./summary.mjs').Variant} Variant
 * @typedef {import('./summary.mjs').VariantLoad} VariantLoad
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

/**
 * @typedef {object} VariantCase
 * @property {number} clients
 * @property {Protocol} protocol
 * @property {boolean} [isMixed] one statement in a hundred takes 50 ms
 * @property {(load: VariantLoad) => Target[]} [judge] none where there are no targets
 */

/**
 * A pooler that is set otherwise, and where that shows.
 * @typedef {object} VariantPlan
 * @property {string} setting
 * @property {Record<string, Record<string, unknown>>} settings
 * @property {VariantCase[]} loads
 * @property {(pooler: RunningPooler) => string | undefined} refusal why it has no effect here
 */

/** @type {VariantPlan[]} */
const variantPlans = [
  {
    setting: `process_priority ${priority}`,
    settings: { listen: { port: 0, priority } },
    loads: [
      { clients: 64, protocol: 'simple' },
      { clients: 256, protocol: 'extended' },
    ],
    refusal: ({ pid }) => (getPriority(pid) === priority ? undefined : 'the system refuses it'),
  },
  {
    setting: 'prepare_unnamed',
    settings: { pooling: { prepareUnnamed: true } },
    loads: [
      { clients: 16, protocol: 'extended' },
      { clients: 64, protocol: 'extended' },
      { clients: 256, protocol: 'extended' },
    ],
    refusal: () => undefined,
  },
  {
    setting: 'multiplex_depth 4',
    settings: { pooling: { multiplexDepth: 4 } },
    loads: [
      { clients: 16, protocol: 'simple', judge: judgeUnshared },
      ...[64, 256].flatMap((clients) =>
        protocols.map((protocol) => ({ clients, protocol, judge: judgeShared })),
      ),
      { clients: 64, protocol: 'simple', isMixed: true, judge: judgeMixed },
    ],
    refusal: () => undefined,
  },
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
    const { cases, visits, variants } = await race(database, pgbouncer, rounds, quick ? 3 : 6);
    const idle = await rest(database, pgbouncer);
    const targets = [...cases, ...variants.flatMap(({ loads }) => loads), idle].flatMap(
      (part) => part.targets,
    );
    const missed = targets.filter(({ ok }) => !ok);
    return {
      report: {
        name: poolerSpeed.name,
        about,
        pgbouncer: pgbouncer.version,
        rounds,
        cases,
        visits,
        variants,
        idle,
      },
      output: [
        `${poolerSpeed.name}: ${about}`,
        formatCases(cases, pgbouncer),
        formatVisits(visits),
        ...variants.map(formatVariant),
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
 * @returns {Promise<{ cases: Case[], visits: Visits, variants: Variant[] }>}
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
    const variants = [];
    for (const plan of variantPlans) variants.push(await tryVariant(database, plan, ours, theirs));
    return { cases, visits, variants };
  } finally {
    for (const pooler of poolers) await pooler.stop();
  }
}

/**
 * @param {EmbeddedPostgres} database
 * @param {VariantPlan} plan
 * @param {RunningPooler} ours
 * @param {RunningPooler} theirs
 * @returns {Promise<Variant>}
 */
async function tryVariant(database, { setting, settings, loads, refusal }, ours, theirs) {
  const other = await startHeadgate(database, { settings });
  try {
    const notRun = refusal(other);
    if (notRun !== undefined) return { setting, notRun, loads: [] };
    for (const protocol of new Set(loads.map((load) => load.protocol)))
      await oneRound(database, other, 16, protocol, 3);
    const measured = [];
    for (const { clients, protocol, isMixed = false, judge = () => [] } of loads) {
      /** @type {(pooler: RunningPooler) => Promise<Round>} */
      const load = (pooler) => oneRound(database, pooler, clients, protocol, sideSeconds, isMixed);
      const rounds = [];
      for (let round = 0; round < sideRounds; round++)
        rounds.push({ other: await load(other), ours: await load(ours), theirs: await load(theirs) });
      const summary = summarizeLoad(clients, protocol, isMixed, rounds);
      measured.push({ ...summary, targets: judge(summary) });
    }
    return { setting, notRun: undefined, loads: measured };
  } finally {
    await other.stop();
  }
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
 * @param {boolean} [isMixed]
 */
function oneRound(database, pooler, clients, protocol, seconds, isMixed = false) {
  const isPossible = protocol !== 'prepared' || pooler.preparesInTransactions;
  const load = { clients, protocol: isPossible ? protocol : 'extended', seconds, isMixed };
  return measure(database, pooler, load);
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

// @ts-check
// One budget of connections and many users: what `headgate serve` gives each of them, and what PgBouncer does with the same load
// and as many connections.
import { findPgBouncer } from '../pooler/poolers.mjs';
import { changingDemand, users as changingUsers } from './changing-demand.mjs';
import { warmUpUser } from './contestants.mjs';
import { verdicts } from './figures.mjs';
import { lookup } from './lookup.mjs';
import { users as crowdUsers, manyUsers } from './many-users.mjs';
import { newcomers } from './newcomers.mjs';
import { users as neighbours, noisyNeighbour } from './noisy-neighbour.mjs';
import { rebalancing } from './rebalancing.mjs';
import { Server } from './server.mjs';
import { sharingOut } from './sharing-out.mjs';
import { stackedLimits } from './stacked-limits.mjs';
import { twoWorkers } from './two-workers.mjs';
import { passingUsers, silentServer } from './undisturbed.mjs';

/**
 * Tools that a case is given.
 * @typedef {object} Stage
 * @property {Server} server
 * @property {import('../pooler/poolers.mjs').PgBouncer | undefined} pgbouncer
 * @property {boolean} quick
 * @property {number} rounds
 * @property {string} plotFolder
 */

/**
 * @typedef {object} Finished
 * @property {string} name
 * @property {string} about
 * @property {object[]} rows the figures
 * @property {import('./figures.mjs').Target[]} targets
 * @property {string} output
 */

/** @type {{ name: string, run: (stage: Stage) => Promise<Finished> }[]} */
const cases = [
  { name: 'noisy-neighbour', run: noisyNeighbour },
  ...manyUsers(),
  { name: 'newcomers', run: newcomers },
  { name: 'changing-demand', run: changingDemand },
  { name: 'lookup', run: lookup },
  { name: 'sharing-out', run: sharingOut },
  { name: 'rebalancing', run: rebalancing },
  { name: 'two-workers', run: twoWorkers },
  { name: 'stacked-limits', run: stackedLimits },
  { name: 'passing-users', run: passingUsers },
  { name: 'silent-server', run: silentServer },
];

export const fairShares = { name: 'fair-shares', cases: cases.map(({ name }) => name), run };

/**
 * @param {{ quick: boolean, rounds?: number | undefined, plotFolder: string, only?: string | undefined }} options
 * @returns {Promise<{ report: object, output: string, missed: number }>}
 */
async function run({ quick, rounds = quick ? 1 : 3, plotFolder, only }) {
  const chosen = only?.split(',') ?? fairShares.cases;
  const unknown = chosen.find((name) => !fairShares.cases.includes(name));
  if (unknown !== undefined)
    throw new Error(`${fairShares.name} has no ${unknown}; it has ${fairShares.cases.join(', ')}.`);
  const pgbouncer = findPgBouncer();
  const server = await Server.start([warmUpUser, ...neighbours, ...crowdUsers, ...changingUsers]);
  /** @type {Finished[]} */
  const finished = [];
  try {
    for (const { name, run } of cases)
      if (chosen.includes(name)) finished.push(await run({ server, pgbouncer, quick, rounds, plotFolder }));
  } finally {
    await server.stop();
  }
  const targets = finished.flatMap((show) => show.targets);
  const missing = pgbouncer === undefined ? 1 : 0;
  return {
    report: { name: fairShares.name, pgbouncer: pgbouncer?.version, cases: finished.map(withoutText) },
    output: [...(missing > 0 ? [notRun] : []), ...finished.map(format)].join('\n\n'),
    missed: targets.filter(({ ok }) => !ok).length + missing,
  };
}

const notRun = `${fairShares.name}: PgBouncer is not installed, so what compares with it was NOT RUN: on Debian and Ubuntu, apt-get install pgbouncer.`;

/** @param {Finished} show */
function format({ name, about, output, targets }) {
  return [`${fairShares.name}, ${name}: ${about}`, output, verdicts(targets)].join('\n');
}

/** @param {Finished} show */
function withoutText({ output: _, ...report }) {
  return report;
}

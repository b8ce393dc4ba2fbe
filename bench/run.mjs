// @ts-check
// The benchmark's command: node --expose-gc bench/run.mjs [filter...] [--rounds N] [--quick] [--json FILE] [--assert]
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../scripts/lib/embedded-postgres.mjs';
import { burstExpiry } from './burst-expiry/show.mjs';
import { hold } from './contest.mjs';
import { dsqlLocal } from './dsql-local/show.mjs';
import { dsqlTransactions } from './dsql-transactions/show.mjs';
import { fairShares } from './fair-shares/show.mjs';
import { groups } from './groups.mjs';
import { poolerSpeed } from './pooler/show.mjs';
import { formatTable, missedTargets, report } from './report.mjs';
import { simulatorSpeed } from './simulator.mjs';
import { soak } from './soak/show.mjs';

/**
 * @typedef {import('./groups.mjs').Group} Group
 * @typedef {import('../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres
 */

/**
 * @typedef {object} Finished
 * @property {object} report the figures
 * @property {string} output the same for people
 * @property {number} missed targets
 */

/** Everything that can be chosen by its name. */
const chapters = [
  ...groups.map((group) => ({
    name: group.name,
    needsDatabase: group.database === true,
    run: (/** @type {EmbeddedPostgres | undefined} */ database) => runGroup(group, database?.url),
  })),
  {
    name: burstExpiry.name,
    needsDatabase: true,
    run: (/** @type {EmbeddedPostgres | undefined} */ database) =>
      burstExpiry.run(/** @type {EmbeddedPostgres} */ (database), {
        quick: options.quick,
        plotFolder: options.plots,
      }),
  },
  {
    name: simulatorSpeed.name,
    needsDatabase: false,
    run: () => simulatorSpeed.run({ quick: options.quick }),
  },
  {
    name: poolerSpeed.name,
    needsDatabase: false,
    run: () => poolerSpeed.run({ quick: options.quick, rounds }),
  },
  {
    name: dsqlLocal.name,
    needsDatabase: false,
    run: () => dsqlLocal.run({ quick: options.quick, rounds }),
  },
  {
    name: dsqlTransactions.name,
    needsDatabase: false,
    run: () => dsqlTransactions.run({ quick: options.quick }),
  },
  {
    name: soak.name,
    needsDatabase: true,
    run: (/** @type {EmbeddedPostgres | undefined} */ database) =>
      soak.run(/** @type {EmbeddedPostgres} */ (database), { length: options.quick ? 'quick' : 'full' }),
  },
  {
    name: fairShares.name,
    needsDatabase: false,
    run: () =>
      fairShares.run({ quick: options.quick, rounds, plotFolder: options.plots, only: options.only }),
  },
];

const usage = `npm run bench -- [filter...] [options]
  filter          only these groups, or those whose names have this part: ${chapters.map(({ name }) => name).join(', ')}
  --rounds N      rounds of each group (its own number when not given)
  --quick         few and short rounds: good enough to see a factor of two
  --json FILE     also write the figures to FILE
  --plots DIR     where plots are written (bench/results)
  --only A,B      of fair-shares, only these: ${fairShares.cases.join(', ')}
  --profile DIR   leave a CPU profile of each contestant in DIR
  --assert        end with 1 when a target is missed`;

const { values: options, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    plots: { type: 'string', default: fileURLToPath(new URL('results', import.meta.url)) },
    only: { type: 'string' },
    profile: { type: 'string' },
    assert: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const rounds = options.rounds === undefined ? undefined : Number(options.rounds);

if (options.help) console.log(usage);
else process.exitCode = await main();

async function main() {
  const chosen = chapters.filter(
    ({ name }) => filters.length === 0 || filters.some((filter) => chooses(filter, name)),
  );
  if (chosen.length === 0 || (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0))) {
    console.error(usage);
    return 2;
  }
  const database = chosen.some(({ needsDatabase }) => needsDatabase)
    ? await startEmbeddedPostgres({ maxConnections: 150 })
    : undefined;
  /** @type {Finished[]} */
  const finished = [];
  try {
    for (const chapter of chosen) {
      const result = await chapter.run(database);
      console.log(`${result.output}\n`);
      finished.push(result);
    }
  } finally {
    await database?.stop();
  }
  if (options.json !== undefined) {
    const machine = { node: process.version, platform: `${process.platform} ${process.arch}` };
    const figures = { machine, groups: finished.map(({ report: figures }) => figures) };
    writeFileSync(options.json, `${JSON.stringify(figures, undefined, 2)}\n`);
  }
  const missed = finished.reduce((sum, group) => sum + group.missed, 0);
  console.log(missed === 0 ? 'Every target was reached.' : `${missed} target(s) were missed.`);
  return options.assert && missed > 0 ? 1 : 0;
}

/**
 * A whole name chooses that group alone, a part of names all that have it.
 * @param {string} filter
 * @param {string} name
 */
function chooses(filter, name) {
  return chapters.some((chapter) => chapter.name === filter) ? name === filter : name.includes(filter);
}

/**
 * @param {Group} group
 * @param {string | undefined} url
 * @returns {Promise<Finished>}
 */
async function runGroup(group, url) {
  const orders = group.entries.map((entry) => ({
    contestant: entry.contestant,
    workload: entry.workload ?? group.workload,
    milliseconds: options.quick ? group.milliseconds / 2 : group.milliseconds,
    ...(group.operations === undefined ? {} : { operations: group.operations }),
    ...(group.database === true && url !== undefined ? { url } : {}),
  }));
  const outcomes = await hold(orders, {
    rounds: rounds ?? (options.quick ? Math.ceil(group.rounds / 3) : group.rounds),
    freshProcess: group.workload === 'memory',
    profileFolder: options.profile,
  });
  const finished = report(group, outcomes);
  return { report: finished, output: formatTable(finished), missed: missedTargets(finished).length };
}

// @ts-check
// The benchmark's command: node --expose-gc bench/run.mjs [filter...] [--rounds N] [--quick] [--json FILE] [--assert]
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../scripts/lib/embedded-postgres.mjs';
import { hold } from './contest.mjs';
import { groups } from './groups.mjs';
import { formatTable, missedTargets, report } from './report.mjs';

/** @typedef {import('./groups.mjs').Group} Group */

const usage = `npm run bench -- [filter...] [options]
  filter          only these groups, or those whose names have this part: ${groups.map((group) => group.name).join(', ')}
  --rounds N      rounds of each group (its own number when not given)
  --quick         few and short rounds: good enough to see a factor of two
  --json FILE     also write the figures to FILE
  --profile DIR   leave a CPU profile of each contestant in DIR
  --assert        end with 1 when a target is missed`;

const { values: options, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    profile: { type: 'string' },
    assert: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (options.help) console.log(usage);
else process.exitCode = await main();

async function main() {
  const chosen = groups.filter(
    (group) => filters.length === 0 || filters.some((filter) => chooses(filter, group)),
  );
  const rounds = options.rounds === undefined ? undefined : Number(options.rounds);
  if (chosen.length === 0 || (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0))) {
    console.error(usage);
    return 2;
  }
  const database = chosen.some((group) => group.database)
    ? await startEmbeddedPostgres({ maxConnections: 150 })
    : undefined;
  const reports = [];
  try {
    for (const group of chosen) {
      const finished = await runGroup(group, rounds, database?.url);
      console.log(`${formatTable(finished)}\n`);
      reports.push(finished);
    }
  } finally {
    await database?.stop();
  }
  if (options.json !== undefined) {
    const machine = { node: process.version, platform: `${process.platform} ${process.arch}` };
    writeFileSync(options.json, `${JSON.stringify({ machine, groups: reports }, undefined, 2)}\n`);
  }
  const missed = reports.flatMap(missedTargets).length;
  console.log(missed === 0 ? 'Every target was reached.' : `${missed} target(s) were missed.`);
  return options.assert && missed > 0 ? 1 : 0;
}

/**
 * A whole name chooses that group alone, a part of names all that have it.
 * @param {string} filter
 * @param {Group} group
 */
function chooses(filter, group) {
  return groups.some(({ name }) => name === filter) ? group.name === filter : group.name.includes(filter);
}

/**
 * @param {Group} group
 * @param {number | undefined} rounds
 * @param {string | undefined} url
 */
async function runGroup(group, rounds, url) {
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
  return report(group, outcomes);
}

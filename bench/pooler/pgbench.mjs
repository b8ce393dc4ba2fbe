// @ts-check
// One run of pgbench against one pooler: what it got done, how long each answer took, and what the pooler spent on it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';

/** Of the distribution, with its clients. */
const program = 'pgbench';

/**
 * @typedef {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres
 * @typedef {import('./poolers.mjs').RunningPooler} RunningPooler
 * @typedef {'simple' | 'extended' | 'prepared'} Protocol
 */

/**
 * @typedef {object} Round
 * @property {number} perSecond
 * @property {number} cpuMicros processor time of the pooler, per query
 * @property {number} p99Ms
 */

const scale = '10';
/** Of the answers, so many are written down one by one. More would cost the clients' own time. */
const sampled = 0.1;

/** Reads as any other, but for the time that it takes: the text does not show that a view calls a function. */
const slowQuery = 'SELECT slept FROM sleeping;';
const slowSeconds = 0.05;
/** One statement in so many is slow. */
const slowOneIn = 100;

/** @param {EmbeddedPostgres} database */
export async function fillDatabase(database) {
  await pgbench(database, database.port, ['-i', '-q', '-s', scale]);
  const client = new pg.Client({ ...database, ssl: false });
  await client.connect();
  try {
    await client.query(`CREATE VIEW sleeping AS SELECT 1 AS slept FROM pg_sleep(${slowSeconds})`);
  } finally {
    await client.end();
  }
}

/**
 * Rate and processor time are those from pgbench's first report on, a second after all clients are in, to its last: logging
 * in is not in them.
 * @param {EmbeddedPostgres} database
 * @param {Pick<RunningPooler, 'port' | 'cpuSeconds'>} pooler
 * @param {{ clients: number, protocol: Protocol, seconds: number, reconnects?: boolean, isMixed?: boolean }} load `reconnects`: for each
 *   query; then it is in both, of course. `isMixed`: one statement in a hundred takes 50 ms; p99 is that of the others
 * @returns {Promise<Round>}
 */
export async function measure(
  database,
  pooler,
  { clients, protocol, seconds, reconnects = false, isMixed = false },
) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pgbench-'));
  try {
    /** @type {{ at: number, queries: number, cpuSeconds: number }[]} */
    const seen = [];
    await pgbench(
      database,
      pooler.port,
      [
        ...['-n', '-M', protocol, '-T', String(seconds), '-P', '1'],
        ...(isMixed ? mixedScripts(folder) : ['-S']),
        ...['-c', String(clients), '-j', String(Math.min(clients, 2)), ...(reconnects ? ['-C'] : [])],
        ...['-l', `--log-prefix=${join(folder, 'log')}`, `--sampling-rate=${sampled}`],
      ],
      (at, perSecond) => {
        const { at: before, queries } = seen.at(-1) ?? { at: 0, queries: 0 };
        seen.push({ at, queries: queries + perSecond * (at - before), cpuSeconds: pooler.cpuSeconds() });
      },
    );
    const [first] = seen;
    const last = seen.at(-1);
    if (first === undefined || last === undefined || first === last)
      throw new Error('pgbench did not say how it went.');
    const queries = last.queries - first.queries;
    return {
      perSecond: queries / (last.at - first.at),
      cpuMicros: (1e6 * (last.cpuSeconds - first.cpuSeconds)) / queries,
      p99Ms: percentile(latencies(folder), 0.99) / 1_000,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Options of pgbench. The short statement is the first script.
 * @param {string} folder
 */
function mixedScripts(folder) {
  const file = join(folder, 'slow.sql');
  writeFileSync(file, slowQuery);
  return ['-b', `select-only@${slowOneIn - 1}`, '-f', `${file}@1`];
}

/**
 * Times of the first script, in microseconds: the third word of each line. The fourth is the number of the script.
 * @param {string} folder
 */
function latencies(folder) {
  return readdirSync(folder)
    .filter((file) => file.startsWith('log'))
    .flatMap((file) =>
      readFileSync(join(folder, file), 'utf8')
        .split('\n')
        .map((line) => line.split(' '))
        .filter(([, , , script]) => script === '0')
        .map(([, , micros]) => Number(micros)),
    );
}

/**
 * @param {number[]} values
 * @param {number} share
 */
function percentile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
}

/**
 * @param {EmbeddedPostgres} database
 * @param {number} port
 * @param {string[]} args
 * @param {(seconds: number, perSecond: number) => void} [progressed]
 */
async function pgbench({ host, user, password, database }, port, args, progressed = () => {}) {
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      PGHOST: host,
      PGPORT: String(port),
      PGUSER: user,
      PGPASSWORD: password,
      PGDATABASE: database,
      PGSSLMODE: 'disable',
      PGGSSENCMODE: 'disable',
    },
  });
  let said = '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    const [, seconds, perSecond] = /^progress: ([\d.]+) s, ([\d.]+) tps/.exec(line) ?? [];
    if (seconds === undefined) said += `${line}\n`;
    else progressed(Number(seconds), Number(perSecond));
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`pgbench ${args.join(' ')} ended with ${code}: ${said}`);
}

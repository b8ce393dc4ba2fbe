// @ts-check
// Two processes of headgate serve, one budget: pgbench through them and through PgBouncer, in turns.

import { fillDatabase, measure } from '../pooler/pgbench.mjs';
import { versionOf } from '../pooler/poolers.mjs';
import { layOut } from '../table.mjs';
import { capacity, headgate, pgBouncer } from './contestants.mjs';
import { atLeast, count, inMs, median, times } from './figures.mjs';

/**
 * @typedef {import('../pooler/pgbench.mjs').Protocol} Protocol
 * @typedef {import('../pooler/pgbench.mjs').Round} Round
 * @typedef {import('../pooler/poolers.mjs').PgBouncer} PgBouncer
 * @typedef {import('./figures.mjs').Target} Target
 */

const clientCounts = [64, 256];
/** @type {Protocol[]} */
const protocols = ['simple', 'extended', 'prepared'];
const workers = 2;

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function twoWorkers({ server, pgbouncer, quick, rounds }) {
  const name = 'two-workers';
  const about = `pgbench -S through ${workers} workers, ${capacity} connections for both together`;
  if (pgbouncer === undefined || versionOf('pgbench') === undefined) {
    const missing = pgbouncer === undefined ? 'PgBouncer' : 'pgbench';
    const notRun = { wanted: `${missing} is installed`, reached: 'NOT RUN', ok: false };
    return { name, about, rows: [], targets: [notRun], output: `NOT RUN without ${missing}.` };
  }
  await fillDatabase(server.database);
  const rows = await race(server, pgbouncer, rounds, quick ? 3 : 5);
  return { name, about, rows, targets: rows.map(({ target }) => target), output: format(rows, pgbouncer) };
}

/**
 * @param {import('./server.mjs').Server} server
 * @param {PgBouncer} pgbouncer
 * @param {number} rounds
 * @param {number} seconds
 */
async function race(server, pgbouncer, rounds, seconds) {
  await server.empty();
  const ours = await headgate({ listen: { port: 0, workers } })(server);
  const theirs = await pgBouncer(pgbouncer)(server).catch(async (error) => {
    await ours.stop();
    throw error;
  });
  try {
    /** @type {(port: number, clients: number, protocol: Protocol, seconds: number) => Promise<Round>} */
    const load = (port, clients, protocol, time) =>
      measure(server.database, { port, cpuSeconds: () => 0 }, { clients, protocol, seconds: time });
    const theirsOf = (/** @type {Protocol} */ protocol) =>
      protocol === 'prepared' && !pgbouncer.preparesInTransactions ? 'extended' : protocol;
    await load(ours.port, 16, 'simple', 3);
    const rows = [];
    for (const clients of clientCounts)
      for (const protocol of protocols) {
        const pairs = [];
        for (let round = 0; round < rounds; round++)
          pairs.push({
            ours: await load(ours.port, clients, protocol, seconds),
            theirs: await load(theirs.port, clients, theirsOf(protocol), seconds),
          });
        rows.push(summarize(clients, protocol, pairs));
      }
    return rows;
  } finally {
    await ours.stop();
    await theirs.stop();
    await server.empty();
  }
}

/**
 * @param {number} clients
 * @param {Protocol} protocol
 * @param {{ ours: Round, theirs: Round }[]} pairs measured next to each other
 */
function summarize(clients, protocol, pairs) {
  const ratio = median(pairs.map(({ ours, theirs }) => ours.perSecond / theirs.perSecond));
  return {
    clients,
    protocol,
    perSecond: median(pairs.map(({ ours }) => ours.perSecond)),
    theirPerSecond: median(pairs.map(({ theirs }) => theirs.perSecond)),
    ratio,
    p99Ms: median(pairs.map(({ ours }) => ours.p99Ms)),
    theirP99Ms: median(pairs.map(({ theirs }) => theirs.p99Ms)),
    target: atLeast(`${protocol}, ${clients} clients`, ratio, 1, times),
  };
}

/**
 * @param {ReturnType<typeof summarize>[]} rows
 * @param {PgBouncer} pgbouncer
 */
function format(rows, { version, preparesInTransactions }) {
  const mark = preparesInTransactions ? '' : ' *';
  const cells = rows.map((row) => [
    String(row.clients),
    row.protocol === 'prepared' ? `prepared${mark}` : row.protocol,
    count(row.perSecond),
    count(row.theirPerSecond),
    times(row.ratio),
    inMs(row.p99Ms),
    inMs(row.theirP99Ms),
  ]);
  const header = ['clients', 'protocol', 'queries/s', `PgBouncer ${version}`, 'ratio', 'p99', 'its'];
  const note = `* PgBouncer ${version} has no prepared statements with transaction pooling: its figures are those of the extended protocol.`;
  return [layOut(header, cells, [0, 2, 3, 4, 5, 6]), ...(mark === '' ? [] : [note])].join('\n');
}

// @ts-check
// One user has 200 clients that never rest, another has four with short queries: what the second sees, alone and beside the
// first.
import { layOut } from '../table.mjs';
import { capacity, headgate, pgBouncer, tunedForUser, withContestant } from './contestants.mjs';
import { runCrowds } from './crowd.mjs';
import { atMost, count, inMs, median, times } from './figures.mjs';

/**
 * @typedef {import('./contestants.mjs').Contestant} Contestant
 * @typedef {import('./contestants.mjs').StartContestant} StartContestant
 * @typedef {import('./server.mjs').Server} Server
 * @typedef {import('./tally.mjs').GroupSummary} GroupSummary
 */

/** @typedef {{ alone: GroupSummary, beside: GroupSummary, noisy: GroupSummary }} Round */

export const users = ['noisy', 'quiet'];
const noisyClients = 200;
const quietClients = 4;
/** The noisy one begins so much before the other. */
const leadMs = 1_000;
const mostTimes = 3;

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function noisyNeighbour({ server, pgbouncer, quick, rounds }) {
  const seconds = quick ? 4 : 8;
  /** @type {StartContestant[]} */
  const starts = [headgate()];
  if (pgbouncer !== undefined) {
    const tuned = { max_user_connections: tunedForUser };
    starts.push(
      pgBouncer(pgbouncer),
      pgBouncer(pgbouncer, tuned, `, max_user_connections = ${tunedForUser}`),
    );
  }
  const rows = [];
  for (const start of starts)
    rows.push(await withContestant(server, start, (contestant) => play(server, contestant, rounds, seconds)));
  const ours = /** @type {Awaited<ReturnType<typeof play>>} */ (rows[0]);
  const targets = [
    atMost('p99 beside a noisy neighbour', ours.ratio, mostTimes, times),
    atMost('connections', ours.mostConnections, capacity, count),
  ];
  const about = `${noisyClients} clients of pg_sleep(0.01), and another user's ${quietClients} of select 1, on ${capacity} connections`;
  return { name: 'noisy-neighbour', about, rows, targets, output: format(rows, seconds) };
}

/**
 * @param {Server} server
 * @param {Contestant} contestant
 * @param {number} rounds
 * @param {number} seconds
 */
async function play(server, contestant, rounds, seconds) {
  const { port, database, title } = contestant;
  const load = { port, database, comesLoggedIn: true };
  const quiet = { user: 'quiet', clients: quietClients, text: 'select 1' };
  const noisy = { user: 'noisy', clients: noisyClients, text: 'select pg_sleep(0.01)' };
  await runCrowds([{ orders: { ...load, seconds: 2, groups: [quiet] } }]);
  server.takeMost();
  /** @type {Round[]} */
  const played = [];
  for (let round = 0; round < rounds; round++) {
    const [alone] = await runCrowds([{ orders: { ...load, seconds, groups: [quiet] } }]);
    const [loud, beside] = await runCrowds([
      { orders: { ...load, seconds: seconds + leadMs / 1_000, groups: [noisy] } },
      { orders: { ...load, seconds, groups: [quiet] }, afterMs: leadMs },
    ]);
    played.push({ alone: only(alone), beside: only(beside), noisy: only(loud) });
  }
  return {
    title,
    rounds: played,
    mostConnections: server.takeMost(),
    ratio: median(played.map(({ alone, beside }) => beside.waitMs.p99 / alone.waitMs.p99)),
  };
}

/** @param {{ groups: GroupSummary[] } | undefined} outcome */
function only(outcome) {
  return /** @type {GroupSummary} */ (outcome?.groups[0]);
}

/**
 * @param {Awaited<ReturnType<typeof play>>[]} rows
 * @param {number} seconds
 */
function format(rows, seconds) {
  const header = ['', 'alone: answers/s', 'p50', 'p99', 'beside: answers/s', 'p50', 'p99', 'p99 / alone'];
  header.push('clients without an answer', 'oldest open', 'noisy answers/s', 'connections');
  const cells = rows.map(({ title, rounds, ratio, mostConnections }) => {
    const middle = (/** @type {(round: Round) => number} */ figure) => median(rounds.map(figure));
    return [
      title,
      count(middle(({ alone }) => alone.answers) / seconds),
      inMs(middle(({ alone }) => alone.waitMs.p50)),
      inMs(middle(({ alone }) => alone.waitMs.p99)),
      count(middle(({ beside }) => beside.answers) / seconds),
      inMs(middle(({ beside }) => beside.waitMs.p50)),
      inMs(middle(({ beside }) => beside.waitMs.p99)),
      times(ratio),
      String(Math.max(...rounds.map(({ beside }) => beside.neverAnswered))),
      inMs(Math.max(...rounds.map(({ beside }) => beside.oldestOpenMs))),
      count(middle(({ noisy }) => noisy.answers) / (seconds + leadMs / 1_000)),
      String(mostConnections),
    ];
  });
  return layOut(
    header,
    cells,
    header.map((_, column) => column).filter((column) => column > 0),
  );
}

// @ts-check
// All connections are busy with one user's queries, and others come who were never there: how long it takes until they have
// their first answer.
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { layOut } from '../table.mjs';
import { capacity, headgate, pgBouncer, withContestant } from './contestants.mjs';
import { answerOf, Crowd } from './crowd.mjs';
import { atMost, count, inMs, percentile } from './figures.mjs';
import { users } from './many-users.mjs';

/**
 * @typedef {import('./contestants.mjs').Contestant} Contestant
 * @typedef {import('./contestants.mjs').StartContestant} StartContestant
 * @typedef {import('./newcomers-process.mjs').Arrival} Arrival
 * @typedef {import('./newcomers-process.mjs').NewcomerOrders} NewcomerOrders
 * @typedef {import('./server.mjs').Server} Server
 */

const program = fileURLToPath(new URL('newcomers-process.mjs', import.meta.url));
const noisyClients = 200;
const mostMs = 100;
/** So long one waits. It is the limit of a user's patience, and not what is wanted. */
const limitMs = 2_000;
const totalMs = 30_000;
const leadMs = 1_000;

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function newcomers({ server, pgbouncer, quick }) {
  const wanted = quick ? 60 : users.length;
  /** @type {StartContestant[]} */
  const starts = [headgate(), ...(pgbouncer === undefined ? [] : [pgBouncer(pgbouncer)])];
  const rows = [];
  for (const start of starts)
    rows.push(await withContestant(server, start, (contestant) => play(server, contestant, wanted)));
  const ours = /** @type {Awaited<ReturnType<typeof play>>} */ (rows[0]);
  const targets = [
    atMost('arrivals without an answer', wanted - ours.answered, 0, count),
    atMost('p99 from the query to its answer', ours.queryMs.p99, mostMs, inMs),
    atMost('p99 from connecting to the answer', ours.firstAnswerMs.p99, mostMs, inMs),
    atMost('connections', ours.mostConnections, capacity, count),
  ];
  const about = `the first answer of ${wanted} users who come one after the other, ${capacity} connections full of another's pg_sleep(0.01)`;
  return { name: 'newcomers', about, rows, targets, output: format(rows) };
}

/**
 * @param {Server} server
 * @param {Contestant} contestant
 * @param {number} wanted
 */
async function play(server, { port, database, title }, wanted) {
  const groups = [{ user: 'noisy', clients: noisyClients, text: 'select pg_sleep(0.01)' }];
  const seconds = (leadMs + totalMs + limitMs) / 1_000 + 5;
  const crowd = await Crowd.gather({ port, database, seconds, comesLoggedIn: true, groups });
  try {
    // The crowd goes on until it is dismissed, and its figures are not used.
    crowd.run().catch(() => {});
    await sleep(leadMs);
    const { arrivals } = await come({ port, database, users: users.slice(0, wanted), limitMs, totalMs });
    return { title, ...summarize(arrivals), mostConnections: server.takeMost() };
  } finally {
    await crowd.dismiss();
  }
}

/**
 * @param {NewcomerOrders} orders
 * @returns {Promise<{ arrivals: Arrival[] }>}
 */
async function come(orders) {
  const child = fork(program, [JSON.stringify(orders)], { serialization: 'advanced' });
  return /** @type {{ arrivals: Arrival[] }} */ (await answerOf(child));
}

/** @param {Arrival[]} arrivals those without an answer count with as long as they have waited */
function summarize(arrivals) {
  const error = arrivals.find((arrival) => arrival.error !== undefined)?.error;
  return {
    arrivals: arrivals.length,
    answered: arrivals.filter(({ isAnswered }) => isAnswered).length,
    ...(error === undefined ? {} : { error }),
    queryMs: spread(arrivals.map(({ queryMs }) => queryMs)),
    firstAnswerMs: spread(arrivals.map(({ firstAnswerMs }) => firstAnswerMs)),
  };
}

/** @param {number[]} values */
function spread(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: percentile(sorted, 1) };
}

/** @param {Awaited<ReturnType<typeof play>>[]} rows */
function format(rows) {
  const header = ['', 'arrivals', 'answered', 'query: p50', 'p99', 'max', 'with login: p50', 'p99', 'max'];
  header.push('connections');
  const cells = rows.map(({ title, arrivals, answered, queryMs, firstAnswerMs, mostConnections }) => [
    title,
    String(arrivals),
    String(answered),
    ...[queryMs.p50, queryMs.p99, queryMs.max].map(inMs),
    ...[firstAnswerMs.p50, firstAnswerMs.p99, firstAnswerMs.max].map(inMs),
    String(mostConnections),
  ]);
  const failed = rows
    .filter(({ error }) => error !== undefined)
    .map(({ title, error }) => `${title}: ${error}`);
  return [layOut(header, cells, [1, 2, 3, 4, 5, 6, 7, 8, 9]), ...failed].join('\n');
}

// @ts-check
// Several limits on the same connections, and several workers: 40 users on 20 connections are to be served as with one limit and one process.
import { layOut } from '../table.mjs';
import { capacity, headgate, withContestant } from './contestants.mjs';
import { runCrowds } from './crowd.mjs';
import { atLeast, atMost, count, hundredths, inMs, jainIndex, median, times } from './figures.mjs';
import { users } from './many-users.mjs';

/**
 * @typedef {import('./server.mjs').Server} Server
 * @typedef {Record<string, Record<string, unknown>>} Settings
 */

/**
 * @typedef {object} Variant
 * @property {string} title
 * @property {(server: Server) => Settings} settings
 * @property {(name: string) => string[]} [databases] in which each user has its clients; the usual one where it is left out
 * @property {number} [users]
 * @property {boolean} [isSplit] each user is in one of the databases only
 */

/**
 * @typedef {object} Round
 * @property {number} jain
 * @property {number} starved
 * @property {number} longestWaitMs
 * @property {number} perSecond
 * @property {number} errors
 * @property {number} mostConnections
 */

const text = 'select pg_sleep(0.005)';
const clients = 4;
const leastJain = 0.98;
/** Of the longest wait with one limit, in the same minutes: what several limits may take, and what workers may. */
const mostForLimits = 1.3;

/**
 * The same database under several names, each with this limit.
 * @param {Server} server
 * @param {string[]} names
 * @param {number} [maxDbConnections]
 */
function databasesOf({ database: { port, password, database } }, names, maxDbConnections) {
  const one = { host: '127.0.0.1', port, password, dbname: database, maxDbConnections };
  return Object.fromEntries(names.map((name) => [name, one]));
}

const two = ['first', 'second'];
const four = ['first', 'second', 'third', 'fourth'];

/** @type {Variant[]} */
const variants = [
  { title: 'one limit', settings: () => ({}) },
  { title: 'and the same for the database', settings: () => ({ limits: { maxDbConnections: capacity } }) },
  {
    title: 'and half of it for each of two databases',
    settings: (server) => ({ databases: databasesOf(server, two, capacity / 2) }),
    databases: () => two,
    isSplit: true,
  },
  {
    title: 'and 2 for each of 10 users in 4 databases',
    settings: (server) => ({
      databases: databasesOf(server, four),
      limits: { maxUserConnections: 2 },
    }),
    databases: () => four,
    users: 10,
  },
  {
    title: 'and the same for the database, 2 workers',
    settings: () => ({ limits: { maxDbConnections: capacity }, listen: { port: 0, workers: 2 } }),
  },
  { title: 'one limit, 2 workers', settings: () => ({ listen: { port: 0, workers: 2 } }) },
  { title: 'one limit, 4 workers', settings: () => ({ listen: { port: 0, workers: 4 } }) },
];

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function stackedLimits({ server, quick, rounds }) {
  const seconds = quick ? 8 : 15;
  /** @type {{ title: string, rounds: Round[] }[]} */
  const rows = variants.map(({ title }) => ({ title, rounds: [] }));
  for (let round = 0; round < rounds; round++)
    for (const [index, variant] of variants.entries())
      await withContestant(server, headgate(variant.settings(server)), async ({ port, database }) => {
        rows[index]?.rounds.push(await play(variant, server, port, database, seconds));
      });
  const [control, ...others] = rows;
  const targets = others.flatMap(({ title, rounds: played }) => judge(title, played, control?.rounds ?? []));
  const about = `40 users x ${clients} of ${text}, all at once, on ${capacity} connections, ${seconds} s`;
  return { name: 'stacked-limits', about, rows, targets, output: format(rows) };
}

/**
 * @param {Variant} variant
 * @param {Server} server
 * @param {number} port
 * @param {string} database
 * @param {number} seconds
 * @returns {Promise<Round>}
 */
async function play(variant, server, port, database, seconds) {
  const names = variant.databases?.(database) ?? [database];
  const all = users.slice(0, variant.users ?? 40);
  server.takeMost();
  const outcomes = await runCrowds(
    names.map((name, index) => ({
      orders: {
        port,
        database: name,
        seconds,
        comesLoggedIn: false,
        groups: all
          .filter((_, n) => variant.isSplit !== true || n % names.length === index)
          .map((user) => ({ user, clients, text })),
      },
    })),
  );
  const seen = outcomes.flatMap(({ groups }) => groups);
  const answers = seen.map((group) => group.answers);
  return {
    jain: jainIndex(answers),
    starved: answers.filter((number) => number === 0).length,
    longestWaitMs: Math.max(...seen.map(({ waitMs }) => waitMs.max)),
    perSecond: answers.reduce((a, b) => a + b, 0) / seconds,
    errors: seen.reduce((sum, { errors }) => sum + errors, 0),
    mostConnections: server.takeMost(),
  };
}

/**
 * @param {string} title
 * @param {Round[]} rounds
 * @param {Round[]} control of the same minutes
 */
function judge(title, rounds, control) {
  const longer = rounds.map((round, n) => round.longestWaitMs / (control[n]?.longestWaitMs ?? Number.NaN));
  return [
    atLeast(`${title}: Jain index`, Math.min(...rounds.map(({ jain }) => jain)), leastJain, hundredths),
    atMost(`${title}: longest wait, of that with one limit`, median(longer), mostForLimits, times),
    atMost(`${title}: errors`, Math.max(...rounds.map(({ errors }) => errors)), 0, count),
    atMost(
      `${title}: connections`,
      Math.max(...rounds.map(({ mostConnections }) => mostConnections)),
      capacity,
      count,
    ),
  ];
}

/** @param {{ title: string, rounds: Round[] }[]} rows */
function format(rows) {
  const header = [
    '',
    'answers/s',
    'Jain index',
    'without an answer',
    'longest wait',
    'errors',
    'connections',
  ];
  const cells = rows.map(({ title, rounds }) => {
    const worst = (/** @type {keyof Round} */ figure) => Math.max(...rounds.map((round) => round[figure]));
    return [
      title,
      count(median(rounds.map(({ perSecond }) => perSecond))),
      Math.min(...rounds.map(({ jain }) => jain)).toFixed(3),
      String(worst('starved')),
      inMs(worst('longestWaitMs')),
      String(worst('errors')),
      String(worst('mostConnections')),
    ];
  });
  return layOut(header, cells, [1, 2, 3, 4, 5, 6]);
}

// @ts-check
// More users than connections, all arriving at once: what each of them gets, how long the longest wait is, and what all get
// done together.
import { layOut } from '../table.mjs';
import { capacity, direct, headgate, pgBouncer, withContestant } from './contestants.mjs';
import { runCrowds } from './crowd.mjs';
import { atLeast, atMost, count, hundredths, inMs, jainIndex, median, times } from './figures.mjs';

/**
 * @typedef {import('./contestants.mjs').Contestant} Contestant
 * @typedef {import('./contestants.mjs').StartContestant} StartContestant
 * @typedef {import('./figures.mjs').Target} Target
 * @typedef {import('./server.mjs').Server} Server
 * @typedef {import('./show.mjs').Stage} Stage
 * @typedef {import('./show.mjs').Finished} Finished
 */

/**
 * @typedef {object} Crowding
 * @property {string} name
 * @property {number} users
 * @property {number} clients of each
 * @property {string} text
 * @property {number} seconds also in a quick run: the index is about this time
 * @property {boolean} isTimed there are targets for the longest wait and for the total
 */

/**
 * @typedef {object} Round
 * @property {number} perSecond
 * @property {number} jain
 * @property {number} starved users without an answer
 * @property {number} longestWaitMs those without an answer included
 * @property {number} firstAnswerMs of the median user
 * @property {number} errors
 * @property {number} mostConnections
 * @property {number} stalledMs
 */

const leastJain = 0.95;
const longestWaitMs = 2_000;

/** @type {Crowding[]} */
const crowdings = [
  { name: 'fifty-users', users: 50, clients: 4, text: 'select 1', seconds: 10, isTimed: true },
  {
    name: 'fifty-users-slow',
    users: 50,
    clients: 4,
    text: 'select pg_sleep(0.01)',
    seconds: 10,
    isTimed: true,
  },
  { name: 'two-hundred-users', users: 200, clients: 1, text: 'select 1', seconds: 20, isTimed: false },
];

export const users = Array.from({ length: 200 }, (_, index) => `user_${index}`);

/** @returns {{ name: string, run: (stage: Stage) => Promise<Finished> }[]} */
export function manyUsers() {
  return crowdings.map((crowding) => ({ name: crowding.name, run: (stage) => crowd(crowding, stage) }));
}

/**
 * @param {Crowding} crowding
 * @param {Stage} stage
 * @returns {Promise<Finished>}
 */
async function crowd(crowding, { server, pgbouncer, rounds }) {
  /** @type {StartContestant[]} */
  const starts = [headgate(), ...(pgbouncer === undefined ? [] : [pgBouncer(pgbouncer)]), direct];
  /** @type {{ title: string, rounds: Round[] }[]} */
  const rows = starts.map(() => ({ title: '', rounds: [] }));
  for (let round = 0; round < rounds; round++)
    for (const [index, start] of starts.entries()) {
      const row = /** @type {{ title: string, rounds: Round[] }} */ (rows[index]);
      await withContestant(server, start, async (contestant) => {
        row.title = contestant.title;
        row.rounds.push(await play(crowding, server, contestant));
      });
    }
  const [ours, theirs] = rows.map((row) => row.rounds);
  const { name, clients, text, seconds } = crowding;
  return {
    name,
    about: `${crowding.users} users x ${clients} of ${text}, all at once, on ${capacity} connections, ${seconds} s`,
    rows,
    targets: judge(crowding, ours ?? [], pgbouncer === undefined ? undefined : theirs),
    output: format(rows),
  };
}

/**
 * @param {Crowding} crowding
 * @param {Server} server
 * @param {Contestant} contestant
 * @returns {Promise<Round>}
 */
async function play(crowding, server, { port, database }) {
  const { seconds } = crowding;
  const groups = users
    .slice(0, crowding.users)
    .map((user) => ({ user, clients: crowding.clients, text: crowding.text }));
  server.takeMost();
  const [outcome] = await runCrowds([{ orders: { port, database, seconds, comesLoggedIn: false, groups } }]);
  const seen = outcome?.groups ?? [];
  const answers = seen.map((group) => group.answers);
  return {
    perSecond: answers.reduce((a, b) => a + b, 0) / seconds,
    jain: jainIndex(answers),
    starved: answers.filter((number) => number === 0).length,
    longestWaitMs: Math.max(...seen.map(({ waitMs }) => waitMs.max)),
    firstAnswerMs: median(seen.map(({ firstAnswerMs }) => firstAnswerMs)),
    errors: seen.reduce((sum, { errors }) => sum + errors, 0),
    mostConnections: server.takeMost(),
    stalledMs: outcome?.stalledMs ?? 0,
  };
}

/**
 * The worst of the rounds counts; for the total it is the median of each round's ratio.
 * @param {Crowding} crowding
 * @param {Round[]} ours
 * @param {Round[] | undefined} theirs
 * @returns {Target[]}
 */
function judge({ isTimed }, ours, theirs) {
  const targets = [
    atLeast('Jain index', Math.min(...ours.map(({ jain }) => jain)), leastJain, hundredths),
    atMost('users without an answer', Math.max(...ours.map(({ starved }) => starved)), 0, count),
    atMost('errors', Math.max(...ours.map(({ errors }) => errors)), 0, count),
    atMost('connections', Math.max(...ours.map(({ mostConnections }) => mostConnections)), capacity, count),
  ];
  if (!isTimed) return targets;
  const longest = Math.max(...ours.map((round) => round.longestWaitMs));
  targets.push(atMost('longest wait', longest, longestWaitMs, inMs));
  if (theirs !== undefined) {
    const ratios = ours.map(({ perSecond }, round) => perSecond / (theirs[round]?.perSecond ?? Number.NaN));
    targets.push(atLeast("total of PgBouncer's", median(ratios), 1, times));
  }
  return targets;
}

/** @param {{ title: string, rounds: Round[] }[]} rows */
function format(rows) {
  const header = ['', 'answers/s', 'Jain index', 'users without an answer', 'longest wait', 'first answer'];
  header.push('errors', 'connections', 'load stalled');
  const cells = rows.map(({ title, rounds }) => {
    const worst = (/** @type {keyof Round} */ figure) => Math.max(...rounds.map((round) => round[figure]));
    return [
      title,
      count(median(rounds.map(({ perSecond }) => perSecond))),
      Math.min(...rounds.map(({ jain }) => jain)).toFixed(3),
      String(worst('starved')),
      inMs(worst('longestWaitMs')),
      inMs(median(rounds.map(({ firstAnswerMs }) => firstAnswerMs))),
      String(worst('errors')),
      String(worst('mostConnections')),
      inMs(worst('stalledMs')),
    ];
  });
  return layOut(header, cells, [1, 2, 3, 4, 5, 6, 7, 8]);
}

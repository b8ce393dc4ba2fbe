// @ts-check
// One user works, and others are there who could be in its way: users who come with one query each and go, and users of a server that
// accepts connections and never answers. Compared with what it gets done alone, in the same minutes.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { layOut } from '../table.mjs';
import { headgate, withContestant } from './contestants.mjs';
import { runCrowds } from './crowd.mjs';
import { atLeast, atMost, count, inMs, median, times } from './figures.mjs';
import { users } from './many-users.mjs';

/**
 * @typedef {import('./server.mjs').Server} Server
 * @typedef {import('./load-process.mjs').LoadGroup} LoadGroup
 */

/**
 * @typedef {object} Round
 * @property {number} alone answers a second
 * @property {number} beside
 * @property {number} passingMs the longest wait of those who came by
 * @property {number} mostConnections
 */

const worker = 'worker';
const text = 'select pg_sleep(0.01)';
const leastRate = 0.8;
const everyMs = 20;

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function passingUsers({ server, quick, rounds }) {
  const seconds = quick ? 8 : 15;
  const capacity = 10;
  /** @type {LoadGroup} */
  const busy = { user: users[0] ?? worker, clients: 8, text };
  const passing = Array.from({ length: Math.floor((1_000 * seconds) / everyMs) }, (_, n) => ({
    user: users[1 + (n % (users.length - 1))] ?? worker,
    clients: 1,
    text: 'select 1',
    fromMs: n * everyMs,
    untilMs: n * everyMs + 1,
  }));
  const settings = { fairShares: { capacity } };
  /** @type {Round[]} */
  const played = [];
  for (let round = 0; round < rounds; round++)
    await withContestant(server, headgate(settings), async ({ port, database }) => {
      const orders = { port, database, seconds, comesLoggedIn: false };
      const [alone] = await runCrowds([{ orders: { ...orders, groups: [busy] } }]);
      server.takeMost();
      const [mixed, others] = await runCrowds([
        { orders: { ...orders, groups: [busy] } },
        { orders: { ...orders, groups: passing } },
      ]);
      played.push({
        alone: rateOf(alone, seconds),
        beside: rateOf(mixed, seconds),
        passingMs: Math.max(...(others?.groups ?? []).map(({ waitMs }) => waitMs.max)),
        mostConnections: server.takeMost(),
      });
    });
  return {
    name: 'passing-users',
    about: `8 clients of one user with ${text}, ${1_000 / everyMs} users a second with one query each, ${capacity} connections`,
    rows: played,
    targets: judge(played, capacity),
    output: format(played),
  };
}

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function silentServer({ server, quick, rounds }) {
  const seconds = quick ? 15 : 35;
  const capacity = 20;
  const deaf = createServer(() => {}).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  const { port: deafPort } = /** @type {import('node:net').AddressInfo} */ (deaf.address());
  const { port: serverPort, password, database: name } = server.database;
  const settings = {
    fairShares: { capacity },
    databases: {
      [name]: { host: '127.0.0.1', port: serverPort, password },
      dead: { host: '127.0.0.1', port: deafPort, password },
    },
  };
  const healthy = { user: users[0] ?? worker, clients: 10, text };
  const lost = users.slice(1, 41).map((user) => ({ user, clients: 4, text }));
  /** @type {Round[]} */
  const played = [];
  try {
    for (let round = 0; round < rounds; round++)
      await withContestant(server, headgate(settings), async ({ port, database }) => {
        const orders = { port, database, seconds, comesLoggedIn: false };
        const [alone] = await runCrowds([{ orders: { ...orders, groups: [healthy] } }]);
        server.takeMost();
        const [mixed] = await runCrowds([
          { orders: { ...orders, groups: [healthy] }, afterMs: 500 },
          { orders: { ...orders, database: 'dead', groups: lost } },
        ]);
        played.push({
          alone: rateOf(alone, seconds),
          beside: rateOf(mixed, seconds),
          passingMs: 0,
          mostConnections: server.takeMost(),
        });
      });
  } finally {
    deaf.close();
  }
  return {
    name: 'silent-server',
    about: `10 clients of one user with ${text}, 40 users x 4 of a server that accepts and never answers, ${capacity} connections`,
    rows: played,
    targets: judge(played, capacity),
    output: format(played),
  };
}

/**
 * @param {import('./load-process.mjs').LoadOutcome | undefined} outcome
 * @param {number} seconds
 */
function rateOf(outcome, seconds) {
  return (outcome?.groups[0]?.answers ?? 0) / seconds;
}

/**
 * @param {Round[]} rounds
 * @param {number} capacity
 */
function judge(rounds, capacity) {
  const most = Math.max(...rounds.map(({ mostConnections }) => mostConnections));
  return [
    atLeast(
      'its rate, of that alone',
      median(rounds.map(({ alone, beside }) => beside / alone)),
      leastRate,
      times,
    ),
    atMost('connections', most, capacity, count),
  ];
}

/** @param {Round[]} rounds */
function format(rounds) {
  const cells = rounds.map(({ alone, beside, passingMs, mostConnections }, n) => [
    `round ${n + 1}`,
    count(alone),
    count(beside),
    times(beside / alone),
    inMs(passingMs),
    String(mostConnections),
  ]);
  return layOut(
    ['', 'alone/s', 'beside/s', 'ratio', 'longest wait of others', 'connections'],
    cells,
    [1, 2, 3, 4, 5],
  );
}

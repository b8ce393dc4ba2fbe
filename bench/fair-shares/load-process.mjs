// @ts-check
// The clients of one load, in a process of its own: each asks, waits for the answer, and asks again. They are as many as was
// ordered and stop when the time is over, whatever has come by then.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadClient, queryMessage } from './load-client.mjs';
import { Tally } from './tally.mjs';

/**
 * @typedef {object} LoadGroup
 * @property {string} user
 * @property {number} clients
 * @property {string} text of the query
 * @property {number} [pauseMs] between an answer and the next query
 * @property {number} [fromMs] when they come, or begin to ask
 * @property {number} [untilMs] when they ask no more
 */

/**
 * @typedef {object} LoadOrders
 * @property {number} port
 * @property {string} database
 * @property {number} seconds
 * @property {boolean} comesLoggedIn before the time begins. Otherwise each connects when it comes, and its first wait is
 *   from there to its first answer.
 * @property {LoadGroup[]} groups
 */

/** @typedef {{ groups: import('./tally.mjs').GroupSummary[], stalledMs: number }} LoadOutcome */

const mostClients = 2_000;
const mostSeconds = 120;
const loginMs = 30_000;

class Group {
  /** @type {LoadClient[]} */
  clients = [];
  #orders;
  #tally;
  #isOver = false;

  /** @param {LoadGroup} orders */
  constructor(orders) {
    this.#orders = orders;
    this.#tally = new Tally(orders.user, 0);
  }

  /** All log in. Rejects if one can't. */
  async logIn(/** @type {LoadOrders} */ orders) {
    await new Promise((resolve, reject) => {
      let missing = this.#orders.clients;
      const loggedIn = () => {
        missing -= 1;
        if (missing === 0) resolve(undefined);
      };
      this.#connect(orders, loggedIn, (why) => reject(new Error(`A client could not log in: ${why}`)));
    });
  }

  /**
   * The time begins.
   * @param {LoadOrders} orders
   * @param {number} now
   */
  start(orders, now) {
    this.#tally = new Tally(this.#orders.user, now);
    const { fromMs = 0, untilMs } = this.#orders;
    const begin = () => (orders.comesLoggedIn ? this.#askAll() : this.#arrive(orders));
    if (fromMs > 0) setTimeout(begin, fromMs);
    else begin();
    if (untilMs !== undefined) setTimeout(() => this.stop(), untilMs);
  }

  #askAll() {
    for (const client of this.clients) client.ask();
  }

  /** Clients connect now, and ask as soon as they are logged in. */
  #arrive(/** @type {LoadOrders} */ orders) {
    const now = performance.now();
    this.#connect(
      orders,
      (client) => client.ask(now),
      () => {},
    );
    for (const client of this.clients) {
      client.askedAt = now;
      client.isAsking = true;
    }
  }

  stop() {
    this.#isOver = true;
  }

  /** @param {number} now */
  summary(now) {
    return this.#tally.summary(this.clients, now);
  }

  /**
   * @param {LoadOrders} orders
   * @param {(client: LoadClient) => void} loggedIn
   * @param {(why: string) => void} lost
   */
  #connect({ port, database }, loggedIn, lost) {
    const { user, clients, text, pauseMs = 0 } = this.#orders;
    const query = queryMessage(text);
    const listener = {
      loggedIn,
      answered: (/** @type {LoadClient} */ client, /** @type {boolean} */ failed) => {
        if (failed) this.#tally.failed('A query was answered with an error.');
        else this.#tally.answered(client.askedAt, performance.now());
        if (this.#isOver) client.leave();
        else if (pauseMs === 0) client.ask();
        else setTimeout(() => this.#isOver || client.ask(), pauseMs);
      },
      lost: (/** @type {LoadClient} */ _, /** @type {string} */ why) => {
        this.#tally.failed(why);
        lost(why);
      },
    };
    for (let i = 0; i < clients; i++)
      this.clients.push(new LoadClient({ port, user, database }, query, listener));
  }
}

/** @param {LoadOrders} orders */
async function main(orders) {
  const clients = orders.groups.reduce((sum, group) => sum + group.clients, 0);
  if (clients > mostClients || orders.seconds > mostSeconds)
    throw new Error('That is more than is sensible.');
  const groups = orders.groups.map((group) => new Group(group));
  if (orders.comesLoggedIn) {
    const late = sleep(loginMs).then(() => {
      throw new Error(`The clients were not in after ${loginMs / 1_000} s.`);
    });
    await Promise.race([late, Promise.all(groups.map((group) => group.logIn(orders)))]);
  }
  const told = new Promise((resolve) => process.once('message', resolve));
  process.send?.({ isReady: true });
  await told;
  const delays = monitorEventLoopDelay({ resolution: 5 });
  delays.enable();
  const startedAt = performance.now();
  for (const group of groups) group.start(orders, startedAt);
  await sleep(orders.seconds * 1_000);
  const now = performance.now();
  /** @type {LoadOutcome} */
  const outcome = { groups: groups.map((group) => group.summary(now)), stalledMs: delays.max / 1e6 };
  process.send?.(outcome, () => process.exit());
}

main(JSON.parse(process.argv[2] ?? '{}')).catch((error) => {
  process.send?.({ failed: error instanceof Error ? error.message : String(error) }, () => process.exit(1));
});
process.on('disconnect', () => process.exit());

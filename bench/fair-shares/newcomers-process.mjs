// @ts-check
// Clients that come one after the other, each as another user: it logs in, asks once, and goes. Tells how long both took, and
// how many had no answer within the time they were given.
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadClient, queryMessage } from './load-client.mjs';

/**
 * @typedef {object} NewcomerOrders
 * @property {number} port
 * @property {string} database
 * @property {string[]} users
 * @property {number} limitMs for each, from coming to the answer
 * @property {number} totalMs nobody comes any more after this
 */

/**
 * @typedef {object} Arrival
 * @property {number} loginMs as long as it has taken, where it was not over
 * @property {number} queryMs from the query to its answer; Infinity where it did not come to that
 * @property {number} firstAnswerMs both together; as long as it has waited where there was none
 * @property {boolean} isAnswered
 * @property {string} [error]
 */

const query = queryMessage('select 1');
/** Between one that goes and the next that comes. */
const restMs = 20;

/**
 * @param {NewcomerOrders} orders
 * @param {string} user
 * @returns {Promise<Arrival>}
 */
function arrive({ port, database, limitMs }, user) {
  return new Promise((resolve) => {
    const cameAt = performance.now();
    let askedAt = Number.NaN;
    /** @param {{ isAnswered: boolean, error?: string }} how */
    const leave = (how) => {
      clearTimeout(limit);
      client.leave();
      const now = performance.now();
      const isIn = !Number.isNaN(askedAt);
      const [loginMs, queryMs] = isIn
        ? [askedAt - cameAt, now - askedAt]
        : [now - cameAt, Number.POSITIVE_INFINITY];
      resolve({ loginMs, queryMs, firstAnswerMs: now - cameAt, ...how });
    };
    const client = new LoadClient({ port, user, database }, query, {
      loggedIn: () => {
        askedAt = performance.now();
        client.ask(askedAt);
      },
      answered: (_, failed) =>
        leave(failed ? { isAnswered: false, error: 'The query failed.' } : { isAnswered: true }),
      lost: (_, error) => leave({ isAnswered: false, error }),
    });
    const limit = setTimeout(() => leave({ isAnswered: false }), limitMs);
  });
}

/** @param {NewcomerOrders} orders */
async function main(orders) {
  /** @type {Arrival[]} */
  const arrivals = [];
  const deadline = performance.now() + orders.totalMs;
  for (const user of orders.users) {
    if (performance.now() > deadline) break;
    arrivals.push(await arrive(orders, user));
    await sleep(restMs);
  }
  process.send?.({ arrivals }, () => process.exit());
}

main(JSON.parse(process.argv[2] ?? '{}')).catch((error) => {
  process.send?.({ failed: error instanceof Error ? error.message : String(error) }, () => process.exit(1));
});
process.on('disconnect', () => process.exit());

// @ts-check
// The process of a load, as whoever starts it sees it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {import('./load-process.mjs').LoadOrders} LoadOrders
 * @typedef {import('./load-process.mjs').LoadOutcome} LoadOutcome
 */

const program = fileURLToPath(new URL('load-process.mjs', import.meta.url));

export class Crowd {
  #child;

  /** @param {import('node:child_process').ChildProcess} child */
  constructor(child) {
    this.#child = child;
  }

  /**
   * All clients are in, if they are to be.
   * @param {LoadOrders} orders
   */
  static async gather(orders) {
    const crowd = new Crowd(fork(program, [JSON.stringify(orders)], { serialization: 'advanced' }));
    await answerOf(crowd.#child);
    return crowd;
  }

  /** @returns {Promise<LoadOutcome>} */
  async run() {
    this.#child.send('go');
    return /** @type {LoadOutcome} */ (await answerOf(this.#child));
  }

  /** Ends it, if it has not ended. */
  async dismiss() {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    if (this.#child.connected) this.#child.disconnect();
    await gone;
  }
}

/**
 * One crowd after the other gathers, each begins so much after the first, and all are gone at the end.
 * @param {{ orders: LoadOrders, afterMs?: number }[]} loads
 * @returns {Promise<LoadOutcome[]>}
 */
export async function runCrowds(loads) {
  /** @type {Crowd[]} */
  const crowds = [];
  try {
    for (const { orders } of loads) crowds.push(await Crowd.gather(orders));
    return await Promise.all(
      crowds.map(async (crowd, index) => {
        await new Promise((resolve) => setTimeout(resolve, loads[index]?.afterMs ?? 0));
        return crowd.run();
      }),
    );
  } finally {
    await Promise.all(crowds.map((crowd) => crowd.dismiss()));
  }
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<unknown>}
 */
export async function answerOf(child) {
  const over = new AbortController();
  const { signal } = over;
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error('A process of the benchmark ended before it had an answer.');
  });
  // Nobody listens any more when the answer is there.
  ended.catch(() => {});
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended]);
    const { failed } = /** @type {{ failed?: string }} */ (message);
    if (failed !== undefined) throw new Error(failed);
    return message;
  } finally {
    over.abort();
  }
}

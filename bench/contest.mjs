// @ts-check
// Runs the contestants of one group: each in its own process, round after round in turn, so that whatever slows the
// machine for a while slows all of them, and a ratio between two is made of measurements next to each other.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {import('./contestant-process.mjs').Measure} Measure
 * @typedef {import('./contestant-process.mjs').ContestantOrders} ContestantOrders
 */

/**
 * @typedef {object} Outcome
 * @property {Measure[]} rounds
 * @property {string} [failed] why there are none
 */

/**
 * @typedef {object} ContestOptions
 * @property {number} rounds
 * @property {boolean} freshProcess a new process for each round, for what can be measured only once in one
 * @property {string | undefined} profileFolder where each contestant leaves a CPU profile
 */

const program = fileURLToPath(new URL('contestant-process.mjs', import.meta.url));

/**
 * @param {ContestantOrders[]} contestants
 * @param {ContestOptions} options
 * @returns {Promise<Outcome[]>} in the order of the contestants
 */
export async function hold(contestants, options) {
  /** @type {Outcome[]} */
  const outcomes = contestants.map(() => ({ rounds: [] }));
  /** @type {(Contestant | undefined)[]} */
  const running = contestants.map(() => undefined);
  try {
    for (let round = 0; round < options.rounds; round += 1) {
      for (const [index, orders] of contestants.entries()) {
        const outcome = /** @type {Outcome} */ (outcomes[index]);
        if (outcome.failed !== undefined) continue;
        try {
          const contestant = running[index] ?? (await Contestant.start(orders, options.profileFolder));
          running[index] = contestant;
          outcome.rounds.push(await contestant.round());
          if (options.freshProcess) {
            running[index] = undefined;
            await contestant.stop();
          }
        } catch (error) {
          outcome.failed = error instanceof Error ? error.message : String(error);
        }
      }
    }
  } finally {
    await Promise.all(running.map((contestant) => contestant?.stop()));
  }
  return outcomes;
}

class Contestant {
  #process;

  /** @param {import('node:child_process').ChildProcess} child */
  constructor(child) {
    this.#process = child;
  }

  /**
   * @param {ContestantOrders} orders
   * @param {string | undefined} profileFolder
   */
  static async start(orders, profileFolder) {
    const execArgv = ['--expose-gc'];
    if (profileFolder !== undefined) {
      const name = `${orders.workload} ${orders.contestant}`.replaceAll(/[^a-z0-9]+/gi, '-');
      execArgv.push('--cpu-prof', `--cpu-prof-dir=${profileFolder}`, `--cpu-prof-name=${name}.cpuprofile`);
    }
    const contestant = new Contestant(fork(program, [JSON.stringify(orders)], { execArgv }));
    await contestant.#answer();
    return contestant;
  }

  /** @returns {Promise<Measure>} */
  round() {
    this.#process.send('round');
    return this.#answer();
  }

  async stop() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, 'exit');
    if (this.#process.connected) this.#process.send('stop');
    await gone;
  }

  /** @returns {Promise<Measure>} */
  #answer() {
    return new Promise((resolve, reject) => {
      const onExit = () => reject(new Error('The process of the contestant ended.'));
      this.#process.once('exit', onExit);
      this.#process.once('message', (/** @type {Measure & { failed?: string }} */ message) => {
        this.#process.off('exit', onExit);
        if (message.failed === undefined) resolve(message);
        else reject(new Error(message.failed));
      });
    });
  }
}

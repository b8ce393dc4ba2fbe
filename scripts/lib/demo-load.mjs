// @ts-check
// The callers of the demonstration: they ask a pool for work, and count how each request ended.
import { setTimeout as sleep } from 'node:timers/promises';

export class DemoLoad {
  /** How the requests ended; `otherwise` is what the demonstration did not arrange. */
  tally = { asked: 0, answered: 0, timedOut: 0, cutOff: 0, otherwise: 0 };
  lastUnexpected = '';
  #pool;
  #speed;
  #signal;

  /**
   * @param {import('../../dist/index.js').Pool} pool
   * @param {number} speed
   * @param {AbortSignal} signal
   */
  constructor(pool, speed, signal) {
    this.#pool = pool;
    this.#speed = speed;
    this.#signal = signal;
  }

  /**
   * Rejects when the demonstration is to end.
   * @param {number} ms
   */
  wait(ms) {
    return sleep(ms / this.#speed, undefined, { signal: this.#signal });
  }

  /**
   * All at once. Never rejects.
   * @param {number} count
   * @param {number} workMs
   * @param {number} [timeout]
   */
  burst(count, workMs, timeout) {
    return Promise.all(Array.from({ length: count }, () => this.#ask(workMs, timeout)));
  }

  /**
   * Ten a second.
   * @param {number} count
   */
  async trickle(count) {
    for (let i = 0; i < count; i += 1) {
      void this.#ask(30);
      await this.wait(100);
    }
  }

  /**
   * Takes a connection, has it work for some milliseconds, gives it back.
   * @param {number} workMs
   * @param {number} [timeout] how long to wait for the connection
   */
  async #ask(workMs, timeout) {
    this.tally.asked += 1;
    try {
      const client = await this.#pool.connect(
        timeout === undefined ? {} : { timeout: timeout / this.#speed },
      );
      try {
        await client.query('select pg_sleep($1)', [workMs / 1000 / this.#speed]);
        this.tally.answered += 1;
      } finally {
        // One that lost its session is noticed and closed, not used again.
        client.release();
      }
    } catch (error) {
      this.#countFailure(/** @type {Error & { code?: string }} */ (error));
    }
  }

  /** @param {Error & { code?: string }} error */
  #countFailure({ code, message }) {
    if (code === 'HG_ACQUIRE_TIMEOUT') this.tally.timedOut += 1;
    else if (code === '57P01' || /terminat|ECONNRESET|EPIPE/.test(message)) this.tally.cutOff += 1;
    else if (!this.#signal.aborted) {
      this.tally.otherwise += 1;
      this.lastUnexpected = `${code ?? 'error'}: ${message}`;
    }
  }
}

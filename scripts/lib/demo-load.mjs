// @ts-check
// The callers of the demonstration: they ask a pool for work, and count how each request ended.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** Nothing was ready in time, or the server let nobody in. */
const gaveUp = new Set(['HG_ACQUIRE_TIMEOUT', 'HG_RESERVOIR_EMPTY', 'HG_CONNECT_FAILED']);

export class DemoLoad {
  /** How the requests ended; `otherwise` is what the demonstration did not arrange. */
  tally = { asked: 0, answered: 0, timedOut: 0, cutOff: 0, otherwise: 0 };
  lastUnexpected = '';
  #pool;
  #speed;
  #signal;

  /**
   * @param {{ connect(options?: { timeout?: number }): Promise<import('pg').PoolClient> }} pool
   * @param {number} speed
   * @param {AbortSignal} signal
   */
  constructor(pool, speed, signal) {
    this.#pool = pool;
    this.#speed = speed;
    this.#signal = signal;
    setMaxListeners(0, signal); // Many callers wait at once.
  }

  /** How all requests ended, for people. */
  get summary() {
    const { asked, answered, timedOut, cutOff } = this.tally;
    return `${asked} asked, ${answered} answered, ${timedOut} timed out, ${cutOff} cut off`;
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

  /**
   * Transactions that all change one row, each repeated while it conflicts with another. Answers how often one had to be.
   * @param {number} count
   * @param {string} table
   */
  async contend(count, table) {
    let conflicts = 0;
    const one = async () => {
      this.tally.asked += 1;
      for (;;) {
        try {
          const client = await this.#pool.connect();
          try {
            await client.query('begin');
            await client.query(`update ${table} set value = value + 1 where id = 1`);
            await client.query('commit');
          } catch (error) {
            await client.query('rollback').catch(() => {});
            throw error;
          } finally {
            client.release();
          }
          this.tally.answered += 1;
          return;
        } catch (error) {
          const failure = /** @type {Error & { code?: string }} */ (error);
          if (failure.code !== '40001') return this.#countFailure(failure);
          conflicts += 1;
          await this.wait(20 + 180 * Math.random());
        }
      }
    };
    await Promise.all(Array.from({ length: count }, one));
    return conflicts;
  }

  /** @param {Error & { code?: string }} error */
  #countFailure({ code, message }) {
    if (gaveUp.has(code ?? '') || /timeout exceeded when trying/.test(message)) this.tally.timedOut += 1;
    else if (code === '57P01' || /terminat|ECONNRESET|EPIPE/.test(message)) this.tally.cutOff += 1;
    else if (!this.#signal.aborted) {
      this.tally.otherwise += 1;
      this.lastUnexpected = `${code ?? 'error'}: ${message}`;
    }
  }
}

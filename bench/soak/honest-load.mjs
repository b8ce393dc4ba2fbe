// @ts-check
// Clients that do nothing wrong: queries with and without names and transactions that count, at an even pace. Each answer is looked at.
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const { Client } = createRequire(import.meta.url)('pg');
const pauseMs = 20;

export class HonestLoad {
  /** Milliseconds of each query, since `take()`. */
  /** @type {number[]} */
  #times = [];
  #isOver = false;
  /** @type {Promise<void>[]} */
  #clients = [];
  answered = 0;
  /** Answers that were wrong, and queries that failed. */
  lost = 0;
  committed = 0;
  /** @type {string | undefined} */
  lastError = undefined;

  /**
   * @param {string} url
   * @param {number} count
   */
  async start(url, count) {
    const clients = Array.from({ length: count }, () => new Client(url));
    for (const client of clients) {
      client.on('error', (/** @type {Error} */ error) => this.#failed(error));
      await client.connect();
    }
    this.#clients = clients.map((client, n) => this.#run(client, n));
  }

  /** The times of all since it was asked last. */
  take() {
    const times = this.#times;
    this.#times = [];
    return times;
  }

  async stop() {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  /**
   * @param {any} client
   * @param {number} own
   */
  async #run(client, own) {
    for (let n = 0; !this.#isOver; n++) {
      const began = performance.now();
      try {
        if (n % 10 === 0) await this.#transaction(client, own);
        else {
          const name = n % 2 === 0 ? { name: 'twice' } : {};
          const { rows } = await client.query({ ...name, text: 'select $1::int * 2 as is', values: [n] });
          if (rows[0]?.is !== 2 * n) throw new Error(`2 * ${n} is ${JSON.stringify(rows)}`);
        }
        this.answered++;
      } catch (error) {
        this.#failed(/** @type {Error} */ (error));
      }
      this.#times.push(performance.now() - began);
      await sleep(pauseMs);
    }
    await client.end();
  }

  /**
   * @param {any} client
   * @param {number} own
   */
  async #transaction(client, own) {
    await client.query('begin');
    await client.query('insert into soak_counted values ($1)', [own]);
    await client.query('commit');
    this.committed++;
  }

  /** @param {Error} error */
  #failed(error) {
    this.lost++;
    this.lastError = error.message;
  }
}

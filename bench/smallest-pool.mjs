// @ts-check
// The limit that the engine is measured against: the least code that can still be called a pool with a deadline.
// No growth, no lifetimes, no events, no guard against a second release. Nothing here is meant to be used.

const tickMilliseconds = 50;

/**
 * @template Connection
 * @typedef {object} Waiter
 * @property {(connection: Connection) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {number} deadline in ticks of the shared timer
 */

/** @template Connection */
export class SmallestPool {
  /** @type {Connection[]} */
  #idle;
  /** @type {(Waiter<Connection> | undefined)[]} */
  #ring = new Array(16);
  #head = 0;
  #waiting = 0;
  #tick = 0;
  #timeoutTicks;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /**
   * @param {Connection[]} connections
   * @param {number} timeoutMilliseconds
   */
  constructor(connections, timeoutMilliseconds) {
    this.#idle = connections.slice();
    this.#timeoutTicks = Math.ceil(timeoutMilliseconds / tickMilliseconds);
  }

  /** @returns {Promise<Connection>} */
  acquire() {
    const connection = this.#idle.pop();
    if (connection !== undefined) return Promise.resolve(connection);
    return new Promise((resolve, reject) => {
      this.#enqueue({ resolve, reject, deadline: this.#tick + this.#timeoutTicks });
    });
  }

  /** @param {Connection} connection */
  release(connection) {
    if (this.#waiting === 0) {
      this.#idle.push(connection);
      return;
    }
    const waiter = /** @type {Waiter<Connection>} */ (this.#ring[this.#head]);
    this.#ring[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#ring.length - 1);
    this.#waiting -= 1;
    waiter.resolve(connection);
  }

  /** @param {Waiter<Connection>} waiter */
  #enqueue(waiter) {
    if (this.#waiting === this.#ring.length) this.#double();
    this.#ring[(this.#head + this.#waiting) & (this.#ring.length - 1)] = waiter;
    this.#waiting += 1;
    this.#timer ??= setInterval(() => this.#expire(), tickMilliseconds).unref();
  }

  #double() {
    const { length } = this.#ring;
    /** @type {(Waiter<Connection> | undefined)[]} */
    const larger = new Array(length * 2);
    for (let i = 0; i < length; i += 1) larger[i] = this.#ring[(this.#head + i) & (length - 1)];
    this.#ring = larger;
    this.#head = 0;
  }

  /** Every waiter has the same timeout, so those who have waited too long are at the front. */
  #expire() {
    this.#tick += 1;
    while (this.#waiting > 0) {
      const waiter = /** @type {Waiter<Connection>} */ (this.#ring[this.#head]);
      if (waiter.deadline > this.#tick) return;
      this.#ring[this.#head] = undefined;
      this.#head = (this.#head + 1) & (this.#ring.length - 1);
      this.#waiting -= 1;
      waiter.reject(new Error('timeout'));
    }
  }
}

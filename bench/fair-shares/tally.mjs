// @ts-check
// Observations of the clients of one group: how long each answer took, and how long those have waited that had none.
import { percentile } from './figures.mjs';

/**
 * @typedef {object} GroupSummary
 * @property {string} name
 * @property {number} clients
 * @property {number} answers
 * @property {number} errors answers that were errors, and clients that were lost
 * @property {string | undefined} firstError
 * @property {number} neverAnswered clients without one answer
 * @property {number} oldestOpenMs the age of the query that has waited longest at the end
 * @property {number} firstAnswerMs from the beginning of the load; Infinity where there was none
 * @property {{ p50: number, p99: number, max: number }} waitMs those without an answer count with their age
 * @property {number[]} perSlot answers in each `slotMs`
 */

const slotMs = 250;

export class Tally {
  answers = 0;
  errors = 0;
  /** @type {string | undefined} */
  firstError = undefined;
  firstAnswerMs = Number.POSITIVE_INFINITY;
  /** @type {number[]} */
  perSlot = [];
  #waits = new Float64Array(1024);
  #name;
  #startedAt;

  /**
   * @param {string} name
   * @param {number} startedAt
   */
  constructor(name, startedAt) {
    this.#name = name;
    this.#startedAt = startedAt;
  }

  /**
   * @param {number} askedAt
   * @param {number} now
   */
  answered(askedAt, now) {
    if (this.answers === this.#waits.length) {
      const larger = new Float64Array(this.answers * 2);
      larger.set(this.#waits);
      this.#waits = larger;
    }
    this.#waits[this.answers] = now - askedAt;
    this.answers += 1;
    const sinceStart = now - this.#startedAt;
    this.firstAnswerMs = Math.min(this.firstAnswerMs, sinceStart);
    const slot = Math.floor(sinceStart / slotMs);
    this.perSlot[slot] = (this.perSlot[slot] ?? 0) + 1;
  }

  /** @param {string} why */
  failed(why) {
    this.errors += 1;
    this.firstError ??= why;
  }

  /**
   * @param {readonly import('./load-client.mjs').LoadClient[]} clients
   * @param {number} now
   * @returns {GroupSummary}
   */
  summary(clients, now) {
    const ages = clients.filter(({ isAsking }) => isAsking).map(({ askedAt }) => now - askedAt);
    const waits = new Float64Array(this.answers + ages.length);
    waits.set(this.#waits.subarray(0, this.answers));
    waits.set(ages, this.answers);
    waits.sort();
    return {
      name: this.#name,
      clients: clients.length,
      answers: this.answers,
      errors: this.errors,
      firstError: this.firstError,
      neverAnswered: clients.filter(({ answers }) => answers === 0).length,
      oldestOpenMs: Math.max(0, ...ages),
      firstAnswerMs: this.firstAnswerMs,
      waitMs: { p50: percentile(waits, 0.5), p99: percentile(waits, 0.99), max: percentile(waits, 1) },
      perSlot: Array.from(this.perSlot, (count) => count ?? 0),
    };
  }
}

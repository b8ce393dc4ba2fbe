// @ts-check
// A queue of 10,000 users, each with a seat in four budgets, in virtual time and without connections.
import { usualPolicy, usualTerms } from '../../dist/coordination/fair/fair-policy.js';
import { FairQueue } from '../../dist/coordination/fair/fair-queue.js';

/** @typedef {import('../../dist/coordination/fair/fair-budget.js').FairBudget} FairBudget */

export const userCount = 10_000;

/**
 * One level of budgets. Users are spread evenly over its budgets.
 * @typedef {object} Level
 * @property {number} budgets
 * @property {number} capacity of each
 */

/**
 * Four levels, small budgets first.
 * @typedef {object} Layout
 * @property {string} title
 * @property {Level[]} levels
 * @property {boolean} [hasStrangers] each budget has one user who is in no other, so that no budget contains another
 */

/** @type {Layout[]} */
export const layouts = [
  { title: 'equal', levels: levels([1, 2_000], [1, 2_000], [1, 2_000], [1, 2_000]) },
  { title: 'nested', levels: levels([100, 30], [10, 250], [2, 1_100], [1, 2_000]) },
  { title: 'adding up', levels: levels([100, 20], [10, 200], [2, 1_000], [1, 2_000]) },
  {
    title: 'overlapping',
    levels: levels([1, 2_000], [1, 2_000], [1, 2_000], [1, 2_000]),
    hasStrangers: true,
  },
  {
    title: 'overlapping, two each',
    levels: levels([1, 20_000], [1, 19_990], [1, 19_980], [1, 19_970]),
    hasStrangers: true,
  },
];

/**
 * @param {[number, number][]} pairs
 * @returns {Level[]}
 */
function levels(...pairs) {
  return pairs.map(([budgets, capacity]) => ({ budgets, capacity }));
}

/** A pool that needs as much as it is told. */
class Holder {
  name = 'holder';
  demand = 0;
  longestIdleSince = undefined;

  takeDemandPeak() {
    return this.demand;
  }

  leasesAvailable() {}
  leasesRefused() {}
  leasesLost() {}
  leasesRecalled() {}

  /** @param {number} count */
  leasesGranted(count) {
    return count;
  }
}

export class CrowdedQueue {
  now = 0;
  /** @type {Holder[]} */
  holders = [];
  /** @type {FairBudget[]} */
  budgets = [];
  #ring = () => {};

  /**
   * @param {Layout} layout
   * @param {number} wanting so many users need something
   */
  constructor({ levels: ofLayout, hasStrangers = false }, wanting) {
    const clock = { now: () => this.now, coarse: () => this.now, arrival: () => this.now };
    const alarm = (/** @type {() => void} */ ring) => {
      this.#ring = ring;
      return { granularityMs: 0, set: () => {}, keepProcessAlive: () => {}, clear: () => {} };
    };
    const queue = new FairQueue({ policy: usualPolicy, clock, alarm });
    const ofLevels = ofLayout.map(({ budgets, capacity }, size) =>
      Array.from({ length: budgets }, (_, n) =>
        queue.addBudget({ name: `${size}.${n}`, size, capacity, termsOf }),
      ),
    );
    this.budgets = ofLevels.flat();
    for (let n = 0; n < userCount; n++) {
      const user = `user_${n}`;
      const seats = ofLevels.map((level) => ({
        budget: /** @type {FairBudget} */ (level[n % level.length]),
        user,
      }));
      this.#add(queue.join({ user, database: 'db' }, seats), n < wanting ? demandIn(n, 0) : 0);
    }
    if (hasStrangers)
      for (const [n, budget] of this.budgets.entries()) {
        const user = `stranger_${n}`;
        this.#add(queue.join({ user, database: 'db' }, [{ budget, user }]), 1);
      }
  }

  /**
   * @param {import('../../dist/coordination/fair/fair-member.js').FairMember} member
   * @param {number} demand
   */
  #add(member, demand) {
    const holder = new Holder();
    this.holders.push(holder);
    holder.demand = demand;
    this.now += 0.01;
    if (demand > 0) member.acquire(1, holder);
  }

  rebalance() {
    this.budgets[0]?.rebalance();
  }

  /** An interval is over: turns end, and connections are recalled. */
  endInterval() {
    this.now += usualPolicy.rebalanceInterval;
    this.#ring();
  }
}

/**
 * @param {string} user
 */
function termsOf(user) {
  const n = user.charCodeAt(user.length - 1);
  return { ...usualTerms, weight: 1 + (n % 3), minimum: n % 10 === 0 ? 1 : 0 };
}

/**
 * From 1 to 5.
 * @param {number} user
 * @param {number} round
 */
export function demandIn(user, round) {
  return 1 + ((user * 7_919 + round * (1 + (user % 13))) % 5);
}

// Poolers that share one limit through leases in a table, each with a queue and users of its own, in one virtual time.

import { expect } from 'vitest';
import { LeasedCapacity } from '../../../src/coordination/fair/leased-capacity.js';
import { Fleet } from '../dynamodb/fleet.js';
import { Laws } from './laws.js';
import { Town, type TownOptions } from './town.js';

export interface FairFleetOptions {
  readonly limit: number;
  readonly poolers: number;
  readonly seed: number;
  readonly latencyMs?: number;
  /** Of each pooler, besides what it leases. */
  readonly town?: Partial<TownOptions>;
}

export interface Pooler {
  readonly town: Town;
  readonly leased: LeasedCapacity;
  readonly laws: Laws;
}

/** How often slots and turns are looked at. */
const lookMs = 1_000;

export class FairFleet {
  readonly fleet: Fleet;
  readonly poolers: readonly Pooler[];
  readonly #limit: number;

  constructor({ limit, poolers, seed, latencyMs = 10, town = {} }: FairFleetOptions) {
    this.#limit = limit;
    this.fleet = new Fleet({ seed, limit, latencyMs, settings: { lookMs } });
    this.poolers = Array.from({ length: poolers }, (_, n) => this.#start(seed + n, town));
  }

  #start(seed: number, options: Partial<TownOptions>): Pooler {
    const { leases, name } = this.fleet.start();
    const listener = { balanceChanged: () => leased.look(), rebalanced: () => {} };
    const town = new Town({ ...options, seed, capacity: 0, line: this.fleet.timeline, listener });
    const leased: LeasedCapacity = new LeasedCapacity(
      {
        ...{ name, source: leases, most: Number.POSITIVE_INFINITY, spareMs: 500, retryMs: 100 },
        ...{ clock: town.clock, alarm: town.alarm },
        demand: () => town.houses.reduce((sum, { pool }) => sum + pool.demand, 0),
        claimants: () => claimantsOf(town),
      },
      town.budget,
    );
    const laws = new Laws(town);
    town.onEvent = () => {
      laws.judge();
      this.judge();
    };
    return { town, leased, laws };
  }

  /** Over all poolers: no more connections and no more leases than the limit, and the counter is the sum. */
  judge(): void {
    const { connections } = this;
    if (connections > this.#limit)
      expect.fail(`${connections} connections of all poolers, above the limit of ${this.#limit}`);
    const leased = this.poolers.reduce((sum, one) => sum + one.leased.leased, 0);
    if (leased > this.fleet.active)
      expect.fail(`${leased} are leased, the table knows of ${this.fleet.active}`);
    if (this.fleet.active > this.#limit) expect.fail(`the table has ${this.fleet.active} of ${this.#limit}`);
  }

  run(ms: number): void {
    this.fleet.run(ms);
    expect(this.fleet.problems).toEqual([]);
  }

  get connections(): number {
    return this.poolers.reduce((sum, { town }) => sum + town.connections, 0);
  }

  get recalls(): number {
    return this.poolers.reduce((sum, { town }) => sum + town.budget.recalls, 0);
  }

  get opened(): number {
    return this.poolers.reduce((sum, { town }) => sum + town.opened, 0);
  }

  /** All leave, and nothing is left of them. */
  end(): void {
    for (const { laws } of this.poolers) laws.end();
    this.run(60_000);
    expect(this.poolers.map(({ leased }) => leased.leased)).toEqual(this.poolers.map(() => 0));
  }
}

/** Users that need something, by weight. */
function claimantsOf(town: Town): number {
  const users = new Set(town.houses.filter(({ pool }) => pool.demand > 0).map(({ user }) => user));
  let claimants = 0;
  for (const user of users) claimants += town.budget.users.get(user)?.terms.weight ?? 1;
  return Math.max(claimants, 1e-3);
}

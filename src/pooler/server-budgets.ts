/**
 * How many server connections all pools may have together: in all, of each database and of each user. A pool that is refused
 * one has an idle connection of another pool closed, which then is free for it.
 */
import { type LocalLeases, localLeases } from '../coordination/local-leases.js';
import type { LeaseAnswer, LeaseHolder, Leases } from '../core/leases.js';

/** One of the pools that share. */
export interface SharingPool {
  readonly database: string;
  readonly user: string;
  readonly idle: number;
  readonly waiting: number;
  /** Closes idle connections; how many. */
  evictIdle(count: number): number;
}

export interface ServerQuotas {
  /** 0: no limit. */
  readonly total: number;
  readonly ofDatabase: (database: string) => number;
  readonly ofUser: (user: string) => number;
}

/** As a limit that is never reached, it can be lowered to one that is. */
const noLimit = Number.MAX_SAFE_INTEGER;

export class ServerBudgets {
  #quotas: ServerQuotas;
  readonly #total: LocalLeases;
  readonly #byDatabase = new Map<string, LocalLeases>();
  readonly #byUser = new Map<string, LocalLeases>();
  readonly #pools: () => Iterable<SharingPool>;

  constructor(quotas: ServerQuotas, pools: () => Iterable<SharingPool>) {
    this.#quotas = quotas;
    this.#total = localLeases({ limit: quotas.total || noLimit });
    this.#pools = pools;
  }

  /** What a pool has to ask. */
  leasesFor(database: string, user: string): Leases {
    return new SharedLeases(
      [
        this.#total,
        budgetOf(this.#byDatabase, database, this.#quotas.ofDatabase(database)),
        budgetOf(this.#byUser, user, this.#quotas.ofUser(user)),
      ],
      (refused) => this.#makeRoom(refused, database, user),
    );
  }

  /** Other limits from now on. */
  change(quotas: ServerQuotas): void {
    this.#quotas = quotas;
    this.#total.resize(quotas.total || noLimit);
    for (const [database, budget] of this.#byDatabase) budget.resize(quotas.ofDatabase(database) || noLimit);
    for (const [user, budget] of this.#byUser) budget.resize(quotas.ofUser(user) || noLimit);
  }

  /** Of those who share what was refused, the one with most idle connections gives one up. */
  #makeRoom(refused: LocalLeases, database: string, user: string): void {
    let richest: SharingPool | undefined;
    for (const pool of this.#pools()) {
      if (refused === this.#byDatabase.get(database) && pool.database !== database) continue;
      if (refused === this.#byUser.get(user) && pool.user !== user) continue;
      if (pool.database === database && pool.user === user) continue;
      if (pool.waiting === 0 && pool.idle > (richest?.idle ?? 0)) richest = pool;
    }
    richest?.evictIdle(1);
  }
}

function budgetOf(budgets: Map<string, LocalLeases>, key: string, limit: number): LocalLeases {
  const budget = budgets.get(key) ?? localLeases({ limit: limit || noLimit });
  budgets.set(key, budget);
  return budget;
}

/** All of several budgets, or none of them. */
class SharedLeases implements Leases {
  readonly #budgets: readonly LocalLeases[];
  readonly #refused: (budget: LocalLeases) => void;

  constructor(budgets: readonly LocalLeases[], refused: (budget: LocalLeases) => void) {
    this.#budgets = budgets;
    this.#refused = refused;
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    for (const [index, budget] of this.#budgets.entries()) {
      const answer = budget.acquire(count, holder);
      if (answer === 'granted') continue;
      for (const other of this.#budgets.slice(0, index)) other.release(count, holder);
      // Not from the middle of its decision.
      process.nextTick(this.#refused, budget);
      return answer;
    }
    return 'granted';
  }

  release(count: number, holder: LeaseHolder): void {
    for (const budget of this.#budgets) budget.release(count, holder);
  }
}

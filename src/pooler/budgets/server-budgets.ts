/**
 * Budgets of server connections for all pools together: in total, per server, per database and per user. Each budget is shared
 * fairly between users, or, for the budget of a user, between databases.
 */
import type { FairBudget, FairStats, Rebalance } from '../../coordination/fair/fair-budget.js';
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import type { FairMember, SeatWish } from '../../coordination/fair/fair-member.js';
import { type BudgetTerms, type FairPolicy, usualTerms } from '../../coordination/fair/fair-policy.js';
import { FairQueue } from '../../coordination/fair/fair-queue.js';
import type { FairUser } from '../../coordination/fair/fair-seats.js';
import { LeasedCapacity } from '../../coordination/fair/leased-capacity.js';
import type { LeaseAnswer, LeaseHolder, Leases } from '../../core/leases.js';
import { systemAlarm, systemClock } from '../../runtime/system.js';
import { type Claim, expectedShare } from './expected-share.js';
import { type Fleet, refusalInWords } from './fleet.js';

/** A pool of the budgets. */
export interface BudgetedPool {
  readonly database: string;
  readonly user: string;
  /** The server's address: pools with the same text share that server's capacity. */
  readonly server: string;
  /** True if the pool has clients. Left out: unknown. */
  readonly hasClients?: (() => boolean) | undefined;
}

export interface ServerQuotas {
  /** `Infinity`: no limit; likewise below. */
  readonly total: number;
  readonly ofDatabase: (database: string) => number;
  readonly ofUser: (user: string) => number;
  /** Asks each server for its capacity, which becomes a budget. */
  readonly asksServers: boolean;
  readonly fairness: FairPolicy;
  readonly termsOf: BudgetTerms['termsOf'];
}

/** `budget`: `total`, `server db:5432`, `database app` or `user app`. */
export type RebalanceListener = (budget: string, rebalance: Rebalance) => void;

export interface BudgetStats extends FairStats {
  readonly budget: string;
}

/** Leases that a pool needs before it opens a connection. */
export interface BudgetLeases extends Leases {
  /** The smallest fair share among the pool's budgets. */
  readonly share: number;
  /** The budget that the pool waits for, with its numbers; undefined where it does not wait, or where that is unknown here. */
  readonly shortage: string | undefined;
  /** Number of connections to keep open here so that the pool stays at `size`; 0 for a pool that keeps none. For periodic calls. */
  partToKeep(size: number): number;
  /** The pool is closed. */
  leave(): void;
}

/** Budgets of pools, kept in this process or in another one for several processes. */
export interface Budgets {
  /** True if the capacity of servers is used, so that they should be asked. */
  readonly asksServers: boolean;
  leasesFor(pool: BudgetedPool): BudgetLeases;
  learned(server: string, capacity: number): void;
  change(quotas: ServerQuotas): void;
  /** `mostUsers`: limit of users of each budget. Default: all. */
  stats(mostUsers?: number): BudgetStats[];
  /** Every user that holds, needs or waits for a connection; of the others no more than make `mostQuiet` users of a budget. */
  busyStats(mostQuiet: number): BudgetStats[];
  stop(): void;
}

export class ServerBudgets implements Budgets {
  #quotas: ServerQuotas;
  readonly #listener: RebalanceListener;
  readonly #fleet: Pick<Fleet, 'leasesOf'> | undefined;
  readonly #queue: FairQueue;
  /** Smaller budgets before those that contain them. */
  readonly #budgets: Record<BudgetKind, Map<string, FairBudget>> = {
    user: new Map(),
    database: new Map(),
    server: new Map(),
    total: new Map(),
  };
  /** Servers whose connections are shared with other poolers. */
  readonly #sharedServers = new Map<string, SharedServer>();
  /** Capacities that servers have reported. */
  readonly #capacities = new Map<string, number>();

  /** `fleet`: source of the leases for a server's budget. */
  constructor(
    quotas: ServerQuotas,
    listener: RebalanceListener = () => {},
    fleet?: Pick<Fleet, 'leasesOf'> | undefined,
  ) {
    this.#quotas = quotas;
    this.#listener = listener;
    this.#fleet = fleet;
    this.#queue = new FairQueue({ policy: quotas.fairness, clock: systemClock, alarm: systemAlarm });
  }

  /** Adds the size of a pool that several processes have, as a budget. Its capacity is 0 at first. */
  addPoolSize(name: string): FairBudget {
    return this.#queue.addBudget({
      name,
      size: sizes.pool,
      capacity: 0,
      termsOf: () => usualTerms,
    });
  }

  removePoolSize(size: FairBudget): void {
    this.#queue.removeBudget(size);
  }

  /** Leases of a pool. `ofSize`: its seat in the size that it shares with the same pool of other processes. */
  leasesFor(pool: BudgetedPool, ofSize?: SeatWish): PoolLeases {
    const { database, user, server } = pool;
    const seats: SeatWish[] = [
      ...(ofSize === undefined ? [] : [ofSize]),
      { budget: this.#find('user', user), user: database },
      { budget: this.#find('database', database), user },
      { budget: this.#budgetOf(server), user },
      { budget: this.#find('total', ''), user },
    ];
    const member = this.#queue.join(pool, seats);
    const shared = this.#sharedServers.get(server);
    shared?.members.add(member);
    return new PoolLeases(member, shared, () => this.#forget(pool));
  }

  /** A pool is closed and holds nothing. Budgets without pools are removed, since clients may invent many users and databases. */
  #forget({ user, database }: BudgetedPool): void {
    for (const [kind, name] of [
      ['user', user],
      ['database', database],
    ] as const) {
      const budget = this.#budgets[kind].get(name);
      if (budget === undefined || budget.members.size > 0 || budget.held > 0) continue;
      this.#queue.removeBudget(budget);
      this.#budgets[kind].delete(name);
    }
  }

  #budgetOf(server: string): FairBudget {
    const known = this.#budgets.server.get(server);
    const source = this.#fleet?.leasesOf(server);
    if (known !== undefined || source === undefined) return known ?? this.#find('server', server);
    const looked = (): void => this.#sharedServers.get(server)?.leased.look();
    const budget = this.#makeBudget('server', server, 0, looked);
    const members = new Set<FairMember>();
    const leased = new LeasedCapacity(
      {
        name: `server ${server}`,
        source,
        demand: () => this.#useFor(server, members),
        claimants: () => this.#claimantsAmong(members),
        most: this.#limitOf('server', server),
        ...{ spareMs, retryMs, clock: systemClock, alarm: systemAlarm },
      },
      budget,
    );
    this.#sharedServers.set(server, { leased, members });
    return budget;
  }

  /** Number of connections that these pools would use. Claiming more than may be held would keep others from using it. */
  #useFor(server: string, members: Iterable<FairMember>): number {
    const { ofUser, ofDatabase, total } = this.#quotas;
    let use = 0;
    for (const { demand, latestHolder, tenant } of members) {
      const { limit = Number.POSITIVE_INFINITY } = (latestHolder ?? {}) as { readonly limit?: number };
      use += Math.min(demand, limit, ofUser(tenant.user), ofDatabase(tenant.database));
    }
    return Math.min(use, total, this.#limitOf('server', server));
  }

  /** Users with demand among these pools, by weight: poolers share fairly by users. */
  #claimantsAmong(members: Iterable<FairMember>): number {
    const users = new Set<string>();
    for (const { demand, tenant } of members) if (demand > 0) users.add(tenant.user);
    let claimants = 0;
    for (const user of users) claimants += this.#quotas.termsOf(user).weight;
    return claimants === 0 ? 1 : claimants;
  }

  #find(kind: BudgetKind, name: string): FairBudget {
    return this.#budgets[kind].get(name) ?? this.#makeBudget(kind, name, this.#limitOf(kind, name));
  }

  #makeBudget(kind: BudgetKind, name: string, capacity: number, balanceChanged?: () => void): FairBudget {
    const title = kind === 'total' ? kind : `${kind} ${name}`;
    const budget = this.#queue.addBudget({
      name: title,
      size: sizes[kind],
      capacity,
      termsOf: this.#termsOf(kind),
      listener: {
        rebalanced: (rebalance) => this.#listener(title, rebalance),
        ...(balanceChanged === undefined ? {} : { balanceChanged }),
      },
    });
    this.#budgets[kind].set(name, budget);
    return budget;
  }

  #limitOf(kind: BudgetKind, name: string): number {
    const { ofUser, ofDatabase, total, asksServers } = this.#quotas;
    if (kind === 'user') return ofUser(name);
    if (kind === 'database') return ofDatabase(name);
    if (kind === 'total') return total;
    return asksServers ? (this.#capacities.get(name) ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  }

  /** Databases of one user all have the same terms. */
  #termsOf(kind: BudgetKind): BudgetTerms['termsOf'] {
    return kind === 'user' ? () => usualTerms : this.#quotas.termsOf;
  }

  /**
   * Estimate of the connections that a pool would get if it asked for all that it may have. `newcomers`: pools whose demand may
   * not be known yet, with their assumed demand.
   */
  expectedShareOf(pool: BudgetedPool, newcomers: readonly (readonly [BudgetedPool, number])[]): number {
    let least = Number.POSITIVE_INFINITY;
    for (const kind of limitedKinds) {
      const name = nameIn(kind, pool);
      const budget = this.#budgets[kind].get(name);
      const capacity = budget?.capacity ?? this.#limitOf(kind, name);
      if (capacity === Number.POSITIVE_INFINITY || budget?.isIdle === true) continue;
      const claimOf = (of: BudgetedPool, demand: number): Claim => {
        const user = seatNameIn(kind, of);
        return { user, weight: this.#termsOf(kind)(user).weight, demand };
      };
      const others = newcomers.filter(([other]) => nameIn(kind, other) === name);
      const own = claimOf(pool, 0);
      const share = expectedShare(
        { capacity, users: budget?.users ?? new Map() },
        own,
        others.map(([other, demand]) => claimOf(other, demand)),
      );
      least = Math.min(least, share / databasesOf(pool, budget?.users.get(own.user), others));
    }
    return least;
  }

  /** True if the capacity of servers is used, so that they should be asked. */
  get asksServers(): boolean {
    return this.#quotas.asksServers;
  }

  /** A server has reported its capacity. */
  learned(server: string, capacity: number): void {
    this.#capacities.set(server, capacity);
    if (!this.#quotas.asksServers) return;
    const shared = this.#sharedServers.get(server);
    if (shared === undefined) this.#budgets.server.get(server)?.resize(capacity);
    else shared.leased.change(capacity);
  }

  /** Applies other limits. */
  change(quotas: ServerQuotas): void {
    this.#quotas = quotas;
    this.#queue.change(quotas.fairness);
    for (const kind of limitedKinds)
      for (const [name, budget] of this.#budgets[kind]) {
        const leased = kind === 'server' ? this.#sharedServers.get(name)?.leased : undefined;
        const limit = this.#limitOf(kind, name);
        const capacity = leased === undefined ? limit : budget.capacity;
        budget.change({ termsOf: this.#termsOf(kind), capacity });
        leased?.change(limit);
      }
  }

  /** Statistics of the budgets that have a limit. */
  stats(mostUsers?: number): BudgetStats[] {
    return this.#limited.map((budget) => ({ budget: budget.name, ...budget.stats(mostUsers) }));
  }

  busyStats(mostQuiet: number): BudgetStats[] {
    return this.#limited.map((budget) => ({ budget: budget.name, ...budget.busyStats(mostQuiet) }));
  }

  get #limited(): FairBudget[] {
    return shownKinds.flatMap((kind) =>
      [...this.#budgets[kind].values()].filter(({ isLimited }) => isLimited),
    );
  }

  stop(): void {
    for (const { leased } of this.#sharedServers.values()) leased.stop();
    this.#queue.stop();
  }
}

/** Time until unused leases go back to the budget above, and time for which a refusal holds. */
const spareMs = 10_000;
const retryMs = 250;

/** A server whose connections are shared with other poolers. */
interface SharedServer {
  /** Leased capacity of its budget. */
  readonly leased: LeasedCapacity;
  /** Pools of the server, each of which knows its own demand. */
  readonly members: Set<FairMember>;
}

type BudgetKind = 'user' | 'database' | 'server' | 'total';

/** Smaller sizes are shared out first. */
const sizes: Readonly<Record<BudgetKind | 'pool', number>> = {
  pool: 0,
  user: 1,
  database: 2,
  server: 3,
  total: 4,
};
/** Name of the pool's budget of this kind. */
function nameIn(kind: BudgetKind, pool: BudgetedPool): string {
  return kind === 'total' ? '' : pool[kind];
}

/** Name of the pool's user in that budget. */
function seatNameIn(kind: BudgetKind, { user, database }: BudgetedPool): string {
  return kind === 'user' ? database : user;
}

/** Number of databases in which the pool's user has demand, including this one. */
function databasesOf(
  { user, database }: BudgetedPool,
  known: FairUser | undefined,
  newcomers: readonly (readonly [BudgetedPool, number])[],
): number {
  const databases = new Set([database]);
  for (const { member } of known?.seats ?? [])
    if (member.demand > 0 || member.peak > 0) databases.add(member.tenant.database);
  for (const [other] of newcomers) if (other.user === user) databases.add(other.database);
  return databases.size;
}

const limitedKinds = ['user', 'database', 'server', 'total'] as const;
const shownKinds = ['total', 'server', 'database', 'user'] as const;

/** Leases of several budgets at once: all of them or none. */
export class PoolLeases implements BudgetLeases {
  readonly #member: FairMember;
  readonly #shared: SharedServer | undefined;
  readonly #isOver: () => void;
  #hasLeft = false;

  /** `isOver`: called when the pool has left and holds nothing. */
  constructor(member: FairMember, shared: SharedServer | undefined, isOver: () => void) {
    this.#member = member;
    this.#shared = shared;
    this.#isOver = isOver;
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    return this.#member.acquire(count, holder as FairHolder);
  }

  isFree(count: number): boolean {
    return this.#member.isFree(count);
  }

  release(count: number, holder: LeaseHolder): void {
    this.#member.release(count, holder as FairHolder);
    if (this.#hasLeft && this.#member.held === 0) this.#isOver();
  }

  get share(): number {
    return this.#member.share;
  }

  /** How many more connections can be held without taking any from others, by all budgets but `own`. */
  spareBeside(own: FairBudget): number {
    return this.#member.spareBeside(own);
  }

  /** Only this process keeps connections of the pool. */
  partToKeep(size: number): number {
    return size;
  }

  get shortage(): string | undefined {
    return this.#member.isWaiting ? shortageOf(this.#member, this.#shared) : undefined;
  }

  /** The pool is closed. */
  leave(): void {
    this.#member.leave();
    this.#shared?.members.delete(this.#member);
    this.#hasLeft = true;
    if (this.#member.held === 0) this.#isOver();
  }
}

/** The budget that has nothing for a waiting pool, with its numbers. */
function shortageOf(member: FairMember, shared: SharedServer | undefined): string | undefined {
  const { missing } = member;
  if (missing === undefined) return undefined;
  const refusal = shared?.leased.isOf(missing) === true ? shared.leased.refusal : undefined;
  const numbers = `${missing.held} of ${missing.capacity} connections (${missing.name}) are held, ${member.held} of them here`;
  return refusal === undefined ? numbers : `${numbers}; ${refusalInWords(refusal)}`;
}

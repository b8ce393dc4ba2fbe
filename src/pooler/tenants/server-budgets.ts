/**
 * How many server connections all pools may have together: in all, of each server, of each database and of each user. What
 * there is of one of these is shared fairly: between users, or between the databases of one user.
 */
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import { FairLeases, type FairStats, type Rebalance } from '../../coordination/fair/fair-leases.js';
import type { FairMember } from '../../coordination/fair/fair-members.js';
import { type FairPolicy, usualTerms } from '../../coordination/fair/fair-policy.js';
import { LeasedCapacity } from '../../coordination/fair/leased-capacity.js';
import type { LeaseAnswer, LeaseHolder, Leases } from '../../core/leases.js';
import { systemAlarm, systemClock } from '../../runtime/system.js';
import { type Fleet, refusalInWords } from './fleet.js';

/** A pool, as budgets see it. */
export interface BudgetedPool {
  readonly database: string;
  readonly user: string;
  /** Where its server is: pools with the same text share what that server allows. */
  readonly server: string;
}

export interface ServerQuotas {
  /** `Infinity`: no limit. So are those below. */
  readonly total: number;
  readonly ofDatabase: (database: string) => number;
  readonly ofUser: (user: string) => number;
  /** What a server allows is asked of it, and is a budget. */
  readonly asksServers: boolean;
  /** All but the capacity. `termsOf` is about users. */
  readonly fairness: Omit<FairPolicy, 'capacity'>;
}

/** Which budget it is: `total`, `server db:5432`, `database app`, `user app`. */
export type RebalanceListener = (budget: string, rebalance: Rebalance) => void;

export interface BudgetStats extends FairStats {
  readonly budget: string;
}

/** What a pool asks before it opens a connection. */
export interface BudgetLeases extends Leases {
  /** The smallest part that fairness gives it, of all its budgets. */
  readonly share: number;
  /** How many it can hold without taking any from others; undefined where that is not known here. */
  readonly reach?: number;
  /** Which budget it waits for, with its numbers; undefined where it does not, or where that is not known here. */
  readonly shortage: string | undefined;
  /** How many connections to keep here so that it stays at `size`; 0 for a pool that is not kept at any. To be asked again and again. */
  partToKeep(size: number): number;
  /** The pool is no more. */
  leave(): void;
}

/** Budgets as pools see them: those of this process, or of another one that keeps them for several. */
export interface Budgets {
  /** Whether it is worth asking a server how many connections it allows. */
  readonly asksServers: boolean;
  leasesFor(pool: BudgetedPool): BudgetLeases;
  learned(server: string, capacity: number): void;
  change(quotas: ServerQuotas): void;
  stats(): BudgetStats[];
  stop(): void;
}

export class ServerBudgets implements Budgets {
  #quotas: ServerQuotas;
  readonly #listener: RebalanceListener;
  readonly #fleet: Pick<Fleet, 'leasesOf'> | undefined;
  readonly #total: FairLeases;
  readonly #byServer = new Map<string, FairLeases>();
  /** Of those servers whose connections are shared with other poolers. */
  readonly #sharedServers = new Map<string, SharedServer>();
  readonly #byDatabase = new Map<string, FairLeases>();
  readonly #byUser = new Map<string, FairLeases>();
  /** What servers have said. */
  readonly #capacities = new Map<string, number>();

  /** `fleet`: what a server's budget has is leased from there. */
  constructor(
    quotas: ServerQuotas,
    listener: RebalanceListener = () => {},
    fleet?: Pick<Fleet, 'leasesOf'> | undefined,
  ) {
    this.#quotas = quotas;
    this.#listener = listener;
    this.#fleet = fleet;
    this.#total = this.#makeBudget('total', quotas.total, quotas.fairness);
  }

  /** What a pool has to ask. */
  leasesFor({ database, user, server }: BudgetedPool): PoolLeases {
    const tenant = { user, database };
    const ofUser = { user: database, database };
    const ofServer = this.#budgetOf(server).join(tenant);
    const shared = this.#sharedServers.get(server);
    shared?.members.add(ofServer);
    const members = [
      this.#find(this.#byUser, 'user', user).join(ofUser),
      this.#find(this.#byDatabase, 'database', database).join(tenant),
      ofServer,
      this.#total.join(tenant),
    ];
    return new PoolLeases(members, shared && { shared, member: ofServer });
  }

  #budgetOf(server: string): FairLeases {
    const known = this.#byServer.get(server);
    const source = this.#fleet?.leasesOf(server);
    if (known !== undefined || source === undefined)
      return known ?? this.#find(this.#byServer, 'server', server);
    const looked = (): void => this.#sharedServers.get(server)?.leased.look();
    const budget = this.#makeBudget(`server ${server}`, 0, this.#fairnessOf('server'), looked);
    this.#byServer.set(server, budget);
    const members = new Set<FairMember>();
    const leased = new LeasedCapacity(
      {
        name: `server ${server}`,
        source,
        demand: () => this.#useFor(server, members),
        most: this.#limitOf('server', server),
        ...{ spareMs, retryMs, clock: systemClock, alarm: systemAlarm },
      },
      budget,
    );
    this.#sharedServers.set(server, { leased, members });
    return budget;
  }

  /** What these pools would use if they had it. Who claims more than it may have would keep others from using it. */
  #useFor(server: string, members: Iterable<FairMember>): number {
    const { ofUser, ofDatabase, total } = this.#quotas;
    let use = 0;
    for (const { demand, latestHolder, tenant } of members) {
      const { limit = Number.POSITIVE_INFINITY } = (latestHolder ?? {}) as { readonly limit?: number };
      use += Math.min(demand, limit, ofUser(tenant.user), ofDatabase(tenant.database));
    }
    return Math.min(use, total, this.#limitOf('server', server));
  }

  #find(budgets: Map<string, FairLeases>, kind: BudgetKind, name: string): FairLeases {
    let budget = budgets.get(name);
    if (budget === undefined) {
      budget = this.#makeBudget(`${kind} ${name}`, this.#limitOf(kind, name), this.#fairnessOf(kind));
      budgets.set(name, budget);
    }
    return budget;
  }

  #makeBudget(
    name: string,
    capacity: number,
    fairness: ServerQuotas['fairness'],
    balanceChanged: () => void = () => {},
  ): FairLeases {
    return new FairLeases({
      policy: { ...fairness, capacity },
      clock: systemClock,
      alarm: systemAlarm,
      name,
      listener: {
        rebalanced: (rebalance) => this.#listener(name, rebalance),
        balanceChanged,
      },
    });
  }

  #limitOf(kind: BudgetKind, name: string): number {
    const { ofUser, ofDatabase, asksServers } = this.#quotas;
    if (kind === 'user') return ofUser(name);
    if (kind === 'database') return ofDatabase(name);
    return asksServers ? (this.#capacities.get(name) ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  }

  /** Between the databases of one user, all are alike. */
  #fairnessOf(kind: BudgetKind): ServerQuotas['fairness'] {
    const { fairness } = this.#quotas;
    return kind === 'user' ? { ...fairness, termsOf: () => usualTerms } : fairness;
  }

  /** Whether it is worth asking a server how many connections it allows. */
  get asksServers(): boolean {
    return this.#quotas.asksServers;
  }

  /** A server allows so many connections. */
  learned(server: string, capacity: number): void {
    this.#capacities.set(server, capacity);
    if (!this.#quotas.asksServers) return;
    const shared = this.#sharedServers.get(server);
    if (shared === undefined) this.#byServer.get(server)?.resize(capacity);
    else shared.leased.change(capacity);
  }

  /** Other limits from now on. */
  change(quotas: ServerQuotas): void {
    this.#quotas = quotas;
    this.#total.change({ ...quotas.fairness, capacity: quotas.total });
    const kinds = [
      ['server', this.#byServer],
      ['database', this.#byDatabase],
      ['user', this.#byUser],
    ] as const;
    for (const [kind, budgets] of kinds)
      for (const [name, budget] of budgets) {
        const leased = kind === 'server' ? this.#sharedServers.get(name)?.leased : undefined;
        const limit = this.#limitOf(kind, name);
        const capacity = leased === undefined ? limit : budget.capacity;
        budget.change({ ...this.#fairnessOf(kind), capacity });
        leased?.change(limit);
      }
  }

  /** Those that have a limit. */
  stats(): BudgetStats[] {
    const named = [
      ['total', this.#total] as const,
      ...Array.from(this.#byServer, ([name, budget]) => [`server ${name}`, budget] as const),
      ...Array.from(this.#byDatabase, ([name, budget]) => [`database ${name}`, budget] as const),
      ...Array.from(this.#byUser, ([name, budget]) => [`user ${name}`, budget] as const),
    ];
    return named
      .filter(([, { capacity }]) => Number.isFinite(capacity))
      .map(([name, budget]) => ({ budget: name, ...budget.stats() }));
  }

  stop(): void {
    for (const { leased } of this.#sharedServers.values()) leased.stop();
    for (const budget of [this.#total, ...this.#byServer.values()]) budget.stop();
    for (const budget of [...this.#byDatabase.values(), ...this.#byUser.values()]) budget.stop();
  }
}

/** What was free for so long goes back to the budget above; and so long a refusal holds. */
const spareMs = 10_000;
const retryMs = 250;

/** A pool's part in such a server's budget. */
interface MemberOfFleet {
  readonly shared: SharedServer;
  readonly member: FairMember;
}

/** A server whose connections are shared with other poolers. */
interface SharedServer {
  /** What its budget has. */
  readonly leased: LeasedCapacity;
  /** Its pools, each of which knows what it has use for. */
  readonly members: Set<FairMember>;
}

type BudgetKind = 'server' | 'database' | 'user';

/** All of several budgets, or none of them. */
export class PoolLeases implements BudgetLeases {
  readonly #members: readonly FairMember[];
  readonly #ofFleet: MemberOfFleet | undefined;

  constructor(members: readonly FairMember[], ofFleet: MemberOfFleet | undefined) {
    this.#members = members;
    this.#ofFleet = ofFleet;
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    const asker = holder as FairHolder;
    // The one that has none is waited for; nothing is taken of the others meanwhile.
    const missing = this.#members.find((member) => !member.mayAcquire(count));
    if (missing !== undefined) return missing.acquire(count, asker);
    for (const member of this.#members) member.acquire(count, asker);
    return 'granted';
  }

  isFree(count: number): boolean {
    return this.#members.every((member) => member.mayAcquire(count));
  }

  release(count: number, holder: LeaseHolder): void {
    for (const member of this.#members) member.release(count, holder as FairHolder);
  }

  /** The smallest part that fairness gives it, of all its budgets. */
  get share(): number {
    let share = Number.POSITIVE_INFINITY;
    for (const member of this.#members) if (member.isLimited) share = Math.min(share, member.share);
    return share;
  }

  get reach(): number {
    let reach = Number.POSITIVE_INFINITY;
    for (const { held, budget } of this.#members)
      reach = Math.min(reach, held + Math.max(0, budget.capacity - budget.held));
    return reach;
  }

  /** Nobody else keeps any. */
  partToKeep(size: number): number {
    return size;
  }

  get shortage(): string | undefined {
    const missing = this.#members.find((member) => member.isWaiting);
    if (missing === undefined) return undefined;
    const { held, budget } = missing;
    const refusal = missing === this.#ofFleet?.member ? this.#ofFleet.shared.leased.refusal : undefined;
    const numbers = `${budget.held} of ${budget.capacity} connections (${budget.name}) are held, ${held} of them here`;
    return refusal === undefined ? numbers : `${numbers}; ${refusalInWords(refusal)}`;
  }

  /** The pool is no more. */
  leave(): void {
    for (const member of this.#members) member.leave();
    this.#ofFleet?.shared.members.delete(this.#ofFleet.member);
  }
}

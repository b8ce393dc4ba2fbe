// Users with pools of their own on one budget, in virtual time: real engines, a real budget, and a server that counts.
import type { FairBudget, FairListener } from '../../../src/coordination/fair/fair-budget.js';
import type { FairHolder } from '../../../src/coordination/fair/fair-holder.js';
import type { FairMember, SeatWish } from '../../../src/coordination/fair/fair-member.js';
import {
  type FairPolicy,
  type UserTerms,
  usualPolicy,
  usualTerms,
} from '../../../src/coordination/fair/fair-policy.js';
import { FairQueue } from '../../../src/coordination/fair/fair-queue.js';
import { ConnectionPool } from '../../../src/core/connection-pool.js';
import type { Dial, Dialer } from '../../../src/core/dialer.js';
import type { Leases } from '../../../src/core/leases.js';
import { readPolicy } from '../../../src/core/pool-policy.js';
import type { PooledConnection } from '../../../src/core/pooled-connection.js';
import { Waiter } from '../../../src/core/waiters.js';
import type { AlarmFactory, Clock } from '../../../src/kernel/clock.js';
import { OptionReader } from '../../../src/kernel/option-reader.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { Planned, Timeline } from '../../../src/simulator/time/timeline.js';

export interface TownOptions {
  readonly capacity: number;
  readonly policy?: Partial<FairPolicy>;
  readonly dialMs?: number;
  readonly closeMs?: number;
  /** The part of dials that fail, from 0 to 1. */
  readonly dialFailures?: number;
  readonly seed?: number;
  readonly listener?: FairListener;
  /** Of each database, and of each user; no limit where they are left out. */
  readonly ofDatabase?: number;
  readonly ofUser?: number;
  /** Of each server; and which server a database is on, each on its own where that is left out. */
  readonly ofServer?: number;
  readonly serverOf?: (database: string) => string;
  /** Of each pool that is in several processes, over all of them. */
  readonly poolSize?: number;
  /** Where several towns share a server: its time. */
  readonly line?: Timeline;
}

interface Socket {
  readonly user: string;
}

/** The work of one user: so many clients, each with one query after the other. */
export interface Load {
  readonly clients: number;
  readonly queryMs: number;
  /** Between two queries of a client. */
  readonly pauseMs?: number;
  /** Clients that keep their first connection until the house is vacated. */
  readonly pinned?: number;
  /** Connections that the pool keeps ready. */
  readonly minIdle?: number;
}

export class Town {
  readonly line: Timeline;
  readonly queue: FairQueue;
  /** For all users together. */
  readonly budget: FairBudget;
  /** All of them, by their names. */
  readonly budgets = new Map<string, FairBudget>();
  /** Pools, with those that have left. */
  readonly houses: House[] = [];
  readonly random: SeededRandom;
  readonly dialMs: number;
  readonly closeMs: number;
  dialFailures: number;
  /** Servers that accept connections and do not answer. A database is a server of its own. */
  readonly silent = new Set<string>();
  hasBeenSilent = false;
  /** Connections as the server sees them, from the first packet until the socket is gone. */
  connections = 0;
  mostConnections = 0;
  /** How many were opened, and how many questions for a lease had to wait. */
  opened = 0;
  asked = 0;
  /** How often the budget was looked at because of the time. */
  looks = 0;
  /** Told after everything that happens. */
  onEvent: () => void = () => {};
  readonly #options: TownOptions;
  readonly #terms = new Map<string, UserTerms>();

  constructor(options: TownOptions) {
    const { capacity, policy = {}, dialMs = 5, closeMs = 1, dialFailures = 0, seed = 1, listener } = options;
    this.line = options.line ?? new Timeline();
    this.dialMs = dialMs;
    this.closeMs = closeMs;
    this.dialFailures = dialFailures;
    this.random = new SeededRandom(seed);
    this.#options = options;
    this.queue = new FairQueue({
      policy: { ...usualPolicy, ...policy },
      clock: this.clock,
      alarm: (ring) =>
        this.alarm(() => {
          this.looks++;
          ring();
        }),
    });
    this.budget = this.#budgetNamed('total', 4, capacity, this.#termsOf, listener);
  }

  readonly #termsOf = (user: string): UserTerms => this.#terms.get(user) ?? usualTerms;

  #budgetNamed(
    name: string,
    size: number,
    capacity: number,
    termsOf: (user: string) => UserTerms,
    listener?: FairListener,
  ): FairBudget {
    const budget =
      this.budgets.get(name) ?? this.queue.addBudget({ name, size, capacity, termsOf, listener });
    this.budgets.set(name, budget);
    return budget;
  }

  serverOf(database: string): string {
    return this.#options.serverOf?.(database) ?? database;
  }

  /** In all budgets that count the connections of this user to this database. `worker`: it has a pool of its own. */
  seatsOf(user: string, database: string, worker?: number): SeatWish[] {
    const none = Number.POSITIVE_INFINITY;
    const { ofUser = none, ofDatabase = none, ofServer = none, poolSize = none } = this.#options;
    const server = this.serverOf(database);
    const equal = (): UserTerms => usualTerms;
    const ofPool = {
      budget: this.#budgetNamed(`pool ${user}@${database}`, 0, poolSize, equal),
      user: `${worker}`,
    };
    return [
      ...(worker === undefined ? [] : [ofPool]),
      { budget: this.#budgetNamed(`user ${user}`, 1, ofUser, equal), user: database },
      { budget: this.#budgetNamed(`database ${database}`, 2, ofDatabase, this.#termsOf), user },
      { budget: this.#budgetNamed(`server ${server}`, 3, ofServer, this.#termsOf), user },
      { budget: this.budget, user },
    ];
  }

  /** As an operator would, while everything goes on. */
  setTerms(user: string, terms: Partial<UserTerms>): void {
    this.#terms.set(user, { ...usualTerms, ...this.#terms.get(user), ...terms });
    for (const [name, { capacity }] of this.budgets)
      if (!/^(?:user|pool) /u.test(name))
        this.budgets.get(name)?.change({ capacity, termsOf: this.#termsOf });
  }

  /** Budgets that were above their capacity when a connection was opened. */
  openedAbove: string | undefined;

  noteOpened({ seats }: FairMember): void {
    for (const { name, held, capacity } of seats.map(({ budget }) => budget))
      if (held > capacity) this.openedAbove ??= `${held} of ${capacity} (${name})`;
  }

  plan(ms: number, act: () => void): void {
    this.line.plan(this.line.now + ms, () => {
      act();
      this.onEvent();
    });
  }

  readonly clock: Clock = {
    now: () => this.line.now,
    coarse: () => this.line.now,
    arrival: () => this.line.now,
  };

  readonly alarm: AlarmFactory = (ring) => {
    const planned = new Planned(0, () => {
      ring();
      this.onEvent();
    });
    return {
      granularityMs: 0,
      set: (at) => this.line.replan(planned, at),
      keepProcessAlive: () => {},
      clear: () => this.line.cancel(planned),
    };
  };

  /** A user comes, and its clients begin at once. */
  arrive(user: string, load: Load, database = 'db', worker?: number): House {
    const house = new House(this, user, load, database, worker);
    this.houses.push(house);
    house.begin();
    return house;
  }

  run(ms: number): void {
    this.line.runUntil(this.line.now + ms);
  }

  /** How even the numbers of answers are: 1 for all the same. */
  get jain(): number {
    const counts = this.houses.map(({ answers }) => answers);
    const sum = counts.reduce((total, count) => total + count, 0);
    return sum ** 2 / (counts.length * counts.reduce((total, count) => total + count ** 2, 0));
  }

  get answers(): number {
    return this.houses.reduce((total, { answers }) => total + answers, 0);
  }

  /** The longest that anyone has waited for a connection, those included who wait still. */
  get longestWait(): number {
    return Math.max(...this.houses.map(({ longestWait }) => longestWait));
  }
}

export class House {
  readonly user: string;
  readonly database: string;
  readonly pool: ConnectionPool<Socket>;
  readonly member: FairMember;
  readonly arrivedAt: number;
  answers = 0;
  firstAnswerAt = Number.NaN;
  readonly waits: number[] = [];
  readonly #town: Town;
  readonly #load: Load;
  readonly #waiting = new Set<Client>();
  readonly #pinned: (() => void)[] = [];
  #pinsLeft: number;
  #isOpen = true;
  isVacated = false;

  constructor(town: Town, user: string, load: Load, database: string, worker: number | undefined) {
    this.#town = town;
    this.user = user;
    this.database = database;
    this.#load = load;
    this.#pinsLeft = load.pinned ?? 0;
    this.arrivedAt = town.line.now;
    this.member = town.queue.join(
      { user, database, server: town.serverOf(database), hasClients: () => this.#isOpen },
      town.seatsOf(user, database, worker),
    );
    const leases: Leases = {
      acquire: (count, holder) => {
        const answer = this.member.acquire(count, holder as FairHolder);
        if (answer === 'asking') town.asked++;
        return answer;
      },
      release: (count, holder) => this.member.release(count, holder as FairHolder),
    };
    const { minIdle = 0 } = load;
    const read = new OptionReader({
      max: 1_000,
      minIdle,
      leases,
      onDialFailure: 'retry',
      idleTimeout: '10m',
    });
    this.pool = new ConnectionPool<Socket>({
      policy: readPolicy(read, false),
      dialer: this.#dialer(),
      clock: town.clock,
      alarm: town.alarm,
      random: town.random,
      name: user,
    });
    this.pool.start();
  }

  /** The pool has asked for a lease, and has not got one. */
  get isAsking(): boolean {
    return this.member.isWaiting;
  }

  begin(): void {
    for (let n = 0; n < this.#load.clients; n++) new Client(this).ask();
  }

  /** Its clients ask nothing more. */
  leave(): void {
    this.#isOpen = false;
  }

  /** As `leave`, and its pool is given up, as soon as all have had their answer; what was kept is given back. */
  vacate(): void {
    this.leave();
    if (this.isVacated) return;
    this.isVacated = true;
    this.unpin();
    this.member.leave();
    this.pool.drain(this.now + 10_000, () => {});
  }

  /** Gives back the connections that clients kept. */
  unpin(): void {
    this.#pinsLeft = 0;
    for (const giveBack of this.#pinned.splice(0)) giveBack();
  }

  /** Nobody is there any more. */
  get isDeserted(): boolean {
    return !this.#isOpen && this.pool.waiting === 0;
  }

  get connections(): number {
    const { pending, live, closing } = this.pool.counts();
    return pending + live + closing;
  }

  /** Of those, how many clients keep for themselves. */
  get pinned(): number {
    return this.#pinned.length;
  }

  get longestWait(): number {
    const now = this.#town.line.now;
    let longest = 0;
    for (const wait of this.waits) longest = Math.max(longest, wait);
    for (const { askedAt } of this.#waiting) longest = Math.max(longest, now - askedAt);
    return longest;
  }

  get now(): number {
    return this.#town.line.now;
  }

  noteWait(client: Client, isWaiting: boolean): void {
    if (isWaiting) this.#waiting.add(client);
    else this.#waiting.delete(client);
  }

  /** A query is under way on this connection. */
  serve(client: Client, pooled: PooledConnection<Socket>, generation: number): void {
    this.waits.push(this.now - client.askedAt);
    if (this.#pinsLeft > 0) {
      this.#pinsLeft--;
      this.#pinned.push(() => this.pool.release(pooled, generation));
      return;
    }
    this.#town.plan(this.#load.queryMs, () => {
      this.answers++;
      if (Number.isNaN(this.firstAnswerAt)) this.firstAnswerAt = this.now;
      this.pool.release(pooled, generation);
      this.comeAgain();
    });
  }

  comeAgain(atLeastMs = 0): void {
    if (!this.#isOpen) return;
    this.#town.plan(Math.max(this.#load.pauseMs ?? 0, atLeastMs), () => {
      if (this.#isOpen) new Client(this).ask();
    });
  }

  #dialer(): Dialer<Socket> {
    const town = this.#town;
    const hanging = new Set<Dial<Socket>>();
    const gone = (): void => {
      town.connections--;
    };
    return {
      dial: (dial) => {
        town.connections++;
        town.opened++;
        town.noteOpened(this.member);
        town.mostConnections = Math.max(town.mostConnections, town.connections);
        if (town.silent.has(town.serverOf(this.database))) {
          hanging.add(dial);
          return;
        }
        const fails = town.random.next() < town.dialFailures;
        town.plan(town.dialMs, () => {
          if (!fails) {
            this.pool.dialed(dial, { user: this.user });
            return;
          }
          gone();
          this.pool.dialFailed(dial, new Error('the server is out of order'));
        });
      },
      abandon: (dial) => {
        // An answer that was under way comes yet.
        if (!hanging.delete(dial)) return;
        town.plan(town.closeMs, () => {
          gone();
          this.pool.dialFailed(dial, new Error('given up'));
        });
      },
      close: (pooled) => {
        town.plan(town.closeMs, () => {
          gone();
          this.pool.closed(pooled);
        });
      },
      destroy: gone,
      check: (pooled) => this.pool.checked(pooled),
    };
  }
}

class Client extends Waiter<Socket> {
  readonly #house: House;
  readonly askedAt: number;

  constructor(house: House) {
    super();
    this.#house = house;
    this.askedAt = house.now;
  }

  ask(): void {
    const pooled = this.#house.pool.tryTake();
    if (pooled !== undefined) {
      this.#house.serve(this, pooled, pooled.generation);
      return;
    }
    this.#house.noteWait(this, true);
    this.#house.pool.enqueue(this, Number.POSITIVE_INFINITY);
  }

  override granted(pooled: PooledConnection<Socket>): void {
    this.#house.noteWait(this, false);
    this.#house.serve(this, pooled, pooled.generation);
  }

  /** The server was out of order, or the pool is no more. While the breaker is open that is said at once, so the next try must take time. */
  override failed(): void {
    this.#house.noteWait(this, false);
    this.#house.comeAgain(1);
  }
}

// Users with pools of their own on one budget, in virtual time: real engines, a real budget, and a server that counts.
import { FairLeases, type FairListener } from '../../../src/coordination/fair/fair-leases.js';
import type { FairMember } from '../../../src/coordination/fair/fair-members.js';
import { type FairPolicy, usualPolicy } from '../../../src/coordination/fair/fair-policy.js';
import { ConnectionPool } from '../../../src/core/connection-pool.js';
import type { Dialer } from '../../../src/core/dialer.js';
import { readPolicy } from '../../../src/core/pool-policy.js';
import type { PooledConnection } from '../../../src/core/pooled-connection.js';
import { Waiter } from '../../../src/core/waiters.js';
import type { AlarmFactory, Clock } from '../../../src/kernel/clock.js';
import { OptionReader } from '../../../src/kernel/option-reader.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { Planned, Timeline } from '../../../src/simulator/timeline.js';

export interface TownOptions {
  readonly capacity: number;
  readonly policy?: Partial<FairPolicy>;
  readonly dialMs?: number;
  readonly closeMs?: number;
  readonly seed?: number;
  readonly listener?: FairListener;
}

interface Socket {
  readonly user: string;
}

/** What one user does: so many clients, each with one query after the other. */
export interface Load {
  readonly clients: number;
  readonly queryMs: number;
  /** Between two queries of a client. */
  readonly pauseMs?: number;
}

export class Town {
  readonly line = new Timeline();
  readonly budget: FairLeases;
  readonly houses: House[] = [];
  readonly random: SeededRandom;
  readonly dialMs: number;
  readonly closeMs: number;
  /** Connections as the server sees them, from the first packet until the socket is gone. */
  connections = 0;
  mostConnections = 0;

  constructor({ capacity, policy = {}, dialMs = 5, closeMs = 1, seed = 1, listener }: TownOptions) {
    this.dialMs = dialMs;
    this.closeMs = closeMs;
    this.random = new SeededRandom(seed);
    this.budget = new FairLeases({
      policy: { ...usualPolicy, capacity, ...policy },
      clock: this.clock,
      alarm: this.alarm,
      listener,
    });
  }

  readonly clock: Clock = {
    now: () => this.line.now,
    coarse: () => this.line.now,
    arrival: () => this.line.now,
  };

  readonly alarm: AlarmFactory = (ring) => {
    const planned = new Planned(0, ring);
    return {
      granularityMs: 0,
      set: (at) => this.line.replan(planned, at),
      keepProcessAlive: () => {},
      clear: () => this.line.cancel(planned),
    };
  };

  /** A user comes, and its clients begin at once. */
  arrive(user: string, load: Load, database = 'db'): House {
    const house = new House(this, user, load, database);
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
  readonly pool: ConnectionPool<Socket>;
  readonly member: FairMember;
  readonly arrivedAt: number;
  answers = 0;
  firstAnswerAt = Number.NaN;
  readonly waits: number[] = [];
  readonly #town: Town;
  readonly #load: Load;
  readonly #waiting = new Set<Client>();
  #isOpen = true;

  constructor(town: Town, user: string, load: Load, database: string) {
    this.#town = town;
    this.user = user;
    this.#load = load;
    this.arrivedAt = town.line.now;
    this.member = town.budget.join({ user, database });
    const read = new OptionReader({
      max: 1_000,
      leases: this.member,
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

  begin(): void {
    for (let n = 0; n < this.#load.clients; n++) new Client(this).ask();
  }

  /** Its clients ask nothing more. */
  leave(): void {
    this.#isOpen = false;
  }

  get connections(): number {
    const { pending, live, closing } = this.pool.counts();
    return pending + live + closing;
  }

  get longestWait(): number {
    const now = this.#town.line.now;
    return Math.max(0, ...this.waits, ...Array.from(this.#waiting, ({ askedAt }) => now - askedAt));
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
    const { queryMs, pauseMs = 0 } = this.#load;
    this.waits.push(this.now - client.askedAt);
    this.#town.line.plan(this.now + queryMs, () => {
      this.answers++;
      if (Number.isNaN(this.firstAnswerAt)) this.firstAnswerAt = this.now;
      this.pool.release(pooled, generation);
      if (this.#isOpen) this.#town.line.plan(this.now + pauseMs, () => new Client(this).ask());
    });
  }

  #dialer(): Dialer<Socket> {
    const town = this.#town;
    const gone = (): void => {
      town.connections--;
    };
    return {
      dial: (dial) => {
        town.connections++;
        town.mostConnections = Math.max(town.mostConnections, town.connections);
        town.line.plan(town.line.now + town.dialMs, () => this.pool.dialed(dial, { user: this.user }));
      },
      abandon: () => {},
      close: (pooled) => {
        town.line.plan(town.line.now + town.closeMs, () => {
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
  askedAt: number;

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

  override failed(error: Error): void {
    throw error;
  }
}

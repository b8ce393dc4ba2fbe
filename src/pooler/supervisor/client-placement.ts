/**
 * Decides which worker gets a client.
 *
 * Clients of one pool (a user in a database) go to the worker that has its other clients, its home: a server connection belongs to one
 * worker, so a pool on several workers needs connections in each of them. A pool gets one more home when it has `clientsPerHome` clients for
 * each that it has, and can expect enough connections for all (`widthOf`). A client whose pool is not known goes to the worker with the fewest.
 */
import { systemClock } from '../../runtime/system.js';

/** The pool that a client will use. */
export interface ClientPool {
  readonly key: string;
  readonly user: string;
  readonly database: string;
  readonly server: string;
  /** Limit of its connections. */
  readonly size: number;
}

/** A pool whose demand is not known yet, with its number of clients. */
export interface Newcomer {
  readonly pool: ClientPool;
  readonly clients: number;
}

interface Placed<W> {
  readonly worker: W;
  readonly home: Homes<W> | undefined;
}

/** With fewer clients that send one query after the other, a worker is not busy. */
const clientsPerHome = 4;
/** Time from its first client until the demand of a pool is known. */
const newcomerMs = 1_000;

export class ClientPlacement<W extends object> {
  readonly #widthOf: (pool: ClientPool, newcomers: readonly Newcomer[]) => number;
  readonly #now: () => number;
  /** Number of clients of each worker. */
  readonly #loads = new Map<W, number>();
  readonly #clients = new Map<number, Placed<W>>();
  /** By key of the pool. A pool without clients is not kept. */
  readonly #homes = new Map<string, Homes<W>>();
  /** Oldest first. */
  readonly #newcomers = new Set<Homes<W>>();
  #last: W | undefined;

  /** `widthOf`: number of workers that the pool has enough connections for. */
  constructor(
    widthOf: (pool: ClientPool, newcomers: readonly Newcomer[]) => number,
    now: () => number = () => systemClock.now(),
  ) {
    this.#widthOf = widthOf;
    this.#now = now;
  }

  loadOf(worker: W): number {
    return this.#loads.get(worker) ?? 0;
  }

  /** Pools that have clients. */
  get pools(): number {
    return this.#homes.size;
  }

  /** Chooses one of `workers`; undefined where there is none. Among equals, the one after the last. */
  choose(pool: ClientPool | undefined, workers: readonly W[]): W | undefined {
    const homes = pool && this.#homes.get(pool.key);
    const chosen = homes && this.#homeOf(pool, homes, workers);
    if (chosen !== undefined) return chosen;
    const from = this.#last === undefined ? 0 : workers.indexOf(this.#last) + 1;
    this.#last = this.#leastLoaded([...workers.slice(from), ...workers.slice(0, from)]) ?? this.#last;
    return workers.length === 0 ? undefined : this.#last;
  }

  /** Undefined where the pool has no client on these workers. */
  #homeOf(pool: ClientPool, homes: Homes<W>, workers: readonly W[]): W | undefined {
    const own = workers.filter((worker) => homes.of(worker) > 0);
    const mayWiden = own.length < workers.length && homes.clients >= clientsPerHome * own.length;
    if (own.length === 0 || (own.length === 1 && !mayWiden)) return own[0];
    const width = this.#widthOf(pool, this.#newcomersNow());
    if (mayWiden && own.length < width)
      return this.#leastLoaded(workers.filter((worker) => homes.of(worker) === 0));
    // With more homes than it has connections for, the pool returns to those with most of its clients.
    own.sort((one, other) => homes.of(other) - homes.of(one));
    own.length = Math.min(own.length, Math.max(1, width));
    return own.at(-1);
  }

  #leastLoaded(workers: readonly W[]): W | undefined {
    let best: W | undefined;
    for (const worker of workers)
      if (best === undefined || this.loadOf(worker) < this.loadOf(best)) best = worker;
    return best;
  }

  #newcomersNow(): Newcomer[] {
    this.#forgetOld();
    return [...this.#newcomers];
  }

  #forgetOld(): void {
    const since = this.#now() - newcomerMs;
    for (const homes of this.#newcomers) {
      if (homes.cameAt > since) return;
      this.#newcomers.delete(homes);
    }
  }

  /** `ticket`: identifies the client until it has disconnected. */
  placed(ticket: number, worker: W, pool: ClientPool | undefined): void {
    const home = pool && (this.#homes.get(pool.key) ?? this.#firstOf(pool));
    home?.count(worker, 1);
    this.#loads.set(worker, this.loadOf(worker) + 1);
    this.#clients.set(ticket, { worker, home });
  }

  #firstOf(pool: ClientPool): Homes<W> {
    const homes = new Homes<W>(pool, this.#now());
    this.#forgetOld();
    this.#homes.set(pool.key, homes);
    this.#newcomers.add(homes);
    return homes;
  }

  gone(ticket: number): void {
    const placed = this.#clients.get(ticket);
    if (placed === undefined) return;
    const { worker, home } = placed;
    this.#clients.delete(ticket);
    this.#loads.set(worker, this.loadOf(worker) - 1);
    home?.count(worker, -1);
    if (home?.clients !== 0) return;
    this.#homes.delete(home.pool.key);
    this.#newcomers.delete(home);
  }

  /** The worker has ended, and its clients with it. */
  left(worker: W): void {
    for (const [ticket, placed] of this.#clients) if (placed.worker === worker) this.gone(ticket);
    this.#loads.delete(worker);
    if (this.#last === worker) this.#last = undefined;
  }
}

/** Clients of one pool on each worker. */
class Homes<W> implements Newcomer {
  readonly pool: ClientPool;
  readonly cameAt: number;
  clients = 0;
  readonly #counts = new Map<W, number>();

  constructor(pool: ClientPool, cameAt: number) {
    this.pool = pool;
    this.cameAt = cameAt;
  }

  of(worker: W): number {
    return this.#counts.get(worker) ?? 0;
  }

  count(worker: W, change: 1 | -1): void {
    const count = this.of(worker) + change;
    if (count === 0) this.#counts.delete(worker);
    else this.#counts.set(worker, count);
    this.clients += change;
  }
}

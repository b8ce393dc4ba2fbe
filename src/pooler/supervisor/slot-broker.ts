/**
 * Slots of all workers. A slot counts in the pool of a user in a database, whose size is for all workers together, and in every
 * budget above that. Workers share slots fairly, as users do.
 */
import { systemClock } from '../../runtime/system.js';
import type { ServerBudgets } from '../budgets/server-budgets.js';
import type { FromSupervisor, FromWorker } from '../messages/messages.js';
import { KnownServers } from './known-servers.js';
import { SharedPool } from './shared-pool.js';
import { WorkerPoolProxy } from './worker-pool-proxy.js';

/** Pools and slots of one worker. */
export class WorkerSlots {
  readonly #broker: SlotBroker;
  readonly #worker: number;
  readonly #send: (message: FromSupervisor) => void;
  readonly #pools = new Map<number, WorkerPoolProxy>();

  constructor(broker: SlotBroker, worker: number, send: (message: FromSupervisor) => void) {
    this.#broker = broker;
    this.#worker = worker;
    this.#send = send;
  }

  get pools(): Iterable<WorkerPoolProxy> {
    return this.#pools.values();
  }

  get servers(): number {
    let count = 0;
    for (const { servers } of this.#pools.values()) count += servers.size;
    return count;
  }

  /** Handles a message about slots; false for any other. */
  came(message: FromWorker): boolean {
    switch (message.kind) {
      case 'pool':
        this.#pools.set(message.pool, this.#broker.open(this.#worker, message, this.#send));
        return true;
      case 'poolGone':
        this.#poolGone(message.pool);
        return true;
      case 'keep':
        this.#pools.get(message.pool)?.keeps(message.count);
        return true;
      case 'ask':
        this.#pools.get(message.report.pool)?.reported(message.report);
        return true;
      case 'reports':
        for (const report of message.reports) this.#pools.get(report.pool)?.reported(report);
        return true;
      case 'release':
        this.#released(message.pool, message.count, message.servers);
        return true;
      case 'dial':
        this.#pools.get(message.dial.pool)?.dials.set(message.dial.server, message.dial);
        return true;
      case 'dialEnded':
        this.#pools.get(message.pool)?.dials.delete(message.server);
        return true;
      case 'server':
        this.#pools.get(message.server.pool)?.dials.delete(message.server.server);
        this.#pools.get(message.server.pool)?.servers.set(message.server.server, message.server);
        return true;
      case 'facts':
        void this.#broker.knownServers.learned(message.facts);
        return true;
      default:
        return false;
    }
  }

  #released(number: number, count: number, servers: readonly number[]): void {
    const pool = this.#pools.get(number);
    for (const server of servers) {
      pool?.servers.delete(server);
      pool?.dials.delete(server);
    }
    pool?.released(count);
    if (pool?.isGone === true && pool.held === 0) this.#pools.delete(number);
  }

  #poolGone(number: number): void {
    const pool = this.#pools.get(number);
    if (pool === undefined) return;
    pool.gone();
    if (pool.held === 0) this.#pools.delete(number);
  }

  /** The worker has ended. Its slots are free once its connections are closed, which the caller watches. */
  close(): WorkerPoolProxy[] {
    const left = [...this.#pools.values()];
    this.#pools.clear();
    for (const pool of left) pool.gone();
    return left.filter(({ held }) => held > 0);
  }
}

export class SlotBroker {
  readonly budgets: ServerBudgets;
  readonly knownServers = new KnownServers();
  readonly #pools = new Map<string, SharedPool>();

  constructor(budgets: ServerBudgets) {
    this.budgets = budgets;
  }

  /** A worker was started. */
  slotsOf(worker: number, send: (message: FromSupervisor) => void): WorkerSlots {
    return new WorkerSlots(this, worker, send);
  }

  open(
    worker: number,
    { pool: number, user, database, server }: Extract<FromWorker, { kind: 'pool' }>,
    send: (message: FromSupervisor) => void,
  ): WorkerPoolProxy {
    this.#forgetOld();
    // A user and database on another server make another pool.
    const key = JSON.stringify([database, user, server]);
    const shared =
      this.#pools.get(key) ?? new SharedPool(this.budgets.addPoolSize(`pool ${user}@${database}`));
    this.#pools.set(key, shared);
    return new WorkerPoolProxy({
      ...{ worker, number, user, database, shared, clock: systemClock, send },
      leases: (pool) =>
        this.budgets.leasesFor(
          { database, user, server, hasClients: () => pool.hasClients },
          { budget: shared.size, user: `worker ${worker}` },
        ),
    });
  }

  /** Forgets pools that no worker has any more. */
  #forgetOld(): void {
    for (const [key, pool] of this.#pools) {
      if (!pool.isOver) continue;
      pool.close();
      this.budgets.removePoolSize(pool.size);
      this.#pools.delete(key);
    }
  }

  /** The most connections that each pool has ever held, over all workers. */
  peaks(): { readonly database: string; readonly user: string; readonly peak: number }[] {
    return Array.from(this.#pools, ([key, { peak }]) => {
      const [database, user] = JSON.parse(key) as [string, string];
      return { database, user, peak };
    });
  }

  stop(): void {
    for (const pool of this.#pools.values()) pool.close();
    this.budgets.stop();
  }
}

/** Budgets of a worker: the supervisor grants every slot, and gets the same requests from all workers. */
import { systemClock } from '../../runtime/system.js';
import type {
  BudgetedPool,
  BudgetLeases,
  BudgetStats,
  Budgets,
  ServerQuotas,
} from '../budgets/server-budgets.js';
import type { FromWorker } from '../messages/messages.js';
import type { ServerNotes } from '../process/shared-parts.js';
import type { Backend } from '../servers/backend.js';
import type { Opening } from '../servers/opening.js';
import { ServerFactsAsker } from './server-facts.js';
import { SupervisorLeases } from './supervisor-leases.js';

/** Interval of reports to the supervisor, and the interval while nothing is in use. */
const reportMs = 25;
const idleReportMs = 100;

export class SupervisorBudgets implements Budgets, ServerNotes {
  asksServers = false;
  readonly #send: (message: FromWorker) => void;
  readonly #leases = new Map<number, SupervisorLeases>();
  /** Server connections that the supervisor knows, by the pool's number. */
  readonly #servers = new Map<number, Set<Backend>>();
  readonly #facts = new ServerFactsAsker((facts) => this.#send({ kind: 'facts', facts }));
  #lastNumber = 0;
  #timer: NodeJS.Timeout | undefined;
  #isTimerSlow = false;

  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  leasesFor(pool: BudgetedPool): SupervisorLeases {
    const number = ++this.#lastNumber;
    const leases = new SupervisorLeases(pool, number, {
      clock: systemClock,
      asked: (report) => {
        this.#send({ kind: 'ask', report });
        this.#reportSoon();
      },
      released: (of, count) => {
        this.#send({ kind: 'release', pool: of, count, servers: this.#takeGone(of) });
        this.#forgetIfOver(of);
      },
      keeping: (of, count) => this.#send({ kind: 'keep', pool: of, count }),
      left: (of) => this.#left(of),
    });
    this.#leases.set(number, leases);
    const { user, database, server } = pool;
    this.#send({ kind: 'pool', pool: number, user, database, server, limit: 0 });
    return leases;
  }

  /** Notes a dial for the supervisor, which can only find a server process again if it knows the connection. */
  dialing({ id, address, ends, key }: Opening, leases: BudgetLeases): void {
    if (address === undefined || ends === undefined) return;
    const { host, port, path } = address;
    const { localAddress, localPort, remoteAddress, remotePort } = ends;
    this.#send({
      kind: 'dial',
      dial: {
        pool: (leases as SupervisorLeases).number,
        server: id,
        host,
        port,
        path,
        ends: { localAddress, localPort, remoteAddress, remotePort },
        key: key && { processId: key.processId, secretKey: key.secretKey },
      },
    });
  }

  dialEnded({ id }: Opening, leases: BudgetLeases): void {
    this.#send({ kind: 'dialEnded', pool: (leases as SupervisorLeases).number, server: id });
  }

  entered(backend: Backend): Promise<void> {
    return this.#facts.entered(backend);
  }

  /** Notes an open server connection, so that it can be ended after this worker has died. */
  opened(backend: Backend, leases: BudgetLeases): void {
    const { key, dial, id } = backend;
    const { host, port, path } = dial;
    const pool = (leases as SupervisorLeases).number;
    const servers = this.#servers.get(pool) ?? new Set();
    this.#servers.set(pool, servers);
    servers.add(backend);
    // Without a key, the note of the dial is all that is known.
    if (key === undefined) return;
    const { processId, secretKey } = key;
    this.#send({ kind: 'server', server: { pool, server: id, host, port, path, processId, secretKey } });
  }

  /** The supervisor has granted a slot to a pool. */
  granted(pool: number): void {
    const leases = this.#leases.get(pool);
    if (leases === undefined) this.#send({ kind: 'release', pool, count: 1, servers: [] });
    else leases.granted();
  }

  recalled(pool: number, count: number, hanging: number): void {
    this.#leases.get(pool)?.recalled(count, hanging);
  }

  toKeep(pool: number, count: number): void {
    this.#leases.get(pool)?.toKeep(count);
  }

  shareChanged(pool: number, share: number | undefined, shortage: string | undefined): void {
    this.#leases.get(pool)?.shareChanged(share ?? Number.POSITIVE_INFINITY, shortage);
  }

  /** The supervisor applies the configuration itself. */
  change({ asksServers }: Pick<ServerQuotas, 'asksServers'>): void {
    this.asksServers = asksServers;
  }

  /** The supervisor shows the budgets. */
  stats(): BudgetStats[] {
    return [];
  }

  busyStats(): BudgetStats[] {
    return [];
  }

  learned(server: string, capacity: number): void {
    this.#send({ kind: 'learned', server, capacity });
  }

  /** Connections of the pool that were closed since the last call. */
  #takeGone(pool: number): number[] {
    const servers = this.#servers.get(pool);
    const gone: number[] = [];
    for (const backend of servers ?? []) {
      if (!backend.isGone) continue;
      servers?.delete(backend);
      gone.push(backend.id);
    }
    return gone;
  }

  /** The remaining slots are given back by `release`. */
  #left(pool: number): void {
    this.#send({ kind: 'poolGone', pool });
    this.#forgetIfOver(pool);
  }

  #forgetIfOver(pool: number): void {
    const leases = this.#leases.get(pool);
    if (leases === undefined || !leases.hasLeft || leases.isActive) return;
    this.#leases.delete(pool);
    this.#servers.delete(pool);
  }

  /** A requested slot may be granted and used soon. */
  #reportSoon(): void {
    if (this.#timer === undefined || this.#isTimerSlow) this.#reportIn(reportMs);
  }

  #reportIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#isTimerSlow = ms > reportMs;
    this.#timer = setTimeout(() => this.#report(), ms).unref();
  }

  #report(): void {
    this.#timer = undefined;
    const active = [...this.#leases.values()].filter(({ isActive }) => isActive);
    const reports = active.map((leases) => leases.news()).filter((news) => news !== undefined);
    if (reports.length > 0) this.#send({ kind: 'reports', reports });
    // A report may make an engine ask again, which has started the timer already.
    if (active.length > 0 && this.#timer === undefined)
      this.#reportIn(active.some(({ isInUse }) => isInUse) ? reportMs : idleReportMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

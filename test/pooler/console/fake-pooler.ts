// A pooler that is nothing but what the console sees of it: its records can be set, and it writes down what it is told.

import type { FleetStats } from '../../../src/pooler/budgets/fleet.js';
import { databaseFor, type PoolerConfig } from '../../../src/pooler/config/pooler-config.js';
import type { Counters } from '../../../src/pooler/console/counters.js';
import { noCounters } from '../../../src/pooler/console/counters.js';
import type {
  ActiveQueryRecord,
  ClassRecord,
  ClientRecord,
  ConnectionEnds,
  DatabaseRecord,
  ListeningRecord,
  PoolerControls,
  PoolerView,
  PoolRecord,
  QueryRecord,
  RebalanceRecord,
  RunState,
  ServerRecord,
  ShareRecord,
  ShutdownMode,
  StatsRecord,
  UserRecord,
  WorkerRecord,
} from '../../../src/pooler/console/pooler-view.js';
import { configWith } from '../config/config-files.js';

/** A command that waits until the test says that it is done. */
export interface Pending {
  readonly what: string;
  readonly signal: AbortSignal | undefined;
  done(): void;
  failed(error: Error): void;
}

/** Reading one takes longer than most tests. */
const configs = new Map<string, PoolerConfig>();

export class FakePooler implements PoolerView, PoolerControls {
  version = '0.1.0';
  config: PoolerConfig;
  state: RunState = 'active';
  isShuttingDown = false;
  /** Commands that it got, in order: `pause app`. */
  readonly told: string[] = [];
  readonly pending: Pending[] = [];
  readonly paused = new Set<string>();
  readonly disabled = new Set<string>();
  listeningRecords: ListeningRecord[] = [];
  userRecords: UserRecord[] = [];
  poolRecords: PoolRecord[] = [];
  clientRecords: ClientRecord[] = [];
  serverRecords: ServerRecord[] = [];
  workerRecords: WorkerRecord[] = [];
  queryRecords: QueryRecord[] = [];
  activeQueryRecords: ActiveQueryRecord[] = [];
  shareRecords: ShareRecord[] = [];
  rebalanceRecords: RebalanceRecord[] = [];
  classRecords: ClassRecord[] = [];
  fleetRecords: FleetStats[] = [];
  statsRecord: StatsRecord = { windowMs: 0, databases: [] };
  memoryUsage: NodeJS.MemoryUsage = { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 };
  /** Error with which `kill`, `reload` and the like fail. */
  failure: Error | undefined;
  #wakers: (() => void)[] = [];

  constructor(yaml = '') {
    this.config = configs.get(yaml) ?? configWith(yaml);
    configs.set(yaml, this.config);
  }

  // ---- what it shows ----------------------------------------------------------------------------------------------

  queries(): readonly QueryRecord[] {
    return this.queryRecords;
  }

  activeQueries(): readonly ActiveQueryRecord[] {
    return this.activeQueryRecords;
  }

  shares(): readonly ShareRecord[] {
    return this.shareRecords;
  }

  rebalances(): readonly RebalanceRecord[] {
    return this.rebalanceRecords;
  }

  fleet(): readonly FleetStats[] {
    return this.fleetRecords;
  }

  classes(): readonly ClassRecord[] {
    return this.classRecords;
  }

  listening(): readonly ListeningRecord[] {
    return this.listeningRecords;
  }

  databases(): readonly DatabaseRecord[] {
    return [...this.config.databases.keys()].map((name) => ({
      settings: databaseFor(this.config, name) as DatabaseRecord['settings'],
      isPaused: this.paused.has(name),
      isDisabled: this.disabled.has(name),
      servers: this.serverRecords.filter(({ database }) => database === name).length,
      clients: this.clientRecords.filter(({ database }) => database === name).length,
    }));
  }

  workers(): readonly WorkerRecord[] {
    return this.workerRecords;
  }

  users(): readonly UserRecord[] {
    return this.userRecords;
  }

  pools(): readonly PoolRecord[] {
    return this.poolRecords;
  }

  clients(): readonly ClientRecord[] {
    return this.clientRecords;
  }

  servers(): readonly ServerRecord[] {
    return this.serverRecords;
  }

  stats(): StatsRecord {
    return this.statsRecord;
  }

  memory(): NodeJS.MemoryUsage {
    return this.memoryUsage;
  }

  // ---- what it can do ---------------------------------------------------------------------------------------------

  pause(database: string | undefined, signal: AbortSignal): Promise<void> {
    if (database === undefined) this.state = 'paused';
    else this.paused.add(database);
    return this.#wait(`pause ${database ?? 'all'}`, signal);
  }

  resume(database: string | undefined): void {
    this.#tell(`resume ${database ?? 'all'}`);
    if (database !== undefined) this.paused.delete(database);
    else {
      this.state = 'active';
      this.paused.clear();
    }
  }

  disable(database: string): void {
    this.#tell(`disable ${database}`);
    this.disabled.add(database);
  }

  enable(database: string): void {
    this.#tell(`enable ${database}`);
    this.disabled.delete(database);
  }

  reconnect(database: string | undefined): void {
    this.#tell(`reconnect ${database ?? 'all'}`);
  }

  kill(database: string | undefined): void {
    this.#tell(`kill ${database ?? 'all'}`);
    for (const name of database === undefined ? this.config.databases.keys() : [database])
      this.paused.add(name);
  }

  killClient(id: number): boolean {
    this.#tell(`killClient ${id}`);
    return this.clientRecords.some((client) => client.id === id);
  }

  waitClose(database: string | undefined, signal: AbortSignal): Promise<void> {
    return this.#wait(`waitClose ${database ?? 'all'}`, signal);
  }

  suspend(signal: AbortSignal): Promise<void> {
    this.state = 'suspended';
    return this.#wait('suspend', signal);
  }

  reload(): Promise<void> {
    return this.#wait('reload', undefined);
  }

  applyConfig(config: PoolerConfig): void {
    this.#tell('applyConfig');
    this.config = config;
  }

  shutdown(mode: ShutdownMode, signal: AbortSignal): Promise<void> {
    return this.#wait(`shutdown ${mode}`, signal);
  }

  // ---- for the test -----------------------------------------------------------------------------------------------

  /** The command that waits, as soon as there is one. */
  async waiting(what: string): Promise<Pending> {
    for (;;) {
      const found = this.pending.find((one) => one.what === what);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  #tell(what: string): void {
    this.told.push(what);
    if (this.failure !== undefined) throw this.failure;
  }

  #wait(what: string, signal: AbortSignal | undefined): Promise<void> {
    this.#tell(what);
    return new Promise<void>((resolve, reject) => {
      const over = () => void this.pending.splice(this.pending.indexOf(pending), 1);
      const pending: Pending = {
        what,
        signal,
        done: () => {
          over();
          resolve();
        },
        failed: (error) => {
          over();
          reject(error);
        },
      };
      this.pending.push(pending);
      signal?.addEventListener('abort', () => pending.failed(signal.reason as Error), { once: true });
      for (const wake of this.#wakers.splice(0)) wake();
    });
  }
}

const plainEnds: ConnectionEnds = {
  remoteAddress: '192.0.2.7',
  remotePort: 50_123,
  localAddress: '192.0.2.1',
  localPort: 6_432,
  unsent: 0,
  tls: undefined,
};

export function clientRecord(own: Partial<ClientRecord> = {}): ClientRecord {
  return {
    id: 12,
    user: 'alice',
    database: 'app',
    state: 'idle',
    ends: plainEnds,
    connectedAt: Date.UTC(2026, 2, 4, 5, 6, 7, 890),
    requestedAt: Date.UTC(2026, 2, 4, 15, 16, 17),
    waitedMs: 0,
    serverId: undefined,
    pin: undefined,
    applicationName: '',
    preparedStatements: 0,
    replication: 'none',
    heldBytes: 0,
    ...own,
  };
}

export function serverRecord(own: Partial<ServerRecord> = {}): ServerRecord {
  return {
    id: 7,
    user: 'app_rw',
    database: 'app',
    state: 'idle',
    ends: { ...plainEnds, remoteAddress: '198.51.100.3', remotePort: 5_432, localPort: 40_404 },
    connectedAt: Date.UTC(2026, 2, 4, 5, 0, 0),
    requestedAt: Date.UTC(2026, 2, 4, 5, 30, 0),
    clientId: undefined,
    followerIds: [],
    isCloseNeeded: false,
    processId: 4_242,
    applicationName: '',
    preparedStatements: 0,
    replication: 'none',
    heldBytes: 0,
    ...own,
  };
}

export function poolRecord(own: Partial<PoolRecord> = {}): PoolRecord {
  return {
    database: 'app',
    user: 'alice',
    mode: 'transaction',
    hosts: 1,
    loadBalanceHosts: 'round-robin',
    targetSessionAttrs: 'any',
    clients: {},
    servers: {},
    longestWaitMs: 0,
    shortage: undefined,
    waitCause: undefined,
    dialFailure: undefined,
    ledger: { limit: 20, pending: 0, live: 0, closing: 0, peak: 0 },
    discarded: {},
    ...own,
  };
}

export function countersOf(own: Partial<Counters>): Counters {
  return { ...noCounters, ...own };
}

/** Console views, made from the present state when they are asked for. */
import type { Endpoint } from '../../net/endpoint.js';
import { headgateVersion } from '../../observe/version.js';
import { systemClock } from '../../runtime/system.js';
import type { FleetStats } from '../budgets/fleet.js';
import type { ConnectedClient } from '../clients/relay/connected-client.js';
import { databaseOptions } from '../config/entry-options.js';
import {
  type DatabaseConfig,
  databaseFor,
  fallbackDatabase,
  type PoolerConfig,
} from '../config/pooler-config.js';
import { type Counters, noCounters, StatsWindow, sumOf } from '../console/counters.js';
import type {
  ActiveQueryRecord,
  ClassRecord,
  ClientRecord,
  ClientState,
  DatabaseRecord,
  ListeningRecord,
  PoolerView,
  PoolRecord,
  QueryRecord,
  RebalanceRecord,
  RunState,
  ServerRecord,
  ServerState,
  ShareRecord,
  StatsRecord,
  UserRecord,
  WorkerRecord,
} from '../console/pooler-view.js';
import type { Backend } from '../servers/backend.js';
import type { BackendPool } from '../servers/backend-pool.js';
import {
  activeQueryRecord,
  clientStateOf,
  consoleRecord,
  openingRecord,
  pendingRecord,
  serverRecord,
  serverStateOf,
  sessionRecord,
} from './console-records.js';
import { countersOf } from './departed-pools.js';
import type { PoolEntry } from './pool-registry.js';
import type { PoolerState } from './pooler-state.js';

const consoleName = 'pgbouncer';

/** With the numbers that PgBouncer shows. */
function consoleDatabase(port: number): DatabaseConfig {
  const usual = Object.fromEntries(
    Object.entries(databaseOptions).map(([key, option]) => [key, option.default]),
  );
  const own = { name: consoleName, dbname: consoleName, user: consoleName, host: [], port };
  return {
    ...usual,
    ...own,
    poolSize: 2,
    reservePoolSize: 0,
    poolMode: 'statement',
  } as unknown as DatabaseConfig;
}

/** Clients of one pool. */
interface PoolClients {
  readonly clients: Partial<Record<ClientState, number>>;
  longestWaitMs: number;
}

const noClients: PoolClients = { clients: {}, longestWaitMs: 0 };

export class ConsoleView implements PoolerView {
  readonly version = headgateVersion;
  readonly #startedAt = Date.now();
  readonly #pooler: PoolerState;
  readonly #endpoints: () => readonly Endpoint[];
  readonly #window = new StatsWindow(systemClock.now());

  constructor(pooler: PoolerState, endpoints: () => readonly Endpoint[]) {
    this.#pooler = pooler;
    this.#endpoints = endpoints;
  }

  get config(): PoolerConfig {
    return this.#pooler.config;
  }

  get state(): RunState {
    return this.#pooler.state;
  }

  get isShuttingDown(): boolean {
    return this.#pooler.isShuttingDown;
  }

  listening(): readonly ListeningRecord[] {
    return this.#endpoints().map((endpoint) => ({
      address: endpoint.kind === 'unix' ? 'unix' : endpoint.host,
      port: endpoint.port,
    }));
  }

  databases(): readonly DatabaseRecord[] {
    const { config, pools, limits, pausedDatabases, disabledDatabases } = this.#pooler;
    const names = new Set([...config.databases.keys()].filter((name) => name !== fallbackDatabase));
    // A command may have named a database that only `*` serves: show it, so that the command can be undone.
    for (const name of [...pausedDatabases, ...disabledDatabases]) names.add(name);
    const served = new Map<string, PoolEntry>();
    for (const entry of pools.entries()) {
      names.add(entry.pool.database);
      served.set(entry.pool.database, entry);
    }
    const servers = this.#serversBy((pool) => pool.database);
    const records = [...names].flatMap((name) => {
      const settings = databaseFor(config, name) ?? served.get(name)?.database;
      if (settings === undefined) return [];
      return {
        settings,
        isPaused: pausedDatabases.has(name),
        isDisabled: disabledDatabases.has(name),
        servers: servers.get(name) ?? 0,
        clients: limits.ofDatabase(name),
      };
    });
    return this.#pooler.isPgBouncer && this.#pooler.shared === undefined
      ? [...records, this.#consoleRecord()]
      : records;
  }

  /** PgBouncer's console is one of its databases. */
  #consoleRecord(): DatabaseRecord {
    const { config, limits } = this.#pooler;
    return {
      settings: consoleDatabase(config.listen.port),
      isPaused: false,
      isDisabled: false,
      servers: 0,
      clients: limits.ofDatabase(consoleName),
    };
  }

  users(): readonly UserRecord[] {
    const { auth, config, pools, limits, sessions } = this.#pooler;
    const names = new Set([...auth.users.keys(), ...config.users.keys()]);
    for (const { user } of pools.pools()) names.add(user);
    if (this.#pooler.isPgBouncer) names.add(consoleName);
    for (const { identity } of sessions) names.add(identity.user);
    const servers = this.#serversBy((pool) => pool.user);
    return Array.from(names, (name) => ({
      name,
      servers: servers.get(name) ?? 0,
      clients: limits.ofUser(name),
    }));
  }

  /** Server connections by a name of their pool. In one pass: of names and pools there may be thousands. */
  #serversBy(nameOf: (pool: BackendPool) => string): Map<string, number> {
    const counts = new Map<string, number>();
    for (const pool of this.#pooler.pools.pools()) {
      const { live, pending, closing } = pool.stats();
      const name = nameOf(pool);
      counts.set(name, (counts.get(name) ?? 0) + live + pending + closing + pool.leaving);
    }
    return counts;
  }

  pools(): readonly PoolRecord[] {
    const clients = this.#clientsByPool();
    return Array.from(this.#pooler.pools.entries(), ({ pool, database }) =>
      this.#poolRecord(pool, database, clients.get(pool) ?? noClients),
    );
  }

  /** In one pass, as well. */
  #clientsByPool(): Map<BackendPool, PoolClients> {
    const { sessions, pendingClients } = this.#pooler;
    const now = systemClock.now();
    const byPool = new Map<BackendPool, PoolClients>();
    const add = (pool: BackendPool, state: ClientState, waitingSince: number | undefined): void => {
      const ofPool = byPool.get(pool) ?? { clients: {}, longestWaitMs: 0 };
      byPool.set(pool, ofPool);
      count(ofPool.clients, state);
      if (waitingSince !== undefined)
        ofPool.longestWaitMs = Math.max(ofPool.longestWaitMs, now - waitingSince);
    };
    for (const session of sessions)
      add(
        session.pool,
        clientStateOf(session),
        session.state === 'waiting' ? session.times.waitingSince : undefined,
      );
    for (const { waitsFor } of pendingClients)
      if (waitsFor !== undefined) add(waitsFor.pool, 'waiting', waitsFor.since);
    return byPool;
  }

  #poolRecord(
    pool: BackendPool,
    database: PoolEntry['database'],
    { clients, longestWaitMs }: PoolClients,
  ): PoolRecord {
    const servers: Partial<Record<ServerState, number>> = {};
    for (const backend of pool.backends())
      count(servers, serverStateOf(backend, pool.plan.policy.checkAfterIdle));
    const { pending, limit, live, closing, peak, waitCause } = pool.stats();
    if (pending > 0) servers.new = (servers.new ?? 0) + pending;
    return {
      database: pool.database,
      user: pool.user,
      mode: pool.limits.poolMode,
      hosts: database.host.length,
      loadBalanceHosts: database.loadBalanceHosts,
      targetSessionAttrs: database.targetSessionAttrs,
      clients,
      servers,
      longestWaitMs,
      shortage: pool.shortage,
      waitCause,
      dialFailure: pool.dialFailure,
      ledger: { limit, pending, live, closing, peak },
      discarded: pool.totals().discarded,
    };
  }

  clients(): readonly ClientRecord[] {
    const { sessions, pendingClients, consoles } = this.#pooler;
    return [
      ...Array.from(sessions, sessionRecord),
      ...Array.from(consoles, ([session, pending]) => consoleRecord(session, pending)),
      ...Array.from(pendingClients, pendingRecord),
    ];
  }

  servers(): readonly ServerRecord[] {
    const holders = new Map<Backend, ConnectedClient>();
    for (const session of this.#pooler.sessions)
      if (session.backend !== undefined) holders.set(session.backend, session);
    const records: ServerRecord[] = [];
    for (const pool of this.#pooler.pools.pools()) {
      for (const backend of pool.backends()) records.push(serverRecord(pool, backend, holders.get(backend)));
      for (const opening of pool.openings()) records.push(openingRecord(pool, opening));
    }
    return records;
  }

  /** A `stats_period` is over. */
  periodEnded(): void {
    this.#window.roll(systemClock.now(), this.#counters());
  }

  stats(): StatsRecord {
    const now = systemClock.now();
    return {
      windowMs: this.#window.lengthAt(now),
      databases: Array.from(this.#counters(), ([database, total]) => ({
        database,
        total,
        before: this.#window.before(database),
      })),
    };
  }

  #counters(): Map<string, Counters> {
    const counters = new Map(this.#pooler.departed.databases);
    // As in PgBouncer, console use counts, too.
    if (this.#pooler.isPgBouncer) counters.set(consoleName, this.#pooler.consoleCounters);
    for (const pool of this.#pooler.pools.pools()) {
      const before = counters.get(pool.database) ?? noCounters;
      counters.set(pool.database, sumOf([before, countersOf(pool)]));
    }
    return counters;
  }

  /** A copy of the present numbers: the entries go on counting. */
  queries(): readonly QueryRecord[] {
    return Array.from(this.#pooler.queries?.entries() ?? [], (entry) => {
      const { database, user, text, calls, errors, rows, bytes, totalMs, longestMs, waitMs, buckets } = entry;
      return { database, user, text, calls, errors, rows, bytes, totalMs, longestMs, waitMs, buckets };
    });
  }

  activeQueries(): readonly ActiveQueryRecord[] {
    return Array.from(this.#pooler.sessions).flatMap((session) => activeQueryRecord(session) ?? []);
  }

  shares(): readonly ShareRecord[] {
    return this.#pooler.budgets
      .stats()
      .flatMap(({ budget, capacity, users }) => users.map((user) => ({ budget, capacity, ...user })));
  }

  rebalances(): readonly RebalanceRecord[] {
    return this.#pooler.shareLog.changes;
  }

  fleet(): readonly FleetStats[] {
    return this.#pooler.fleet?.stats() ?? [];
  }

  classes(): readonly ClassRecord[] {
    return Array.from(this.#pooler.pools.pools()).flatMap(({ database, user, classes }) => [
      {
        database,
        user,
        class: 'regular' as const,
        part: classes.regularPart,
        inUse: classes.regularInUse,
        waiting: classes.regularWaiting,
        reason: classes.reason,
      },
      {
        database,
        user,
        class: 'reserved' as const,
        part: classes.reservedPart,
        inUse: classes.reservedInUse,
        waiting: classes.reservedWaiting,
        reason: classes.reason,
      },
    ]);
  }

  memory(): NodeJS.MemoryUsage {
    return process.memoryUsage();
  }

  /** The record of this process alone. */
  workers(): readonly WorkerRecord[] {
    const { user, system } = process.cpuUsage();
    const { sessions, consoles, pendingClients } = this.#pooler;
    return [
      {
        number: 1,
        processId: process.pid,
        state: this.#pooler.isShuttingDown ? 'ending' : 'ready',
        startedAt: this.#startedAt,
        restarts: 0,
        clients: sessions.size + consoles.size + pendingClients.size,
        servers: this.servers().length,
        cpuMs: (user + system) / 1_000,
        memoryBytes: process.memoryUsage.rss(),
      },
    ];
  }
}

function count<Key extends string>(counts: Partial<Record<Key, number>>, key: Key): void {
  counts[key] = (counts[key] ?? 0) + 1;
}

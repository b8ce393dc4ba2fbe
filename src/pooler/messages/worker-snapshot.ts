/** A worker's view for the console of another worker: its records, in a form that can be sent. */

import type { FleetStats } from '../budgets/fleet.js';
import type {
  ActiveQueryRecord,
  ClassRecord,
  ClientRecord,
  ConnectionEnds,
  DatabaseRecord,
  PoolerView,
  PoolRecord,
  QueryRecord,
  RebalanceRecord,
  ServerRecord,
  ShareRecord,
  StatsRecord,
  UserRecord,
} from '../console/pooler-view.js';
import type { WorkerIds } from './worker-ids.js';

/** The long lists that are wanted. */
export interface SnapshotRequest {
  readonly clients: boolean;
  readonly servers: boolean;
  /** Statistics of statements, and running queries. */
  readonly queries: boolean;
}

/** A database by name. Its settings are included without secrets, for a database that is no longer configured. */
export interface DatabaseSnapshot extends Omit<DatabaseRecord, 'settings'> {
  readonly settings: Omit<DatabaseRecord['settings'], 'password'>;
}

export interface WorkerSnapshot {
  readonly databases: readonly DatabaseSnapshot[];
  readonly users: readonly UserRecord[];
  readonly pools: readonly PoolRecord[];
  readonly classes: readonly ClassRecord[];
  readonly clients: readonly ClientRecord[];
  readonly servers: readonly ServerRecord[];
  /** Number of clients and servers, even where the lists were not wanted. */
  readonly clientCount: number;
  readonly serverCount: number;
  readonly stats: StatsRecord;
  readonly queries: readonly QueryRecord[];
  readonly activeQueries: readonly ActiveQueryRecord[];
  readonly fleet: readonly FleetStats[];
  readonly memory: NodeJS.MemoryUsage;
  /** Processor time of the worker, in milliseconds. */
  readonly cpuMs: number;
}

/** State of a worker, from the supervisor. */
export interface WorkerState {
  readonly number: number;
  readonly processId: number;
  readonly state: 'starting' | 'ready' | 'ending' | 'gone';
  readonly startedAt: number;
  readonly restarts: number;
}

export interface NumberedSnapshot extends WorkerSnapshot {
  readonly number: number;
}

/** Snapshots of all workers. */
export interface WorkerSnapshots {
  readonly snapshots: readonly NumberedSnapshot[];
  /** Counters of workers that have ended or did not answer. */
  readonly absent: StatsRecord['databases'];
  readonly workers: readonly WorkerState[];
  /** Peaks over all workers: the sum of the workers' own peaks would be too high. */
  readonly peaks: readonly { readonly database: string; readonly user: string; readonly peak: number }[];
  /** The supervisor keeps the budgets. */
  readonly shares: readonly ShareRecord[];
  readonly rebalances: readonly RebalanceRecord[];
  /** Fleet statistics of the supervisor and of each worker. */
  readonly fleet: readonly FleetStats[];
  readonly state: PoolerView['state'];
  readonly paused: readonly string[];
}

const microsInMs = 1_000;

export function takeSnapshot(view: PoolerView, ids: WorkerIds, wanted: SnapshotRequest): WorkerSnapshot {
  const { user, system } = process.cpuUsage();
  const clients = view.clients();
  const servers = view.servers();
  return {
    databases: view.databases().map(databaseSnapshot),
    users: view.users(),
    pools: view.pools(),
    classes: view.classes(),
    clients: wanted.clients ? clients.map((client) => clientSnapshot(client, ids)) : [],
    servers: wanted.servers ? servers.map((server) => serverSnapshot(server, ids)) : [],
    clientCount: clients.length,
    serverCount: servers.length,
    stats: view.stats(),
    queries: wanted.queries ? view.queries() : [],
    activeQueries: wanted.queries ? view.activeQueries().map((query) => querySnapshot(query, ids)) : [],
    fleet: view.fleet(),
    memory: view.memory(),
    cpuMs: (user + system) / microsInMs,
  };
}

function databaseSnapshot({
  settings: { password: _, ...settings },
  ...record
}: DatabaseRecord): DatabaseSnapshot {
  return { settings, ...record };
}

function clientSnapshot(record: ClientRecord, ids: WorkerIds): ClientRecord {
  const { id, serverId, ends } = record;
  return {
    ...record,
    id: ids.of(id),
    serverId: serverId === undefined ? undefined : ids.of(serverId),
    ends: endsSnapshot(ends),
  };
}

function querySnapshot(record: ActiveQueryRecord, ids: WorkerIds): ActiveQueryRecord {
  const { clientId, serverId } = record;
  return {
    ...record,
    clientId: ids.of(clientId),
    serverId: serverId === undefined ? undefined : ids.of(serverId),
  };
}

function serverSnapshot(record: ServerRecord, ids: WorkerIds): ServerRecord {
  const { id, clientId, followerIds, ends } = record;
  return {
    ...record,
    id: ids.of(id),
    clientId: clientId === undefined ? undefined : ids.of(clientId),
    followerIds: followerIds.map((follower) => ids.of(follower)),
    ends: endsSnapshot(ends),
  };
}

/** A transport can't be sent as it is. */
function endsSnapshot(ends: ConnectionEnds): ConnectionEnds {
  const { remoteAddress, remotePort, localAddress, localPort, unsent, tls } = ends;
  return {
    remoteAddress,
    remotePort,
    localAddress,
    localPort,
    unsent,
    tls: tls && { version: tls.version, cipher: tls.cipher },
  };
}

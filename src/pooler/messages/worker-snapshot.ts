/** What a worker shows of itself to the console of another: the records of its own view, as they can be sent. */

import type { FleetStats } from '../budgets/fleet.js';
import type {
  ClassRecord,
  ClientRecord,
  ConnectionEnds,
  DatabaseRecord,
  PoolerView,
  PoolRecord,
  RebalanceRecord,
  ServerRecord,
  ShareRecord,
  StatsRecord,
  UserRecord,
} from '../console/pooler-view.js';
import type { WorkerIds } from './worker-ids.js';

/** Which of the long lists are wanted. */
export interface LookRequest {
  readonly clients: boolean;
  readonly servers: boolean;
}

/** A database is known by its name; its settings come along without what is secret, for one that no configuration has any more. */
export interface DatabaseLook extends Omit<DatabaseRecord, 'settings'> {
  readonly settings: Omit<DatabaseRecord['settings'], 'password'>;
}

export interface Look {
  readonly databases: readonly DatabaseLook[];
  readonly users: readonly UserRecord[];
  readonly pools: readonly PoolRecord[];
  readonly classes: readonly ClassRecord[];
  readonly clients: readonly ClientRecord[];
  readonly servers: readonly ServerRecord[];
  /** How many there are, also where the list was not wanted. */
  readonly clientCount: number;
  readonly serverCount: number;
  readonly stats: StatsRecord;
  readonly fleet: readonly FleetStats[];
  readonly memory: NodeJS.MemoryUsage;
  /** Time that the processor has worked for it, in milliseconds. */
  readonly cpuMs: number;
}

/** What the supervisor knows of a worker. */
export interface WorkerState {
  readonly number: number;
  readonly processId: number;
  readonly state: 'starting' | 'ready' | 'ending' | 'gone';
  readonly startedAt: number;
  readonly restarts: number;
}

export interface NumberedLook extends Look {
  readonly number: number;
}

/** All workers, for the one that asked. */
export interface Looks {
  readonly looks: readonly NumberedLook[];
  /** What workers have counted that are no more, or have not answered. */
  readonly absent: StatsRecord['databases'];
  readonly workers: readonly WorkerState[];
  /** Over all workers: a sum of what each had at most would be more than there ever were. */
  readonly peaks: readonly { readonly database: string; readonly user: string; readonly peak: number }[];
  /** The supervisor keeps the budgets. */
  readonly shares: readonly ShareRecord[];
  readonly rebalances: readonly RebalanceRecord[];
  /** Of the supervisor, and of each worker. */
  readonly fleet: readonly FleetStats[];
  readonly state: PoolerView['state'];
  readonly paused: readonly string[];
}

const microsInMs = 1_000;

export function takeLook(view: PoolerView, ids: WorkerIds, wanted: LookRequest): Look {
  const { user, system } = process.cpuUsage();
  const clients = view.clients();
  const servers = view.servers();
  return {
    databases: view.databases().map(databaseLook),
    users: view.users(),
    pools: view.pools(),
    classes: view.classes(),
    clients: wanted.clients ? clients.map((client) => clientLook(client, ids)) : [],
    servers: wanted.servers ? servers.map((server) => serverLook(server, ids)) : [],
    clientCount: clients.length,
    serverCount: servers.length,
    stats: view.stats(),
    fleet: view.fleet(),
    memory: view.memory(),
    cpuMs: (user + system) / microsInMs,
  };
}

function databaseLook({ settings: { password: _, ...settings }, ...record }: DatabaseRecord): DatabaseLook {
  return { settings, ...record };
}

function clientLook(record: ClientRecord, ids: WorkerIds): ClientRecord {
  const { id, serverId, ends } = record;
  return {
    ...record,
    id: ids.of(id),
    serverId: serverId === undefined ? undefined : ids.of(serverId),
    ends: endsLook(ends),
  };
}

function serverLook(record: ServerRecord, ids: WorkerIds): ServerRecord {
  const { id, clientId, ends } = record;
  return {
    ...record,
    id: ids.of(id),
    clientId: clientId === undefined ? undefined : ids.of(clientId),
    ends: endsLook(ends),
  };
}

/** A transport is more than can be sent. */
function endsLook(ends: ConnectionEnds): ConnectionEnds {
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

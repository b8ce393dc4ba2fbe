/** Interface between the console and the pooler: records made on demand, and controls. */

import type { Transport } from '../../net/transport.js';
import type { FleetStats } from '../budgets/fleet.js';
import type { DatabaseConfig, PoolerConfig } from '../config/pooler-config.js';
import type { PoolMode } from '../config/pooling-options.js';
import type { DialFailure } from '../servers/dial-failure.js';
import type { Counters } from './counters.js';

export type RunState = 'active' | 'paused' | 'suspended';

/** Times are milliseconds since 1970. A record describes the moment it was made, and is not updated. */
export interface PoolerView {
  /** Headgate's version: `0.1.0`. */
  readonly version: string;
  readonly config: PoolerConfig;
  /** State of the whole pooler; single databases can be paused as well. */
  readonly state: RunState;
  readonly isShuttingDown: boolean;
  listening(): readonly ListeningRecord[];
  /** Configured databases except `*`; of those that only `*` matches, the ones in use, paused or disabled. Not the console. */
  databases(): readonly DatabaseRecord[];
  users(): readonly UserRecord[];
  pools(): readonly PoolRecord[];
  /** All clients, including console clients and those that are logging in. */
  clients(): readonly ClientRecord[];
  /** All server connections, including those that are being opened. */
  servers(): readonly ServerRecord[];
  stats(): StatsRecord;
  /** Statistics of statements. */
  queries(): readonly QueryRecord[];
  /** Running and waiting queries. */
  activeQueries(): readonly ActiveQueryRecord[];
  /** Shares in every budget that has a limit. */
  shares(): readonly ShareRecord[];
  /** Latest changes of shares, newest first. */
  rebalances(): readonly RebalanceRecord[];
  /** Limits shared with other poolers, by server. */
  fleet(): readonly FleetStats[];
  classes(): readonly ClassRecord[];
  memory(): NodeJS.MemoryUsage;
  /** Processes that serve clients. */
  workers(): readonly WorkerRecord[];
}

export interface WorkerRecord {
  /** Counted from 1. */
  readonly number: number;
  readonly processId: number;
  readonly state: 'starting' | 'ready' | 'ending' | 'gone';
  readonly startedAt: number;
  /** Number of replacements. */
  readonly restarts: number;
  /** Present connections of clients and to servers. */
  readonly clients: number;
  readonly servers: number;
  /** Processor time since its start. */
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

export interface ListeningRecord {
  /** `unix` for a Unix socket. */
  readonly address: string;
  readonly port: number;
}

export interface DatabaseRecord {
  /** The result of `databaseFor()`. */
  readonly settings: DatabaseConfig;
  /** The database itself is paused, and not only the whole pooler. */
  readonly isPaused: boolean;
  readonly isDisabled: boolean;
  /** Present connections to servers and of clients. */
  readonly servers: number;
  readonly clients: number;
}

export interface UserRecord {
  readonly name: string;
  /** Present connections to servers and of clients. */
  readonly servers: number;
  readonly clients: number;
}

/** The pool of a user in a database. */
export interface PoolRecord {
  readonly database: string;
  readonly user: string;
  readonly mode: PoolMode;
  /** Number of hosts, and the method to choose one. */
  readonly hosts: number;
  readonly loadBalanceHosts: string;
  readonly targetSessionAttrs: string;
  /** By state. Clients that are logging in belong to no pool yet. */
  readonly clients: Readonly<Partial<Record<ClientState, number>>>;
  readonly servers: Readonly<Partial<Record<ServerState, number>>>;
  /** Wait of the longest waiting client; 0 where none waits. */
  readonly longestWaitMs: number;
  /** The budget that has nothing for the pool, with its numbers; undefined where none is short. */
  readonly shortage: string | undefined;
  /** Reason why the first waiting client waits, in one word; undefined where none waits. */
  readonly waitCause: string | undefined;
  /** Why no server connection could be opened, until one can. */
  readonly dialFailure: DialFailure | undefined;
  readonly ledger: LedgerRecord;
  /** Discarded server connections since the start, by reason. */
  readonly discarded: Readonly<Record<string, number>>;
}

export interface LedgerRecord {
  readonly limit: number;
  readonly pending: number;
  readonly live: number;
  readonly closing: number;
  readonly peak: number;
}

/** Both ends of a connection, such as a `Transport`. */
export type ConnectionEnds = Pick<
  Transport,
  'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort' | 'unsent'
> & { readonly tls: { readonly version: string; readonly cipher: string } | undefined };

interface ConnectionRecord {
  /** From 1 to 2,147,483,647. Unique among clients, and among server connections. */
  readonly id: number;
  readonly ends: ConnectionEnds;
  readonly connectedAt: number;
  /** Time when the last request came or was passed on. */
  readonly requestedAt: number;
  readonly applicationName: string;
  readonly preparedStatements: number;
  readonly replication: 'none' | 'logical' | 'physical';
  /** Received bytes that were not passed on yet. */
  readonly heldBytes: number;
}

/**
 * - `login`: is not authenticated yet.
 * - `idle`: needs no server; in session mode, or pinned, it may still have one.
 * - `active`: has a server.
 * - `waiting`: has sent a query and waits for a server, or logs in and waits for one.
 * - The last two are connections with a cancel request: one that was passed on, one that was not yet.
 */
export type ClientState =
  | 'login'
  | 'idle'
  | 'active'
  | 'waiting'
  | 'active_cancel_req'
  | 'waiting_cancel_req';

export interface ClientRecord extends ConnectionRecord {
  /** Undefined until known. */
  readonly user: string | undefined;
  readonly database: string | undefined;
  readonly state: ClientState;
  readonly waitedMs: number;
  /** Server connection in use by the client. */
  readonly serverId: number | undefined;
  /** Why and since when the client keeps its server after a transaction. */
  readonly pin: { readonly reason: string; readonly since: number } | undefined;
}

/**
 * - `new`: is being opened, and may not have been reached yet.
 * - `used`: has been idle for so long that it is checked before its next use.
 * - `tested`: is being checked or cleaned.
 * - `active_cancel`: carries a cancel request; `being_canceled`: waits for cancel requests sent for it.
 */
export type ServerState = 'new' | 'idle' | 'used' | 'tested' | 'active' | 'active_cancel' | 'being_canceled';

export interface ServerRecord extends ConnectionRecord {
  readonly user: string;
  readonly database: string;
  readonly state: ServerState;
  /** The client that uses the connection. */
  readonly clientId: number | undefined;
  /** Clients whose statements were sent behind that client's, in order. */
  readonly followerIds: readonly number[];
  /** The connection is closed when it is released. */
  readonly isCloseNeeded: boolean;
  /** Process id on the server; 0 where unknown. */
  readonly processId: number;
}

export interface StatsRecord {
  /** Age of `before`. */
  readonly windowMs: number;
  readonly databases: readonly {
    readonly database: string;
    /** Totals since the start. */
    readonly total: Counters;
    /** Totals at the beginning of the window for averages. */
    readonly before: Counters;
  }[];
}

/** Statistics of a user's statement in a database, without its constants. Times are milliseconds. */
export interface QueryRecord {
  readonly database: string;
  readonly user: string;
  readonly text: string;
  readonly calls: number;
  readonly errors: number;
  readonly rows: number;
  readonly bytes: number;
  readonly totalMs: number;
  readonly longestMs: number;
  readonly waitMs: number;
  /** Number of calls by run time. */
  readonly buckets: ArrayLike<number>;
}

export interface ActiveQueryRecord {
  readonly database: string;
  readonly user: string;
  readonly state: 'active' | 'waiting';
  readonly clientId: number;
  /** Server connection in use, and its process id; undefined while the query waits. */
  readonly serverId: number | undefined;
  readonly processId: number | undefined;
  readonly applicationName: string;
  /** Time of the request in milliseconds since 1970, and time that it has run or waited. */
  readonly startedAt: number;
  readonly ms: number;
  /** Time before it ran. */
  readonly waitedMs: number;
  /** Without its constants; undefined where unknown. */
  readonly text: string | undefined;
}

/** A user's share of a budget. */
export interface ShareRecord {
  /** `total`, `server db:5432`, `database app`; in `user app` the users are its databases. */
  readonly budget: string;
  readonly capacity: number;
  readonly user: string;
  readonly weight: number;
  readonly minimum: number;
  /** Infinity: no maximum. */
  readonly maximum: number;
  readonly demand: number;
  readonly share: number;
  readonly held: number;
  /** Held leases that are recalled and not returned yet. */
  readonly recalled: number;
  readonly waitedMs: number;
}

/** A change of a share. */
export interface RebalanceRecord {
  readonly at: number;
  readonly budget: string;
  /** Why the shares were computed. */
  readonly cause: string;
  readonly user: string;
  readonly from: number;
  readonly to: number;
  readonly demand: number;
  readonly reason: string;
}

/** One of the two classes of work of a pool. */
export interface ClassRecord {
  readonly database: string;
  readonly user: string;
  readonly class: 'regular' | 'reserved';
  /** Number of connections for the class; Infinity until the first split. */
  readonly part: number;
  readonly inUse: number;
  readonly waiting: number;
  /** Reason for the present parts. */
  readonly reason: string;
}

export type ShutdownMode = 'immediate' | 'wait_for_servers' | 'wait_for_clients';

/**
 * Console controls. The console has checked the arguments: the database exists and is not the console's, and a resumed one was
 * paused. `undefined` stands for all databases. Errors are told to the client.
 *
 * The console waits for a returned promise. A signal ends only the wait: the promise rejects with the signal's reason, and the
 * action goes on.
 */
export interface PoolerControls {
  /** Resolves when no server connection of the database is left. */
  pause(database: string | undefined, signal: AbortSignal): Promise<void>;
  /** Ends `pause`, `kill` or `suspend`; for all databases it also ends the state of the whole pooler. */
  resume(database: string | undefined): void | Promise<void>;
  /** No further client is accepted. */
  disable(database: string): void | Promise<void>;
  enable(database: string): void | Promise<void>;
  /** Closes server connections when they are released. */
  reconnect(database: string | undefined): void | Promise<void>;
  /** Closes all client and server connections at once, and pauses the database. */
  kill(database: string | undefined): void | Promise<void>;
  /** False where there is no such client. */
  killClient(id: number): boolean | Promise<boolean>;
  /** Resolves when all server connections that were to be closed are closed. */
  waitClose(database: string | undefined, signal: AbortSignal): Promise<void>;
  /** Resolves when nothing is unsent. Only console clients are read from then on. */
  suspend(signal: AbortSignal): Promise<void>;
  /** Rejects with a `ConfigError` if the new configuration is wrong; the old one stays in force. */
  reload(): Promise<void>;
  /** Applies a checked configuration, until the next reload. */
  applyConfig(config: PoolerConfig): void | Promise<void>;
  /** Resolves when all clients have left, except for console clients. */
  shutdown(mode: ShutdownMode, signal: AbortSignal): Promise<void>;
}

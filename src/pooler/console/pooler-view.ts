/** What the console needs of the pooler: records to make rows of, made when someone asks for them, and what can be done. */

import type { Transport } from '../../net/transport.js';
import type { FleetStats } from '../budgets/fleet.js';
import type { DatabaseConfig, PoolerConfig } from '../config/pooler-config.js';
import type { PoolMode } from '../config/pooling-options.js';
import type { Counters } from './counters.js';

export type RunState = 'active' | 'paused' | 'suspended';

/** Points in time are milliseconds since 1970. Nothing here is kept: a record stands for the moment it was made. */
export interface PoolerView {
  /** Of Headgate: `0.1.0`. */
  readonly version: string;
  readonly config: PoolerConfig;
  /** That of the whole pooler; single databases can be paused besides. */
  readonly state: RunState;
  readonly isShuttingDown: boolean;
  listening(): readonly ListeningRecord[];
  /** Those of the configuration without `*`; of those that only `*` allows, the ones in use, paused or disabled. Not the console. */
  databases(): readonly DatabaseRecord[];
  users(): readonly UserRecord[];
  pools(): readonly PoolRecord[];
  /** All of them, those at the console and those that are logging in included. */
  clients(): readonly ClientRecord[];
  /** Those that are being opened included. */
  servers(): readonly ServerRecord[];
  stats(): StatsRecord;
  /** What statements have cost. */
  queries(): readonly QueryRecord[];
  /** What runs or waits at this moment. */
  activeQueries(): readonly ActiveQueryRecord[];
  /** Of every budget that has a limit. */
  shares(): readonly ShareRecord[];
  /** The last changes of shares, the latest first. */
  rebalances(): readonly RebalanceRecord[];
  /** What is shared with other poolers, by server. */
  fleet(): readonly FleetStats[];
  classes(): readonly ClassRecord[];
  memory(): NodeJS.MemoryUsage;
  /** The processes that serve clients. */
  workers(): readonly WorkerRecord[];
}

export interface WorkerRecord {
  /** From 1. */
  readonly number: number;
  readonly processId: number;
  readonly state: 'starting' | 'ready' | 'ending' | 'gone';
  readonly startedAt: number;
  /** How often it had to be replaced. */
  readonly restarts: number;
  /** Connections of clients, and to servers, at the moment. */
  readonly clients: number;
  readonly servers: number;
  /** Time of the processor, since its start. */
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

export interface ListeningRecord {
  /** `unix` for a Unix socket. */
  readonly address: string;
  readonly port: number;
}

export interface DatabaseRecord {
  /** As `databaseFor()` answers. */
  readonly settings: DatabaseConfig;
  /** By itself: not because the whole pooler is. */
  readonly isPaused: boolean;
  readonly isDisabled: boolean;
  /** Connections to servers, and of clients, at the moment. */
  readonly servers: number;
  readonly clients: number;
}

export interface UserRecord {
  readonly name: string;
  /** Connections to servers, and of clients, at the moment. */
  readonly servers: number;
  readonly clients: number;
}

/** The pool of a user in a database. */
export interface PoolRecord {
  readonly database: string;
  readonly user: string;
  readonly mode: PoolMode;
  /** How many hosts there are to choose from, and how one is chosen. */
  readonly hosts: number;
  readonly loadBalanceHosts: string;
  readonly targetSessionAttrs: string;
  /** By state. Clients that are logging in are in no pool yet. */
  readonly clients: Readonly<Partial<Record<ClientState, number>>>;
  readonly servers: Readonly<Partial<Record<ServerState, number>>>;
  /** Of the client that waits longest; 0 where none does. */
  readonly longestWaitMs: number;
  /** Which budget has nothing for it, with its numbers; undefined where it lacks none. */
  readonly shortage: string | undefined;
  readonly ledger: LedgerRecord;
  /** Server connections that were discarded since the start, by reason. */
  readonly discarded: Readonly<Record<string, number>>;
}

export interface LedgerRecord {
  readonly limit: number;
  readonly pending: number;
  readonly live: number;
  readonly closing: number;
  readonly peak: number;
}

/** The two ends of a connection: a `Transport` will do. */
export type ConnectionEnds = Pick<
  Transport,
  'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort' | 'unsent'
> & { readonly tls: { readonly version: string; readonly cipher: string } | undefined };

interface ConnectionRecord {
  /** From 1 to 2,147,483,647. No two clients have the same one, nor do two servers. */
  readonly id: number;
  readonly ends: ConnectionEnds;
  readonly connectedAt: number;
  /** When the last request came, or was passed on. */
  readonly requestedAt: number;
  readonly applicationName: string;
  readonly preparedStatements: number;
  readonly replication: 'none' | 'logical' | 'physical';
  /** Bytes that came and were not passed on yet. */
  readonly heldBytes: number;
}

/**
 * - `login`: has yet to prove who it is.
 * - `idle`: has no server and wants none; in session mode, or pinned, it can have one.
 * - `active`: has a server.
 * - `waiting`: has asked something and has no server for it yet, or is let in as soon as there is one.
 * - The last two are connections that came with a cancel request: one that was passed on, one that was not yet.
 */
export type ClientState =
  | 'login'
  | 'idle'
  | 'active'
  | 'waiting'
  | 'active_cancel_req'
  | 'waiting_cancel_req';

export interface ClientRecord extends ConnectionRecord {
  /** Undefined as long as it is not known. */
  readonly user: string | undefined;
  readonly database: string | undefined;
  readonly state: ClientState;
  readonly waitedMs: number;
  /** The server that it has. */
  readonly serverId: number | undefined;
  /** Why it keeps that server after its transaction, and since when. */
  readonly pin: { readonly reason: string; readonly since: number } | undefined;
}

/**
 * - `new`: is being opened, and may not have been reached yet.
 * - `used`: has been idle for so long that it is checked before it is given to anyone.
 * - `tested`: is being checked or cleaned.
 * - `active_cancel`: carries a cancel request; `being_canceled`: waits for those that are for it.
 */
export type ServerState = 'new' | 'idle' | 'used' | 'tested' | 'active' | 'active_cancel' | 'being_canceled';

export interface ServerRecord extends ConnectionRecord {
  readonly user: string;
  readonly database: string;
  readonly state: ServerState;
  /** The client that has it. */
  readonly clientId: number | undefined;
  /** Clients whose statements were sent behind that client's, in order. */
  readonly followerIds: readonly number[];
  /** Is closed when it comes back. */
  readonly isCloseNeeded: boolean;
  /** Of the server's process; 0 where it is not known. */
  readonly processId: number;
}

export interface StatsRecord {
  /** How long ago `before` was noted. */
  readonly windowMs: number;
  readonly databases: readonly {
    readonly database: string;
    /** Since the start. */
    readonly total: Counters;
    /** The same at the beginning of the window that averages are made for. */
    readonly before: Counters;
  }[];
}

/** A statement of a user in a database, without its constants. Times are milliseconds. */
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
  /** Calls by their time. */
  readonly buckets: ArrayLike<number>;
}

export interface ActiveQueryRecord {
  readonly database: string;
  readonly user: string;
  readonly state: 'active' | 'waiting';
  readonly clientId: number;
  /** The server that it has, and its process; undefined while it waits. */
  readonly serverId: number | undefined;
  readonly processId: number | undefined;
  readonly applicationName: string;
  /** When it was asked, in milliseconds since 1970, and for how long it has run, or waits. */
  readonly startedAt: number;
  readonly ms: number;
  /** Before it ran. */
  readonly waitedMs: number;
  /** Without its constants; undefined where that is not known. */
  readonly text: string | undefined;
}

/** What a user has of a budget. */
export interface ShareRecord {
  /** `total`, `server db:5432`, `database app`; for `user app` the users are its databases. */
  readonly budget: string;
  readonly capacity: number;
  readonly user: string;
  readonly weight: number;
  readonly minimum: number;
  /** Infinity: none. */
  readonly maximum: number;
  readonly demand: number;
  readonly share: number;
  readonly held: number;
  /** Of those held: asked back, and not back yet. */
  readonly recalled: number;
  readonly waitedMs: number;
}

/** A share that changed. */
export interface RebalanceRecord {
  readonly at: number;
  readonly budget: string;
  /** Why the shares were looked at. */
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
  /** How many connections are its part; Infinity as long as that was not looked at. */
  readonly part: number;
  readonly lent: number;
  readonly waiting: number;
  /** Why the parts are what they are. */
  readonly reason: string;
}

export type ShutdownMode = 'immediate' | 'wait_for_servers' | 'wait_for_clients';

/**
 * What the console can have done. It has looked at the view before: the database exists and is none of the console's, what
 * is resumed was paused. `undefined` stands for all databases. What throws or rejects is told to the client.
 *
 * A promise is waited for. A signal ends only the waiting: the promise rejects with the signal's reason, and what was begun stays begun.
 */
export interface PoolerControls {
  /** Done when no server connection of the database is left. */
  pause(database: string | undefined, signal: AbortSignal): Promise<void>;
  /** After `pause`, `kill` or `suspend`; for all databases it ends the state of the whole pooler, too. */
  resume(database: string | undefined): void | Promise<void>;
  /** No client is let in any more. */
  disable(database: string): void | Promise<void>;
  enable(database: string): void | Promise<void>;
  /** Server connections are closed when they come back. */
  reconnect(database: string | undefined): void | Promise<void>;
  /** Closes all clients and servers at once; the database is paused. */
  kill(database: string | undefined): void | Promise<void>;
  /** False where there is no such client. */
  killClient(id: number): boolean | Promise<boolean>;
  /** Done when no server connection that was to be closed is left. */
  waitClose(database: string | undefined, signal: AbortSignal): Promise<void>;
  /** Done when nothing is unsent, and nothing is read any more but from the console. */
  suspend(signal: AbortSignal): Promise<void>;
  /** Rejects with a `ConfigError` where the new configuration is not good; the old one stays in force. */
  reload(): Promise<void>;
  /** A configuration that was checked already, until the next reload. */
  applyConfig(config: PoolerConfig): void | Promise<void>;
  /** Done when nobody is waited for any more. The console's own clients are not. */
  shutdown(mode: ShutdownMode, signal: AbortSignal): Promise<void>;
}

/**
 * Messages between the supervisor and its workers. Each message is checked on arrival, and the sizes of its fields are limited.
 */
import type { Endpoint } from '../../net/endpoint.js';
import type { ReadAhead } from '../clients/read-ahead.js';
import type { EncodedConfig } from './config-codec.js';
import type { EncodedError } from './error-codec.js';
import {
  anything,
  type Check,
  count,
  isOneOf,
  listOf,
  mapping,
  optional,
  type Shape,
  text,
  time,
  trueOrFalse,
  typed,
} from './message-checks.js';

/** Demand and idle connections of a worker's pool. */
export interface PoolReport {
  readonly pool: number;
  /** Connections in use plus waiting clients: now, and the peak since the last report. */
  readonly demand: number;
  readonly peak: number;
  /** Idle time of the connection unused for longest; undefined where none is idle. Ages are sent because clocks differ. */
  readonly idleForMs?: number | undefined;
  /** Age of the longest-running dial, and time since a connection was opened. */
  readonly dialingForMs?: number | undefined;
  readonly openedForMs?: number | undefined;
  /** True if the pool has clients. */
  readonly hasClients: boolean;
  /** Limit of the pool's connections, the reserve included. */
  readonly limit: number;
  /** Slots that the pool waits for, and the number of slots granted in total when it sent this. */
  readonly wanted: number;
  readonly seen: number;
}

/** Identifies a server connection after its worker has died. The key is kept in memory only, and never logged. */
export interface ServerNote {
  readonly pool: number;
  readonly server: number;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  readonly processId: number;
  readonly secretKey: Uint8Array;
}

/** A server connection that is being opened, with a connected socket. Both ends identify it among the connections of that server. */
export interface DialNote {
  readonly pool: number;
  /** Id that the server connection will have. */
  readonly server: number;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  readonly ends: DialEnds;
  /** Known once the login is over. */
  readonly key?: { readonly processId: number; readonly secretKey: Uint8Array } | undefined;
}

/** `unix`, with meaningless ports, for a Unix socket. */
export interface DialEnds {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** Facts that a server has reported about itself, by the address it was reached at. */
export interface ServerFacts {
  readonly address: string;
  readonly port: number;
  /** The server sees the same addresses and ports as the pooler: there is no NAT or proxy in between. */
  readonly isDirect: boolean;
  /** The server's `authentication_timeout`. */
  readonly authenticationMs?: number | undefined;
  /** The connection used for the question. */
  readonly askedOver: DialEnds;
}

/** A question and its answer; `drop`: the caller no longer waits. */
export type CallMessage =
  | { readonly kind: 'call'; readonly call: number; readonly what: string; readonly body?: unknown }
  | { readonly kind: 'drop'; readonly call: number }
  | {
      readonly kind: 'answer';
      readonly call: number;
      readonly value?: unknown;
      readonly error?: EncodedError | undefined;
    };

export type FromWorker =
  | CallMessage
  /** The worker can take clients. */
  | { readonly kind: 'ready' }
  /** The worker can't start. */
  | { readonly kind: 'failed'; readonly error: EncodedError }
  /** The worker has received the client. */
  | { readonly kind: 'took'; readonly ticket: number }
  /** These clients have disconnected. */
  | { readonly kind: 'clientsGone'; readonly tickets: readonly number[] }
  /** The worker has made a pool. Later messages use its number. */
  | {
      readonly kind: 'pool';
      readonly pool: number;
      readonly user: string;
      readonly database: string;
      readonly server: string;
      readonly limit: number;
    }
  | { readonly kind: 'poolGone'; readonly pool: number }
  /** Number of connections to keep, over all workers that have sent it. */
  | { readonly kind: 'keep'; readonly pool: number; readonly count: number }
  /** Requests one slot. */
  | { readonly kind: 'ask'; readonly report: PoolReport }
  /** Slots whose connections were closed, and the ids of these connections. */
  | {
      readonly kind: 'release';
      readonly pool: number;
      readonly count: number;
      readonly servers: readonly number[];
    }
  | { readonly kind: 'reports'; readonly reports: readonly PoolReport[] }
  | { readonly kind: 'server'; readonly server: ServerNote }
  | { readonly kind: 'dial'; readonly dial: DialNote }
  | { readonly kind: 'dialEnded'; readonly pool: number; readonly server: number }
  | { readonly kind: 'facts'; readonly facts: ServerFacts }
  /** A server has accepted a connection, or refused it because connections are opened too fast. */
  | { readonly kind: 'dialed'; readonly server: string; readonly isTooFast: boolean }
  /** A server has reported its capacity. */
  | { readonly kind: 'learned'; readonly server: string; readonly capacity: number }
  /** A client with a place has disconnected. */
  | { readonly kind: 'left'; readonly place: number }
  | {
      readonly kind: 'log';
      readonly level: 'error' | 'warn' | 'info' | 'debug';
      readonly message: string;
      readonly details: Readonly<Record<string, string | number | boolean | undefined>>;
    };

/** First message to a worker. A replacement learns the state set by console commands. */
export interface Beginning {
  readonly worker: number;
  readonly workers: number;
  readonly config: EncodedConfig;
  readonly state: 'active' | 'paused' | 'suspended';
  readonly paused: readonly string[];
  readonly disabled: readonly string[];
  readonly endpoints: readonly Endpoint[];
}

export type FromSupervisor =
  | CallMessage
  | { readonly kind: 'begin'; readonly beginning: Beginning }
  /** Comes with the client's socket. */
  | {
      readonly kind: 'client';
      readonly ticket: number;
      readonly endpoint: number;
      readonly readAhead: ReadAhead;
    }
  | { readonly kind: 'granted'; readonly pool: number }
  | { readonly kind: 'recalled'; readonly pool: number; readonly count: number; readonly hanging: number }
  /** This worker's part of the connections to keep. */
  | { readonly kind: 'keep'; readonly pool: number; readonly count: number }
  /** Fair share of the pool; undefined where there is enough for all. */
  | {
      readonly kind: 'share';
      readonly pool: number;
      readonly share?: number | undefined;
      readonly shortage?: string | undefined;
    }
  | {
      readonly kind: 'shutdown';
      readonly deadlineMs: number;
      readonly mode: 'immediate' | 'wait_for_servers' | 'wait_for_clients';
    };

const mostInList = 10_000_000;
const name = text(16_384);
const report: Shape = {
  pool: count,
  demand: count,
  peak: count,
  idleForMs: optional(time),
  dialingForMs: optional(time),
  openedForMs: optional(time),
  hasClients: trueOrFalse,
  limit: count,
  wanted: count,
  seen: count,
};
const ends: Shape = { localAddress: text(64), localPort: count, remoteAddress: text(64), remotePort: count };
const answers: Readonly<Record<string, Shape>> = {
  call: { call: count, what: text(64), body: anything },
  drop: { call: count },
  answer: { call: count, value: anything, error: optional(mapping) },
};

const fromWorker: Readonly<Record<FromWorker['kind'], Shape>> = {
  ...(answers as Record<CallMessage['kind'], Shape>),
  ready: {},
  failed: { error: mapping },
  took: { ticket: count },
  clientsGone: { tickets: listOf(count, mostInList) },
  pool: { pool: count, user: name, database: name, server: name, limit: count },
  poolGone: { pool: count },
  keep: { pool: count, count },
  ask: { report: typed(report) },
  release: { pool: count, count, servers: listOf(count, mostInList) },
  reports: { reports: listOf(typed(report), mostInList) },
  server: {
    server: typed({
      pool: count,
      server: count,
      host: optional(name),
      port: optional(count),
      path: optional(name),
      processId: anyInteger,
      secretKey: isShortBytes,
    }),
  },
  dial: {
    dial: typed({
      pool: count,
      server: count,
      host: optional(name),
      port: optional(count),
      path: optional(name),
      ends: typed(ends),
      key: optional(typed({ processId: anyInteger, secretKey: isShortBytes })),
    }),
  },
  dialEnded: { pool: count, server: count },
  facts: {
    facts: typed({
      address: text(64),
      port: count,
      isDirect: trueOrFalse,
      authenticationMs: optional(time),
      askedOver: typed(ends),
    }),
  },
  dialed: { server: name, isTooFast: trueOrFalse },
  learned: { server: name, capacity: count },
  left: { place: count },
  log: { level: isOneOf('error', 'warn', 'info', 'debug'), message: text(65_536), details: mapping },
};

const fromSupervisor: Readonly<Record<FromSupervisor['kind'], Shape>> = {
  ...(answers as Record<CallMessage['kind'], Shape>),
  begin: {
    beginning: typed({
      worker: count,
      workers: count,
      config: mapping,
      state: isOneOf('active', 'paused', 'suspended'),
      paused: listOf(name, mostInList),
      disabled: listOf(name, mostInList),
      endpoints: listOf(mapping, 65_536),
    }),
  },
  client: {
    ticket: count,
    endpoint: count,
    readAhead: typed({
      bytes: isReadAhead,
      declined: listOf(isOneOf('ssl', 'gssenc'), 2),
      waitedMs: time,
    }),
  },
  granted: { pool: count },
  recalled: { pool: count, count, hanging: count },
  keep: { pool: count, count },
  share: { pool: count, share: optional(count), shortage: optional(text(1_024)) },
  shutdown: { deadlineMs: count, mode: isOneOf('immediate', 'wait_for_servers', 'wait_for_clients') },
};

const workerChecks = checksOf(fromWorker);
const supervisorChecks = checksOf(fromSupervisor);

/** Undefined for an invalid message. */
export function readFromWorker(message: unknown): FromWorker | undefined {
  return isOneOfThese(workerChecks, message) ? (message as FromWorker) : undefined;
}

export function readFromSupervisor(message: unknown): FromSupervisor | undefined {
  return isOneOfThese(supervisorChecks, message) ? (message as FromSupervisor) : undefined;
}

function checksOf(shapes: Readonly<Record<string, Shape>>): ReadonlyMap<unknown, Check> {
  return new Map(
    Object.entries(shapes).map(([kind, shape]) => [kind, typed({ ...shape, kind: anything })] as const),
  );
}

function isOneOfThese(checks: ReadonlyMap<unknown, Check>, message: unknown): boolean {
  if (!mapping(message)) return false;
  return checks.get((message as { readonly kind?: unknown }).kind)?.(message) === true;
}

/** Process ids of servers can be any four bytes. */
function anyInteger(value: unknown): boolean {
  return Number.isInteger(value);
}

/** The longest incomplete startup packet plus one read of the socket. */
const mostReadAhead = 131_072;

function isReadAhead(value: unknown): boolean {
  return value instanceof Uint8Array && value.length <= mostReadAhead;
}

/** The longest key in the protocol. */
const longestKey = 256;

function isShortBytes(value: unknown): boolean {
  return value instanceof Uint8Array && value.length <= longestKey;
}

/** Checks of questions' bodies, by subject. */
export const questions = {
  place: typed({ user: name, database: name }),
  permit: typed({ server: name, isUrgent: trueOrFalse }),
  cancel: typed({ processId: anyInteger, secretKey: isShortBytes }),
  snapshot: typed({ clients: trueOrFalse, servers: trueOrFalse, queries: trueOrFalse }),
  control: typed({
    verb: text(64),
    database: optional(name),
    mode: optional(text(64)),
    id: optional(count),
    config: optional(mapping),
  }),
  reload: typed({ config: mapping }),
  metrics: typed({}),
  digest: typed({ top: count }),
  there: typed({
    host: optional(name),
    port: optional(count),
    path: optional(name),
    processIds: listOf(anyInteger, 100_000),
  }),
  ports: typed({
    user: name,
    address: text(64),
    port: count,
    from: text(64),
    ports: listOf(count, 100_000),
  }),
} as const;

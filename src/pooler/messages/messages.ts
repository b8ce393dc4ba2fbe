/**
 * What the supervisor and its workers tell each other. Each message is checked when it comes, and nothing in it is longer or
 * larger than it can be.
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

/** How much a pool of a worker needs, and could do without. */
export interface PoolReport {
  readonly pool: number;
  /** Connections that are lent, and clients that wait: now, and the highest since the last report. */
  readonly demand: number;
  readonly peak: number;
  /** How long its connection is idle that nobody has used for longest; undefined where none is idle. Clocks differ, ages do not. */
  readonly idleForMs?: number | undefined;
  /** How long its connection is being opened that takes longest, and how long ago one was opened. */
  readonly dialingForMs?: number | undefined;
  readonly openedForMs?: number | undefined;
  /** Whether it has any clients. */
  readonly hasClients: boolean;
  /** How many connections the pool may have, the reserve included. */
  readonly limit: number;
  /** Slots that it waits for; and how many it had been granted, in all, when it said so. */
  readonly wanted: number;
  readonly seen: number;
}

/** How a server connection can be found again. The key is kept in memory, and is in no log. */
export interface ServerNote {
  readonly pool: number;
  readonly server: number;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  readonly processId: number;
  readonly secretKey: Uint8Array;
}

/** A server connection that is being opened: its socket is connected. Both ends tell it apart from all others of that server. */
export interface DialNote {
  readonly pool: number;
  /** The number that the server connection will have. */
  readonly server: number;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  readonly ends: DialEnds;
  /** Known when the login is over. */
  readonly key?: { readonly processId: number; readonly secretKey: Uint8Array } | undefined;
}

/** `unix` and no ports that mean anything for a Unix socket. */
export interface DialEnds {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** Facts that a server has told about itself, by the address it was reached at. */
export interface ServerFacts {
  readonly address: string;
  readonly port: number;
  /** The server sees the addresses and ports that we see: there is no NAT and no proxy on the way. */
  readonly isDirect: boolean;
  /** Its `authentication_timeout`. */
  readonly authenticationMs?: number | undefined;
  /** The connection that it was asked over. */
  readonly askedOver: DialEnds;
}

/** A question, which is answered by the other side; `drop`: nobody waits for the answer any more. */
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
  /** It can take clients. */
  | { readonly kind: 'ready' }
  /** It can't begin. */
  | { readonly kind: 'failed'; readonly error: EncodedError }
  /** It has the client that was sent to it. */
  | { readonly kind: 'took'; readonly ticket: number }
  /** These clients have disconnected. */
  | { readonly kind: 'clientsGone'; readonly tickets: readonly number[] }
  /** It has a pool. What is said of it later has its number. */
  | {
      readonly kind: 'pool';
      readonly pool: number;
      readonly user: string;
      readonly database: string;
      readonly server: string;
      readonly limit: number;
    }
  | { readonly kind: 'poolGone'; readonly pool: number }
  /** The pool is to stay at so many connections, over all workers that say so. */
  | { readonly kind: 'keep'; readonly pool: number; readonly count: number }
  /** One slot more. */
  | { readonly kind: 'ask'; readonly report: PoolReport }
  /** Slots whose connections are gone, and which connections these were. */
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
  /** A server has let a connection in, or refused it since connections are opened too fast. */
  | { readonly kind: 'dialed'; readonly server: string; readonly isTooFast: boolean }
  /** A server allows so many connections. */
  | { readonly kind: 'learned'; readonly server: string; readonly capacity: number }
  /** A client that was given a place is gone. */
  | { readonly kind: 'left'; readonly place: number }
  | {
      readonly kind: 'log';
      readonly level: 'error' | 'warn' | 'info' | 'debug';
      readonly message: string;
      readonly details: Readonly<Record<string, string | number | boolean | undefined>>;
    };

/** What a worker begins with; one that replaces another learns what has been said on the console. */
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
  /** The socket comes with it. */
  | {
      readonly kind: 'client';
      readonly ticket: number;
      readonly endpoint: number;
      readonly readAhead: ReadAhead;
    }
  | { readonly kind: 'granted'; readonly pool: number }
  | { readonly kind: 'lost'; readonly pool: number; readonly count: number }
  | { readonly kind: 'recalled'; readonly pool: number; readonly count: number; readonly hanging: number }
  /** So many of those that the pool is to stay at are for this worker. */
  | { readonly kind: 'keep'; readonly pool: number; readonly count: number }
  /** So many are its fair part; undefined where there is enough for all. */
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
  lost: { pool: count, count },
  recalled: { pool: count, count, hanging: count },
  keep: { pool: count, count },
  share: { pool: count, share: optional(count), shortage: optional(text(1_024)) },
  shutdown: { deadlineMs: count, mode: isOneOf('immediate', 'wait_for_servers', 'wait_for_clients') },
};

const workerChecks = checksOf(fromWorker);
const supervisorChecks = checksOf(fromSupervisor);

/** Undefined for what is no such message. */
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

/** Process ids of servers can be anything of four bytes. */
function anyInteger(value: unknown): boolean {
  return Number.isInteger(value);
}

/** One read of a socket behind all of a startup packet but its last byte. */
const mostReadAhead = 131_072;

function isReadAhead(value: unknown): boolean {
  return value instanceof Uint8Array && value.length <= mostReadAhead;
}

/** The longest key that the protocol has. */
const longestKey = 256;

function isShortBytes(value: unknown): boolean {
  return value instanceof Uint8Array && value.length <= longestKey;
}

/** The bodies of questions, by what they are about. */
export const questions = {
  place: typed({ user: name, database: name }),
  permit: typed({ server: name, isUrgent: trueOrFalse }),
  cancel: typed({ processId: anyInteger, secretKey: isShortBytes }),
  look: typed({ clients: trueOrFalse, servers: trueOrFalse, queries: trueOrFalse }),
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

/**
 * Listens for all workers, reads a client's user and database, and hands its connection to a worker. It keeps listening when a worker
 * dies: clients on the way to that worker go to another, and clients wait here while there is none.
 *
 * accepted -> reading (for a moment, and not where there are too many) -> queued for a worker -> sent -> taken
 */
import type { Socket } from 'node:net';
import { type Endpoint, showEndpoint, withAddresses } from '../../net/endpoint.js';
import { ListeningSocket } from '../../net/listening-socket.js';
import { plainTransport } from '../../net/make-transport.js';
import { nativeHandleOf } from '../../net/native-streams.js';
import { OpenFileWatch } from '../../net/open-files.js';
import { openSockets } from '../../net/open-sockets.js';
import { unixEnds } from '../../net/socket-ends.js';
import { fileNumberOf } from '../../net/socket-options.js';
import { systemClock } from '../../runtime/system.js';
import { nothingRead, type ReadAhead } from '../clients/read-ahead.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import { endpointsOf } from '../config/socket-settings.js';
import type { PoolerLog } from '../log.js';
import type { ClientPlacement, ClientPool } from './client-placement.js';
import { type StartupRead, StartupReader } from './startup-reader.js';

/** A receiver of clients. */
export interface Receiver {
  /** False while a connection is being sent: clients are sent one by one, and other messages wait behind them. */
  readonly canTake: boolean;
  send(arrival: Arrival): void;
}

/** A client to be served by one of the workers. */
export interface Arrival {
  readonly ticket: number;
  readonly socket: Socket;
  /** Index into `endpoints` of the address it connected to. */
  readonly endpoint: number;
  readonly readAhead: ReadAhead;
  /** Undefined where the pool is unknown. */
  readonly pool: ClientPool | undefined;
}

export interface ClientAcceptorParts {
  readonly log: PoolerLog;
  readonly placement: ClientPlacement<Receiver>;
  readonly config: () => PoolerConfig;
  /** The pool of this user in this database; undefined where there is none. */
  readonly poolOf: (user: string, database: string) => ClientPool | undefined;
}

/** Clients of one receiver. */
interface Lane {
  readonly queue: Arrival[];
  /** Sent, and not taken yet. */
  sent: Arrival | undefined;
  sentAt: number;
}

/** A worker that takes no client for this long is bypassed. */
const patienceMs = 500;
/** Limit of waiting clients; further ones are closed without an answer. */
const mostWaiting = 10_000;
/** Limits for reading startup packets: time per client, and number of clients. Others are placed without reading. */
const readMs = 1_000;
const mostReading = 1_000;
/** File descriptors that are kept free when startup packets are read. */
const fileReserve = 64;
const noEnds = unixEnds(0);

export class ClientAcceptor {
  readonly #parts: ClientAcceptorParts;
  readonly #files = new OpenFileWatch(fileReserve);
  readonly #lanes = new Map<Receiver, Lane>();
  #sockets: ListeningSocket[] = [];
  readonly #readers = new Set<StartupReader>();
  /** Clients for whom there is no worker. */
  readonly #unplaced: Arrival[] = [];
  /** Clients in this list and in all queues. */
  #waiting = 0;
  #lastTicket = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(parts: ClientAcceptorParts) {
    this.#parts = parts;
  }

  get endpoints(): readonly Endpoint[] {
    return this.#sockets.map(({ endpoint }) => endpoint);
  }

  get addresses(): readonly string[] {
    return this.endpoints.map(showEndpoint);
  }

  /**
   * Listens on all addresses, except those that this machine does not have. Rejects with a `ListenError` and listens on none if
   * one fails.
   */
  async open(config: PoolerConfig): Promise<void> {
    const { log } = this.#parts;
    const { backlog, reusePort } = config.listen;
    const addresses = (await Promise.all(endpointsOf(config).map(withAddresses))).flat();
    this.#sockets = addresses.map(
      (endpoint) =>
        new ListeningSocket(endpoint, {
          backlog,
          reusePort,
          accepted: (socket, at) => this.#accepted(socket, at),
          backedOff: (error, pauseMs) =>
            log('error', 'accepting connections paused', { error: error.message, duration_ms: pauseMs }),
        }),
    );
    this.#sockets = await openSockets(this.#sockets, ({ message }) =>
      log('warn', 'address not available', { error: message }),
    );
  }

  /**
   * Accepts no more TCP clients. Unix sockets stay open for console clients, which ending workers still take. Waiting clients
   * are disconnected.
   */
  keepUnixOnly(): void {
    for (const socket of this.#sockets) if (socket.endpoint.kind === 'tcp') socket.close();
    this.#sendAway();
  }

  /** Accepts no more clients; waiting ones are disconnected. */
  close(): void {
    clearTimeout(this.#retry);
    for (const socket of this.#sockets) socket.close();
    this.#sendAway();
  }

  #sendAway(): void {
    for (const reader of [...this.#readers]) reader.abort();
    for (const arrival of this.#takeWaiting()) {
      this.#parts.placement.gone(arrival.ticket);
      arrival.socket.destroy();
    }
  }

  /** Removes all waiting clients, or those that wait for these lanes, from the queues. */
  #takeWaiting(lanes: Iterable<Lane> = this.#lanes.values()): Arrival[] {
    const waiting = [...this.#unplaced.splice(0)];
    for (const { queue } of lanes) waiting.push(...queue.splice(0));
    this.#waiting -= waiting.length;
    return waiting;
  }

  // ---- workers ------------------------------------------------------------------------------------------------------

  joined(receiver: Receiver): void {
    this.#lanes.set(receiver, { queue: [], sent: undefined, sentAt: 0 });
    for (const arrival of this.#takeWaiting([])) this.#place(arrival);
  }

  /** The receiver takes no more clients; those on the way to it are placed elsewhere. */
  left(receiver: Receiver): void {
    const lane = this.#lanes.get(receiver);
    this.#lanes.delete(receiver);
    this.#parts.placement.left(receiver);
    if (lane === undefined) return;
    if (lane.sent !== undefined) this.#place(lane.sent);
    for (const arrival of this.#takeWaiting([lane])) this.#place(arrival);
  }

  /** The receiver has the connection. Our second handle of it is no longer needed. */
  taken(receiver: Receiver, ticket: number): void {
    const lane = this.#lanes.get(receiver);
    if (lane?.sent?.ticket === ticket) {
      lane.sent.socket.destroy();
      lane.sent = undefined;
    }
    this.#sendNext(receiver);
  }

  /** These clients have disconnected. */
  gone(tickets: readonly number[]): void {
    for (const ticket of tickets) this.#parts.placement.gone(ticket);
  }

  // ---- clients ------------------------------------------------------------------------------------------------------

  #accepted(socket: Socket, at: ListeningSocket): void {
    // The worker handles errors of the socket.
    socket.on('error', () => {});
    const endpoint = this.#sockets.indexOf(at);
    // A stream may read on after it was told to stop, and those bytes would be lost for the worker.
    const canStop = nativeHandleOf(socket) !== undefined;
    const hasRoom = this.#readers.size < mostReading && !this.#files.isShort(fileNumberOf(socket));
    if (canStop && hasRoom) this.#read(socket, at.endpoint, endpoint);
    else this.#arrived({ socket, readAhead: nothingRead, names: undefined }, endpoint);
  }

  #read(socket: Socket, { kind }: Endpoint, endpoint: number): void {
    const { clientTls, timeouts } = this.#parts.config();
    // The worker looks up the addresses.
    const transport = plainTransport(socket, noEnds, 'shared');
    const reader: StartupReader = new StartupReader(transport, {
      declinesTls: clientTls.mode === 'disable' || kind === 'unix',
      timeoutMs: Math.min(readMs, timeouts.clientLoginTimeout || readMs),
      done: (read) => {
        this.#readers.delete(reader);
        if (read !== undefined) this.#arrived(read, endpoint);
      },
    });
    this.#readers.add(reader);
  }

  #arrived({ socket, readAhead, names }: StartupRead, endpoint: number): void {
    if (this.#waiting >= mostWaiting) {
      socket.destroy();
      return;
    }
    const pool = names && this.#parts.poolOf(names.user, names.database);
    this.#place({ ticket: ++this.#lastTicket, socket, endpoint, readAhead, pool });
  }

  #place(arrival: Arrival): void {
    const { placement } = this.#parts;
    const stuck = this.#stuckReceivers();
    const all = [...this.#lanes.keys()];
    const receiver =
      placement.choose(
        arrival.pool,
        all.filter((one) => !stuck.has(one)),
      ) ?? placement.choose(arrival.pool, all);
    this.#waiting++;
    if (receiver === undefined) {
      this.#unplaced.push(arrival);
      return;
    }
    placement.placed(arrival.ticket, receiver, arrival.pool);
    this.#lanes.get(receiver)?.queue.push(arrival);
    this.#sendNext(receiver);
  }

  #sendNext(receiver: Receiver): void {
    const lane = this.#lanes.get(receiver);
    if (lane === undefined || lane.queue.length === 0) return;
    if (!receiver.canTake) {
      this.#lookLater();
      return;
    }
    const arrival = lane.queue.shift() as Arrival;
    this.#waiting--;
    lane.sent = arrival;
    lane.sentAt = systemClock.now();
    receiver.send(arrival);
  }

  // ---- workers that do not answer -----------------------------------------------------------------------------------

  #lookLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#placeElsewhere();
    }, patienceMs).unref();
  }

  /** Moves clients that wait for a stuck worker to others. */
  #placeElsewhere(): void {
    const stuck = this.#stuckReceivers();
    const lanes = Array.from(stuck, (receiver) => this.#lanes.get(receiver) as Lane);
    if (stuck.size < this.#lanes.size)
      for (const arrival of this.#takeWaiting(lanes)) {
        this.#parts.placement.gone(arrival.ticket);
        this.#place(arrival);
      }
    for (const receiver of this.#lanes.keys()) this.#sendNext(receiver);
  }

  #stuckReceivers(): ReadonlySet<Receiver> {
    const stuck = new Set<Receiver>();
    const longAgo = systemClock.now() - patienceMs;
    for (const [receiver, { sent, sentAt }] of this.#lanes)
      if (sent !== undefined && sentAt <= longAgo) stuck.add(receiver);
    return stuck;
  }
}

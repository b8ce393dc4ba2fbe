/**
 * Listens for all workers, reads who a client is, and hands its connection to a worker. It goes on listening when a worker dies: who was on
 * the way to that one goes to another, and while there is none, clients wait at the door.
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

/** Someone who can be sent clients. */
export interface Receiver {
  /** One after the other: whatever else is said to it waits behind a connection that is on its way. */
  readonly canTake: boolean;
  send(arrival: Arrival): void;
}

/** A client that is to be served by one of the workers. */
export interface Arrival {
  readonly ticket: number;
  readonly socket: Socket;
  /** Which of `endpoints` it came to. */
  readonly endpoint: number;
  readonly readAhead: ReadAhead;
  /** Undefined where that is not known. */
  readonly pool: ClientPool | undefined;
}

export interface ClientAcceptorParts {
  readonly log: PoolerLog;
  readonly placement: ClientPlacement<Receiver>;
  readonly config: () => PoolerConfig;
  /** The pool of this user in this database; undefined where there is none. */
  readonly poolOf: (user: string, database: string) => ClientPool | undefined;
}

/** A receiver's clients. */
interface Lane {
  readonly queue: Arrival[];
  /** Sent, and not taken yet. */
  sent: Arrival | undefined;
  sentAt: number;
}

/** A worker that takes nobody for so long is not waited for. */
const patienceMs = 500;
/** More than this wait nowhere: what is beyond is told nothing, and closed. */
const mostWaiting = 10_000;
/** Startup packets are waited for this long, and for so many clients at once. Others are placed without. */
const readMs = 1_000;
const mostReading = 1_000;
/** Files that are kept for other things than clients whose startup packet is waited for. */
const fileReserve = 64;
const noEnds = unixEnds(0);

export class ClientAcceptor {
  readonly #parts: ClientAcceptorParts;
  readonly #files = new OpenFileWatch(fileReserve);
  readonly #lanes = new Map<Receiver, Lane>();
  #sockets: ListeningSocket[] = [];
  readonly #readers = new Set<StartupReader>();
  /** Those for whom there is no worker. */
  readonly #unplaced: Arrival[] = [];
  /** In this list, and in all queues. */
  #waiting = 0;
  #lastTicket = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(parts: ClientAcceptorParts) {
    this.#parts = parts;
    this.#retry = undefined;
  }

  get endpoints(): readonly Endpoint[] {
    return this.#sockets.map(({ endpoint }) => endpoint);
  }

  get addresses(): readonly string[] {
    return this.endpoints.map(showEndpoint);
  }

  /** Listens everywhere, but for addresses that this machine does not have, or nowhere: rejects with a `ListenError`. */
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
            log('error', `accepting connections: ${error.message}; it goes on in ${pauseMs} ms`),
        }),
    );
    this.#sockets = await openSockets(this.#sockets, ({ message }) => log('warn', message));
  }

  /** No more clients but by Unix sockets, of whom workers that end take those for the console. Those at the door are sent away. */
  keepUnixOnly(): void {
    for (const socket of this.#sockets) if (socket.endpoint.kind === 'tcp') socket.close();
    this.#sendAway();
  }

  /** No more clients; those at the door are sent away. */
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

  /** All that wait, or those that wait for these. */
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

  /** It takes nobody any more; who was on the way to it goes to another. */
  left(receiver: Receiver): void {
    const lane = this.#lanes.get(receiver);
    this.#lanes.delete(receiver);
    this.#parts.placement.left(receiver);
    if (lane === undefined) return;
    if (lane.sent !== undefined) this.#place(lane.sent);
    for (const arrival of this.#takeWaiting([lane])) this.#place(arrival);
  }

  /** The receiver has it: ours is a second handle of the same connection, and no longer needed. */
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
    // Whatever happens to it is for the worker to see.
    socket.on('error', () => {});
    const endpoint = this.#sockets.indexOf(at);
    // A stream may read on after it was told to stop, and what it reads would be lost for the worker.
    const canStop = nativeHandleOf(socket) !== undefined;
    const hasRoom = this.#readers.size < mostReading && !this.#files.isShort(fileNumberOf(socket));
    if (canStop && hasRoom) this.#read(socket, at.endpoint, endpoint);
    else this.#arrived({ socket, readAhead: nothingRead, names: undefined }, endpoint);
  }

  #read(socket: Socket, { kind }: Endpoint, endpoint: number): void {
    const { clientTls, timeouts } = this.#parts.config();
    // Who the client is, the worker looks up.
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

  /** Those that wait for a worker that takes nobody go to others. */
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

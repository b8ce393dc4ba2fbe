/**
 * Listens for all workers, and hands each connection to the one with the fewest. It goes on listening when a worker dies:
 * who was on the way to that one goes to another, and while there is none, clients wait at the door.
 */
import type { Socket } from 'node:net';
import { type Endpoint, showEndpoint, withAddresses } from '../../net/endpoint.js';
import { ListeningSocket } from '../../net/listening-socket.js';
import { openSockets } from '../../net/open-sockets.js';
import { systemClock } from '../../runtime/system.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { PoolerLog } from '../pooler-log.js';
import { endpointsOf } from '../socket-settings.js';

/** Someone who can be sent clients. */
export interface Receiver {
  /** Connections that it has, and one that is on its way to it. */
  readonly load: number;
  /** One after the other: whatever else is said to it waits behind a connection that is on its way. */
  readonly canTake: boolean;
  send(socket: Socket, ticket: number, endpoint: number): void;
}

interface Arrival {
  readonly socket: Socket;
  readonly at: ListeningSocket;
}

interface Handover extends Arrival {
  readonly receiver: Receiver;
  readonly sentAt: number;
}

/** Clients stay for long, so they are spread evenly: none has more than so many above the fewest. */
const evenWithin = 1;
/** A worker that takes nobody for so long is not waited for. */
const patienceMs = 500;

/** More than this wait nowhere: what is beyond is told nothing, and closed. */
const mostWaiting = 10_000;

export class FrontDoor {
  readonly #log: PoolerLog;
  readonly #receivers = new Set<Receiver>();
  #sockets: ListeningSocket[] = [];
  readonly #waiting: Arrival[] = [];
  /** Sent, and not taken yet. */
  readonly #underWay = new Map<number, Handover>();
  #lastTicket = 0;
  /** Among equals, the one after the last. */
  #lastReceiver: Receiver | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(log: PoolerLog) {
    this.#log = log;
    this.#lastReceiver = undefined;
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
    const { backlog, reusePort } = config.listen;
    const addresses = (await Promise.all(endpointsOf(config).map(withAddresses))).flat();
    this.#sockets = addresses.map(
      (endpoint) =>
        new ListeningSocket(endpoint, {
          backlog,
          reusePort,
          accepted: (socket, at) => this.#arrived(socket, at),
          backedOff: (error, pauseMs) =>
            this.#log('error', `accepting connections: ${error.message}; it goes on in ${pauseMs} ms`),
        }),
    );
    this.#sockets = await openSockets(this.#sockets, ({ message }) => this.#log('warn', message));
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
    for (const { socket } of this.#waiting.splice(0)) socket.destroy();
  }

  joined(receiver: Receiver): void {
    this.#receivers.add(receiver);
    this.#handOut();
  }

  /** It takes nobody any more; who was on the way to it goes to another. */
  left(receiver: Receiver): void {
    this.#receivers.delete(receiver);
    for (const [ticket, handover] of [...this.#underWay]) {
      if (handover.receiver !== receiver) continue;
      this.#underWay.delete(ticket);
      this.#waiting.unshift(handover);
    }
    this.#handOut();
  }

  /** The receiver has it: ours is a second handle of the same connection, and no longer needed. */
  taken(ticket: number): void {
    this.#underWay.get(ticket)?.socket.destroy();
    this.#underWay.delete(ticket);
    this.#handOut();
  }

  #arrived(socket: Socket, at: ListeningSocket): void {
    // Whatever happens to it is for the worker to see.
    socket.on('error', () => {});
    if (this.#waiting.length >= mostWaiting) socket.destroy();
    else {
      this.#waiting.push({ socket, at });
      this.#handOut();
    }
  }

  #handOut(): void {
    while (this.#waiting.length > 0) {
      const receiver = this.#choose();
      if (receiver === undefined) {
        this.#retry ??= setTimeout(() => {
          this.#retry = undefined;
          this.#handOut();
        }, patienceMs).unref();
        return;
      }
      const arrival = this.#waiting.shift() as Arrival;
      const ticket = ++this.#lastTicket;
      this.#underWay.set(ticket, { ...arrival, receiver, sentAt: systemClock.now() });
      receiver.send(arrival.socket, ticket, this.#sockets.indexOf(arrival.at));
    }
  }

  /** The one with the fewest that can take one; none, while it is better to wait for another. */
  #choose(): Receiver | undefined {
    const all = [...this.#receivers];
    const stuck = this.#stuckReceivers();
    const from = this.#lastReceiver === undefined ? 0 : all.indexOf(this.#lastReceiver) + 1;
    let best: Receiver | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const receiver of [...all.slice(from), ...all.slice(0, from)]) {
      if (!stuck.has(receiver)) fewest = Math.min(fewest, receiver.load);
      if (receiver.canTake && (best === undefined || receiver.load < best.load)) best = receiver;
    }
    if (best === undefined || best.load > fewest + evenWithin) return undefined;
    this.#lastReceiver = best;
    return best;
  }

  #stuckReceivers(): ReadonlySet<Receiver> {
    const stuck = new Set<Receiver>();
    const now = systemClock.now();
    for (const { receiver, sentAt } of this.#underWay.values())
      if (now - sentAt >= patienceMs) stuck.add(receiver);
    return stuck;
  }
}

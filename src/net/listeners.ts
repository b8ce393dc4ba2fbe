/** All addresses at which clients can connect, and the handling of each connection. */
import { isIPv4, Socket, type SocketConstructorOpts } from 'node:net';
import { type Endpoint, withAddresses } from './endpoint.js';
import { ListenError } from './errors.js';
import { canSharePorts, ListeningSocket } from './listening-socket.js';
import { plainTransport } from './make-transport.js';
import { isNativeHandle, type NativeHandle } from './native-streams.js';
import { OpenFileWatch } from './open-files.js';
import { openSockets } from './open-sockets.js';
import { RawTransport, type ReadBuffer } from './raw-transport.js';
import { type SocketEnds, tcpEnds, tcpEndsOf, unixEnds } from './socket-ends.js';
import { type KeepAlive, type SocketTuning, tuneHandle, tuneSocket } from './socket-options.js';
import type { SocketTransport } from './socket-transport.js';

/**
 * Why connections can't be accepted as they should; reported once when the trouble begins.
 * - `files_short`: the process has nearly as many files open as it may. Connections are still accepted, but marked as
 *   ones without room.
 * - `accept_failed`: accepting at this address pauses for `pauseMs`.
 * - `no_such_address`: this machine does not have one of the addresses; only the others are listened on.
 */
export type ListenTrouble =
  | { readonly reason: 'no_such_address'; readonly error: ListenError }
  | { readonly reason: 'files_short'; readonly limit: number; readonly reserve: number }
  | {
      readonly reason: 'accept_failed';
      readonly endpoint: Endpoint;
      readonly error: Error;
      readonly pauseMs: number;
    };

export interface ListenersOptions {
  readonly endpoints: readonly Endpoint[];
  /** Connections that the kernel keeps until they are accepted. Default: 4,096. */
  readonly backlog?: number | undefined;
  /** Several processes listen on the same port, and the kernel shares out the connections. Node 22.12 and newer. */
  readonly reusePort?: boolean | undefined;
  readonly keepAlive?: KeepAlive | undefined;
  readonly tuning?: SocketTuning | undefined;
  /** Default: `shared`. */
  readonly readBuffer?: ReadBuffer | undefined;
  /** Number of files reserved for other things than clients. Default: 32. */
  readonly fileReserve?: number | undefined;
  /** Number of files that the process may have open. Default: the system's limit. */
  readonly fileLimit?: number | undefined;
  /**
   * A client connected. Set the listener and call `start()`. Without room, refuse the client and close the connection:
   * the remaining files are needed for servers.
   */
  readonly connected: (transport: SocketTransport, endpoint: Endpoint, hasRoom: boolean) => void;
  readonly troubled: (trouble: ListenTrouble) => void;
}

/** Connections above it are dropped, and clients try again after a second. The system may allow less. */
const usualBacklog = 4_096;
const usualFileReserve = 32;

/** The default address for clients: this machine only. */
export const usualEndpoint: Endpoint = { kind: 'tcp', host: '127.0.0.1', port: 6_432 };

export class Listeners {
  readonly #options: ListenersOptions;
  readonly #files: OpenFileWatch;
  #sockets: ListeningSocket[] = [];
  #areFilesShort = false;

  constructor(options: ListenersOptions) {
    if (options.reusePort === true && !canSharePorts())
      throw new ListenError(
        'a shared port',
        `Node ${process.versions.node} can't share a port between processes; 22.12 and newer can, and any with the optional package koffi on Linux.`,
      );
    this.#options = options;
    this.#files = new OpenFileWatch(options.fileReserve ?? usualFileReserve, options.fileLimit);
  }

  /** The open addresses, with the ports that were assigned to them. */
  get endpoints(): readonly Endpoint[] {
    return this.#sockets.filter(({ isOpen }) => isOpen).map(({ endpoint }) => endpoint);
  }

  /** Listens everywhere, but for addresses that this machine does not have, or nowhere: rejects with a `ListenError`. */
  async open(): Promise<void> {
    const { endpoints, backlog = usualBacklog, reusePort = false } = this.#options;
    const addresses = (await Promise.all(endpoints.map(withAddresses))).flat();
    this.#sockets = addresses.map(
      (endpoint) =>
        new ListeningSocket(endpoint, {
          backlog,
          reusePort,
          accepted: (socket, from) => this.adopt(socket, from.endpoint),
          handleAccepted: (handle, from) => this.#adoptHandle(handle, from.endpoint),
          tuneHandle: (handle) => tuneHandle(handle, this.#options.keepAlive, this.#options.tuning),
          backedOff: (error, pauseMs, from) =>
            this.#options.troubled({
              reason: 'accept_failed',
              endpoint: from.endpoint,
              error,
              pauseMs,
            }),
        }),
    );
    await this.resume();
  }

  /** Refuses new connections until `resume()`: a connection that the kernel has accepted can't be held back. */
  pause(): void {
    for (const socket of this.#sockets) socket.close();
  }

  /** Accepts no more connections except by Unix sockets. */
  keepUnixOnly(): void {
    for (const socket of this.#sockets) if (socket.endpoint.kind === 'tcp') socket.close();
  }

  /** Listens again, at the same ports. */
  async resume(): Promise<void> {
    this.#sockets = await openSockets(this.#sockets, (error) =>
      this.#options.troubled({ reason: 'no_such_address', error }),
    );
  }

  /** Accepts no more connections; accepted ones go on. */
  close(): void {
    this.pause();
    this.#sockets = [];
  }

  /** A connection was accepted, here or in another process, and is paused. `connected`: called in place of the usual one. */
  adopt(socket: Socket, endpoint: Endpoint, connected = this.#options.connected): void {
    const { keepAlive, tuning, readBuffer = 'shared' } = this.#options;
    tuneSocket(socket, keepAlive, tuning);
    const ends = endpoint.kind === 'tcp' ? tcpEnds(socket) : unixEnds(endpoint.port);
    this.#connected(plainTransport(socket, ends, readBuffer), endpoint, connected);
  }

  /** As `adopt()`, for a connection that was accepted without a socket of Node's, and is tuned. */
  #adoptHandle(handle: NativeHandle, endpoint: Endpoint): void {
    // A version of Node may have handles that lack something, and sockets that make up for it.
    if (!isNativeHandle(handle)) {
      const options = { handle, pauseOnCreate: true, allowHalfOpen: true };
      this.adopt(new Socket(options as SocketConstructorOpts), endpoint);
      return;
    }
    const { readBuffer = 'shared', connected } = this.#options;
    const ends = endpoint.kind === 'tcp' ? tcpEndsOf(handle, localEndOf(endpoint)) : unixEnds(endpoint.port);
    this.#connected(new RawTransport(undefined, handle, ends, readBuffer), endpoint, connected);
  }

  #connected(transport: SocketTransport, endpoint: Endpoint, connected: ListenersOptions['connected']): void {
    const hasRoom = !this.#files.isShort(transport.fileNumber);
    if (!hasRoom && !this.#areFilesShort) {
      const { limit, reserve } = this.#files;
      this.#options.troubled({ reason: 'files_short', limit, reserve });
    }
    this.#areFilesShort = !hasRoom;
    connected(transport, endpoint, hasRoom);
  }
}

/** Where all clients of a listening socket connect to one address, the kernel need not be asked for it. */
function localEndOf({
  host,
  port,
}: Extract<Endpoint, { kind: 'tcp' }>): Pick<SocketEnds, 'localAddress' | 'localPort'> | undefined {
  return isIPv4(host) && host !== '0.0.0.0' ? { localAddress: host, localPort: port } : undefined;
}

/**
 * One address at which connections are accepted.
 *
 * closed -> open <-> backing off (accepting failed: closed for a while, then opened again) -> closed
 */
import { chmodSync, existsSync } from 'node:fs';
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { type Endpoint, isAbstract, showEndpoint, systemPath } from './endpoint.js';
import { ListenError } from './errors.js';
import { parseIpAddress } from './ip-address.js';
import { listeningHandleOf, type NativeHandle } from './native-streams.js';
import { removeStaleSocket } from './stale-socket.js';
import { boundSharedSocket, hasSystemCalls } from './system-calls.js';
import { systemError } from './system-error.js';

export interface ListenSettings {
  readonly backlog: number;
  readonly reusePort: boolean;
  readonly accepted: (socket: Socket, from: ListeningSocket) => void;
  /** Called in place of `accepted` where Node's layer below streams is used: no socket of Node's is made. */
  readonly handleAccepted?: (handle: NativeHandle, from: ListeningSocket) => void;
  /** Sets the options of the listening socket that accepted ones inherit. Where they do not, of each accepted one. */
  readonly tuneHandle?: (handle: NativeHandle) => void;
  /** Accepting failed, or could not be resumed. It resumes after `pauseMs`. */
  readonly backedOff: (error: Error, pauseMs: number, from: ListeningSocket) => void;
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const nodeSharesPorts = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);

/** True if several processes can listen on the same port on this system. */
export function canSharePorts(): boolean {
  return nodeSharesPorts || hasSystemCalls();
}

/** Linux copies the options of a listening socket to those that it accepts; other systems need not. */
const areOptionsInherited = process.platform === 'linux';
/** After the listening socket was opened: connections of this time have their options set one by one. */
const earlyMs = 1_000;

const shortestPauseMs = 100;
const longestPauseMs = 5_000;

export class ListeningSocket {
  readonly #settings: ListenSettings;
  #endpoint: Endpoint;
  #server: Server | undefined;
  #opening: Promise<void> | undefined;
  #isWanted = false;
  #retry: NodeJS.Timeout | undefined;
  #pauseMs = shortestPauseMs;

  constructor(endpoint: Endpoint, settings: ListenSettings) {
    this.#endpoint = endpoint;
    this.#settings = settings;
  }

  /** Includes the assigned port, once the socket is open. */
  get endpoint(): Endpoint {
    return this.#endpoint;
  }

  get isOpen(): boolean {
    return this.#server !== undefined;
  }

  /** Rejects with a `ListenError`. */
  async open(): Promise<void> {
    this.#isWanted = true;
    if (this.#server !== undefined) return;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  /** Takes effect at once; accepted connections go on. */
  close(): void {
    this.#isWanted = false;
    clearTimeout(this.#retry);
    this.#stopListening();
  }

  /**
   * Without this, a listening socket from which accepting fails would be reported as ready again and again, and the
   * process would do nothing else.
   */
  acceptFailed(error: Error): void {
    if (!this.#isWanted) return;
    this.#stopListening();
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(longestPauseMs, pauseMs * 2);
    this.#retry = setTimeout(() => {
      this.open().catch((failure: Error) => this.acceptFailed(failure));
    }, pauseMs);
    this.#settings.backedOff(error, pauseMs, this);
  }

  #stopListening(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  async #open(): Promise<void> {
    const endpoint = this.#endpoint;
    if (endpoint.kind === 'unix' && !isAbstract(endpoint)) await removeStaleSocket(endpoint.path);
    // The socket has no reader before the session exists, and a client that has ended its side may still be answered.
    const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true });
    server.on('connection', (socket: Socket) => {
      this.#pauseMs = shortestPauseMs;
      this.#settings.accepted(socket, this);
    });
    await this.#listen(server);
    // Closed meanwhile, perhaps.
    if (!this.#isWanted) server.close();
    else {
      server.on('error', (error) => this.acceptFailed(error));
      this.#server = server;
      this.#acceptHandles(server);
    }
  }

  /** Takes the place of the function by which `node:net` hears of accepted connections. */
  #acceptHandles(server: Server): void {
    const { handleAccepted, tuneHandle } = this.#settings;
    const listening = handleAccepted && listeningHandleOf(server);
    if (listening === undefined) return;
    if (areOptionsInherited) tuneHandle?.(listening as unknown as NativeHandle);
    // The kernel may have connected clients before that.
    const earlyUntil = areOptionsInherited ? Date.now() + earlyMs : Number.POSITIVE_INFINITY;
    listening.onconnection = (status, handle) => {
      if (status !== 0 || handle === undefined) {
        this.acceptFailed(systemError(status, 'accept'));
        return;
      }
      this.#pauseMs = shortestPauseMs;
      if (Date.now() < earlyUntil) tuneHandle?.(handle);
      handleAccepted?.(handle, this);
    };
  }

  #listen(server: Server): Promise<void> {
    return new Promise((resolve, reject) => {
      const failed = (error: NodeJS.ErrnoException): void => {
        reject(new ListenError(showEndpoint(this.#endpoint), whyNot(error, this.#endpoint), error));
      };
      server.once('error', failed);
      let options: ListenOptions;
      try {
        options = this.#listenOptions();
      } catch (error) {
        failed(error as NodeJS.ErrnoException);
        return;
      }
      server.listen(options, () => {
        server.off('error', failed);
        try {
          this.#finishListening(server);
          resolve();
        } catch (error) {
          server.close();
          failed(error as NodeJS.ErrnoException);
        }
      });
    });
  }

  #finishListening(server: Server): void {
    const endpoint = this.#endpoint;
    if (endpoint.kind === 'tcp') this.#endpoint = { ...endpoint, port: portOf(server) };
    else if (!isAbstract(endpoint)) chmodSync(endpoint.path, endpoint.mode);
  }

  #listenOptions(): ListenOptions & { reusePort?: boolean; fd?: number } {
    const { backlog, reusePort } = this.#settings;
    const endpoint = this.#endpoint;
    if (endpoint.kind === 'unix') return { path: systemPath(endpoint), backlog };
    const { host, port } = endpoint;
    const shared = reusePort && !nodeSharesPorts ? sharedSocket(host, port) : undefined;
    if (shared !== undefined) return { fd: shared, backlog };
    return {
      port,
      backlog,
      ...(reusePort ? { reusePort } : {}),
      // Otherwise `::` would also take connections to 0.0.0.0.
      ...(host === '*' ? {} : { host, ipv6Only: true }),
    };
  }
}

/** Does what newer versions of Node do. Names are resolved to addresses by now. */
function sharedSocket(host: string, port: number): number | undefined {
  const address = parseIpAddress(host === '*' ? '0.0.0.0' : host);
  return address && boundSharedSocket(address, port);
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function whyNot(error: NodeJS.ErrnoException, endpoint: Endpoint): string {
  if (error.code === 'EADDRINUSE') return 'another process listens there.';
  if (error.code === 'EADDRNOTAVAIL') return 'this machine has no such address.';
  // For a missing folder, libuv reports the same error as for one without write permission.
  if (endpoint.kind === 'unix' && !isAbstract(endpoint) && !existsSync(dirname(endpoint.path)))
    return `there is no folder ${dirname(endpoint.path)}.`;
  if (error.code === 'EACCES') return 'this user is not allowed to.';
  return `${error.message}.`;
}

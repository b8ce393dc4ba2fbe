/** A server connection that is being opened: what is known of it before it is there. */

import type { SocketEnds } from '../../net/socket-ends.js';
import type { Transport } from '../../net/transport.js';
import type { BackendKey } from '../../wire/session-messages.js';
import { connectionIds } from './connection-ids.js';
import type { ServerAddress } from './server-hosts.js';

export interface OpeningWatcher {
  connected(opening: Opening): void;
  failed(opening: Opening, error: Error): void;
  /** The pool may open those of its reserve. */
  reserveTaken(): void;
}

export class Opening {
  /** No other server connection of the process has it. It stays the same when this one is open. */
  readonly id = connectionIds.next();
  readonly beganAt = Date.now();
  /** Nobody wants it any more. */
  readonly signal: AbortSignal;
  /** For replication: what the startup packet says besides the usual; undefined for an ordinary connection. */
  readonly replication: ReadonlyMap<string, string> | undefined;
  #address: ServerAddress | undefined;
  #transport: Transport | undefined;
  #ends: SocketEnds | undefined;
  #key: BackendKey | undefined;
  /** Called when a socket is connected, and when the server has let us in. */
  onProgress: (() => void) | undefined;
  /** Told of every host that is reached, and of every one that can't be used. */
  watcher: OpeningWatcher | undefined;

  constructor(signal: AbortSignal, replication?: ReadonlyMap<string, string>) {
    this.signal = signal;
    this.replication = replication;
    this.#address = undefined;
    this.#transport = undefined;
    this.#ends = undefined;
    this.#key = undefined;
    this.onProgress = undefined;
    this.watcher = undefined;
  }

  /** The server that is tried; undefined as long as none is. */
  get address(): ServerAddress | undefined {
    return this.#address;
  }

  /** The way to it, once there is one. */
  get transport(): Transport | undefined {
    return this.#transport;
  }

  tries(address: ServerAddress): void {
    this.#address = address;
    this.#transport = undefined;
    this.#ends = undefined;
    this.#key = undefined;
  }

  reached(transport: Transport): void {
    this.#transport = transport;
  }

  /** The ends of the latest socket, from before TLS and the login on. */
  get ends(): SocketEnds | undefined {
    return this.#ends;
  }

  /** The server process of that socket, once its login is over. */
  get key(): BackendKey | undefined {
    return this.#key;
  }

  connected(ends: SocketEnds): void {
    this.#ends = ends;
    this.#key = undefined;
    this.watcher?.connected(this);
    this.onProgress?.();
  }

  loggedIn(key: BackendKey | undefined): void {
    this.#key = key;
    if (key !== undefined) this.onProgress?.();
  }
}

/** Between whom a socket that there is not yet will be, as far as it is known. */
export interface DialEnds extends Omit<SocketEnds, 'isUnix'> {
  readonly unsent: number;
  readonly tls: undefined;
}

/** As long as the server has not answered, only where it is looked for is known. */
export function endsOfDial(address: ServerAddress | undefined): DialEnds {
  const isUnix = address?.path !== undefined;
  return {
    remoteAddress: isUnix ? 'unix' : (address?.host ?? ''),
    remotePort: address?.port ?? 0,
    localAddress: isUnix ? 'unix' : '',
    localPort: isUnix ? address.port : 0,
    unsent: 0,
    tls: undefined,
  };
}

/** A server connection that is being opened, and what is known of it so far. */

import type { SocketEnds } from '../../net/socket-ends.js';
import type { Transport } from '../../net/transport.js';
import type { BackendKey } from '../../wire/session-messages.js';
import type { Backend } from './backend.js';
import { connectionIds } from './connection-ids.js';
import type { ServerAddress } from './server-hosts.js';

export interface OpeningWatcher {
  connected(opening: Opening): void;
  failed(opening: Opening, error: Error): void;
  /** A connection is closed to make room for one for replication. */
  evicted(backend: Backend): void;
}

export class Opening {
  /** Unique among the server connections of the process. The open connection keeps the same id. */
  readonly id = connectionIds.next();
  readonly beganAt = Date.now();
  /** Fires when the connection is not wanted any more. */
  readonly signal: AbortSignal;
  /** For replication: what the startup packet says besides the usual; undefined for an ordinary connection. */
  readonly replication: ReadonlyMap<string, string> | undefined;
  #address: ServerAddress | undefined;
  #transport: Transport | undefined;
  #ends: SocketEnds | undefined;
  #key: BackendKey | undefined;
  /** Called when a socket is connected, and when the server has accepted the login. */
  onProgress: (() => void) | undefined;
  /** Told of every host that is reached, and of every host that can't be used. */
  watcher: OpeningWatcher | undefined;

  constructor(signal: AbortSignal, replication?: ReadonlyMap<string, string>) {
    this.signal = signal;
    this.replication = replication;
  }

  /** The server that is being tried; undefined until the first attempt. */
  get address(): ServerAddress | undefined {
    return this.#address;
  }

  /** The transport to the server, once there is one. */
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

  /** Addresses of the latest socket, known before TLS and login. */
  get ends(): SocketEnds | undefined {
    return this.#ends;
  }

  /** Key of the server process behind that socket, once the login is over. */
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

/** Addresses of a socket that is not open yet, as far as they are known. */
export interface DialEnds extends Omit<SocketEnds, 'isUnix'> {
  readonly unsent: number;
  readonly tls: undefined;
}

/** Until the server answers, only the address that is dialed is known. */
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

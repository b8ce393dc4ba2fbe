/** Hosts of a database, and the order in which a new connection tries them. */
import { portOf } from '../config/special-kinds.js';

export interface ServerAddress {
  /** A name or an address; undefined for a Unix socket. */
  readonly host: string | undefined;
  readonly port: number;
  /** The Unix socket. */
  readonly path: string | undefined;
}

export class ServerHosts {
  readonly #addresses: readonly ServerAddress[];
  readonly #takesTurns: boolean;
  #next = 0;

  /** A host that begins with `/` or `@` is the folder of a Unix socket. `takesTurns`: each connection begins with the next host. */
  constructor(hosts: readonly string[], port: number | readonly number[], takesTurns: boolean) {
    this.#addresses = hosts.map((host, at) => addressOf(host, portOf(port, at)));
    this.#takesTurns = takesTurns;
  }

  get count(): number {
    return this.#addresses.length;
  }

  /** All hosts, in the order in which to try them. */
  inOrder(): readonly ServerAddress[] {
    const first = this.#next;
    if (this.#takesTurns) this.#next = (first + 1) % this.#addresses.length;
    return [...this.#addresses.slice(first), ...this.#addresses.slice(0, first)];
  }

  /** A host could not be used: unless connections take turns, the next ones begin with the host behind it. */
  failed(address: ServerAddress): void {
    if (!this.#takesTurns && this.#addresses[this.#next] === address)
      this.#next = (this.#next + 1) % this.#addresses.length;
  }
}

function addressOf(host: string, port: number): ServerAddress {
  const isFolder = host.startsWith('/') || host.startsWith('@');
  if (!isFolder) return { host, port, path: undefined };
  const path = `${host.replace(/\/+$/, '')}/.s.PGSQL.${port}`;
  return { host: undefined, port, path: path.startsWith('@') ? `\0${path.slice(1)}` : path };
}

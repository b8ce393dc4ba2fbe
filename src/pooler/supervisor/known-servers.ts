/** Facts about servers that the supervisor has learned from its workers: how long a login can take there, and whether it can be seen from here. */

import type { DialEnds, ServerFacts } from '../messages/messages.js';
import { readSocketTable, type SocketTable } from './kernel-sockets.js';

export interface KnownServer {
  /** `authentication_timeout`; undefined where the server has not said. */
  readonly authenticationMs: number | undefined;
  /** The server's end of every connection to it is in the list of this machine's sockets. */
  readonly isOnThisMachine: boolean;
}

/** The longest unused are forgotten beyond that. */
const mostServers = 1_000;

export class KnownServers {
  readonly #readTable: () => Promise<SocketTable | undefined>;
  readonly #servers = new Map<string, KnownServer>();

  constructor(readTable: () => Promise<SocketTable | undefined> = readSocketTable) {
    this.#readTable = readTable;
  }

  of({ remoteAddress, remotePort }: DialEnds): KnownServer | undefined {
    return this.#servers.get(keyOf(remoteAddress, remotePort));
  }

  /** A worker may have died since it was told this. Then the list has neither end of the connection, and says nothing. */
  async learned({ address, port, isDirect, authenticationMs, askedOver }: ServerFacts): Promise<void> {
    const key = keyOf(address, port);
    const wasOnThisMachine = this.#servers.get(key)?.isOnThisMachine === true;
    this.#set(key, { authenticationMs, isOnThisMachine: isDirect && wasOnThisMachine });
    const table = isDirect ? await this.#readTable() : undefined;
    if (table === undefined) return;
    const isListed = table.hasServerEnd(askedOver);
    if (isListed || table.hasServerEnd(otherWayRound(askedOver)))
      this.#set(key, { authenticationMs, isOnThisMachine: isListed });
  }

  #set(key: string, server: KnownServer): void {
    this.#servers.delete(key);
    this.#servers.set(key, server);
    const [oldest] = this.#servers.keys();
    if (this.#servers.size > mostServers && oldest !== undefined) this.#servers.delete(oldest);
  }
}

/** The server's end of this is our end of the connection. */
function otherWayRound({ localAddress, localPort, remoteAddress, remotePort }: DialEnds): DialEnds {
  return {
    localAddress: remoteAddress,
    localPort: remotePort,
    remoteAddress: localAddress,
    remotePort: localPort,
  };
}

function keyOf(address: string, port: number): string {
  return `${address} ${port}`;
}

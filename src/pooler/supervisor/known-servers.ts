/** Facts about servers that the supervisor has learned from its workers: how long a login can take there, and whether it can be seen from here. */

import type { DialEnds, ServerFacts } from '../messages/messages.js';
import { readSocketTable, type SocketTable } from './kernel-sockets.js';

export interface KnownServer {
  /** `authentication_timeout`; undefined where the server has not reported it. */
  readonly authenticationMs: number | undefined;
  /** This machine's socket list contains the server's end of every connection to it. */
  readonly isOnThisMachine: boolean;
}

/** Beyond this limit, the longest unused are forgotten. */
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

  /** Checks the socket list for the worker's connection. If the worker has died meanwhile, the list has neither end and proves nothing. */
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

/** The server's end of the connection that has this end. */
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

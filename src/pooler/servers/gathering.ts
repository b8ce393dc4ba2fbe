/**
 * Clients whose short statements came in the present round of the event loop, while more statements are under way than their pool
 * has connections. At the end of the round they are sent in batches: the first of each takes a connection, and the next ones
 * share it. So a round's statements fill few connections, and servers and pooler wake up less often.
 */
import type { PooledConnection } from '../../core/pooled-connection.js';
import { beginTurn, endTurn } from '../../runtime/turn.js';
import type { Backend } from './backend.js';

export interface GatheredClient {
  /** The client still waits for the end of the round. */
  readonly isGathered: boolean;
  /** Sends the client's statement on this connection, and takes others along. */
  lead(pooled: PooledConnection<Backend>): void;
  /** No connection is idle: the client waits for one. */
  queueUp(): void;
  /** Writes the client's statement behind another one; false where that is not possible. */
  follow(backend: Backend): boolean;
}

/** The pool that the connections are taken from. */
export interface GatheringPool {
  tryTake(): PooledConnection<Backend> | undefined;
}

export class Gathering {
  readonly #pool: GatheringPool;
  readonly #clients: GatheredClient[] = [];
  /** Clients before this one are served. */
  #next = 0;

  constructor(pool: GatheringPool) {
    this.#pool = pool;
  }

  get size(): number {
    return this.#clients.length - this.#next;
  }

  add(client: GatheredClient): void {
    if (this.#clients.length === 0) setImmediate(endRound, this);
    this.#clients.push(client);
  }

  /** The first client that still waits. */
  get first(): GatheredClient | undefined {
    for (; this.#next < this.#clients.length; this.#next++) {
      const client = this.#clients[this.#next] as GatheredClient;
      if (client.isGathered) return client;
    }
    return undefined;
  }

  endRound(): void {
    try {
      for (let client = this.first; client !== undefined; client = this.first) this.#serve(client);
    } finally {
      // If one client throws, the others are still served.
      if (this.size > 0) setImmediate(endRound, this);
      else this.#clients.length = this.#next = 0;
    }
  }

  #serve(client: GatheredClient): void {
    this.#next++;
    const pooled = this.#pool.tryTake();
    if (pooled === undefined) client.queueUp();
    else client.lead(pooled);
  }
}

function endRound(gathering: Gathering): void {
  beginTurn();
  try {
    gathering.endRound();
  } finally {
    endTurn();
  }
}

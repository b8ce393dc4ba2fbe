/** A client as the engine keeps it: with the listener that watches over it. */
import type { PooledConnection } from '../core/pooled-connection.js';
import { takenAt } from '../runtime/stuck-warning.js';
import type { PgClient } from './client.js';

export class PgConnection {
  readonly client: PgClient;
  /** Address of the server's machine; undefined for a socket file. */
  readonly remoteAddress: string | undefined;
  /** Its place in the engine, from the moment it is open. */
  pooled!: PooledConnection<PgConnection>;
  /** Listens to the client's `error` event as long as it lives, so that a lost connection never ends the program. */
  onError!: (error: Error) => void;
  /** The `acquire` event of its first checkout was emitted before `verify` ran. */
  isAnnounced = false;
  /** Checked out by `connect()`: its events belong to that caller. */
  isHeldByCaller = false;
  /** Came back inside a transaction, which is being rolled back. */
  isRollingBack = false;
  /** Its socket's events run in that caller's async context. */
  isAdopted = false;
  /** How long after its goodbye the server may take to close it, in milliseconds. Set when it comes back with an error. */
  patienceMs = 0;
  /** The server has announced the end of the session. */
  isEndedByServer = false;

  constructor(client: PgClient) {
    this.client = client;
    this.remoteAddress = client.connection?.stream?.remoteAddress;
    Object.defineProperty(client, Symbol.asyncDispose, {
      configurable: true,
      get: () => this.#makeDisposer(),
    });
  }

  /** For `await using`: releases the current checkout, unless that has happened by the end of the block. */
  #makeDisposer(): () => Promise<void> {
    const { client, pooled } = this;
    const { generation } = pooled;
    return async () => {
      if (pooled.state === 'in_use' && pooled.generation === generation) client.release?.();
    };
  }
}

/** The place where a client was checked out, for a warning. */
export function placeOf({ holder }: PooledConnection<PgConnection>): string {
  return holder instanceof Error
    ? `taken\n${takenAt(holder)}`
    : 'Set leakThresholdMillis to learn where clients are taken.';
}

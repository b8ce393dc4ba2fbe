/** A client as the engine keeps it: with the listener that watches over it. */
import type { PooledConnection } from '../core/pooled-connection.js';
import { takenAt } from '../runtime/stuck-warning.js';
import { systemClock } from '../runtime/system.js';
import type { PgClient } from './client.js';

export class PgConnection {
  readonly client: PgClient;
  /** Address of the server's machine; undefined for a socket file. */
  readonly remoteAddress: string | undefined;
  /** Its place in the engine, from the moment it is open, or closed because it came too late. */
  pooled!: PooledConnection<PgConnection>;
  /** Hears of an error of the client while it runs a query of `pool.query()`. */
  onQueryError: ((error: Error) => void) | undefined;
  /** The `acquire` event of its first checkout was emitted before `verify` ran. */
  isAnnounced = false;
  /** Checked out by `connect()`: its events belong to that caller. */
  isHeldByCaller = false;
  /** Came back inside a transaction, which is being rolled back. */
  isRollingBack = false;
  /** Its socket's events run in that caller's async context. */
  isAdopted = false;
  /** Time of the last answer of the server that ended a query. */
  answeredAt = systemClock.coarse();
  /** Came back with an error of its server: a query has been answered, though its end is still to come. */
  isRefused = false;
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

/** Tells which connections lead to the same machine: the way to it is theirs, too. */
export function siblingsOf({ remoteAddress }: PgConnection): (other: PgConnection) => boolean {
  return (other) => other.remoteAddress === remoteAddress;
}

/** The place where a client was checked out, for a warning. */
export function placeOf({ holder }: PooledConnection<PgConnection>): string {
  return holder instanceof Error
    ? `taken\n${takenAt(holder)}`
    : 'Where it was taken was not noted; from now on it is, for pool.connect(). Set leakThresholdMillis to note it from the start.';
}

/**
 * Open clients that lose their connection. An idle one is closed, and the program is told; one that is checked out stays its
 * caller's, but its place in the pool is free as soon as its socket is gone: a caller that never releases it costs nothing.
 */
import type { ConnectionPool } from '../core/connection-pool.js';
import { SummedWarning } from '../runtime/summed-warning.js';
import { describeClient, type PgClient } from './client.js';
import { type PgConnection, placeOf, siblingsOf } from './pg-connection.js';

export interface LosingPool {
  readonly name: string;
  note(message: string, error?: Error): void;
  emit(event: string, ...args: unknown[]): boolean;
  /** From now on each checkout records where it was made. */
  noticeHolders(): void;
}

/** Finds out from a socket's errors the state of the way to the server, and so of every other socket to it. */
const networkErrors: ReadonlySet<unknown> = new Set([
  ...['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'ENETRESET'],
]);

function isOfNetwork(error: Error): boolean {
  return networkErrors.has((error as { readonly code?: unknown }).code);
}

export class ClientLosses {
  readonly #pool: LosingPool;
  readonly #engine: ConnectionPool<PgConnection>;
  readonly #warning = new SummedWarning('HG_CLIENT_LOST');

  constructor(pool: LosingPool, engine: ConnectionPool<PgConnection>) {
    this.#pool = pool;
    this.#engine = engine;
  }

  /** The `error` event of an open client. */
  failed(connection: PgConnection, error: Error): void {
    const { client, pooled } = connection;
    if (pooled.state === 'closing' || pooled.state === 'gone') {
      this.#pool.note('additional client error after disconnection due to error', error);
      return;
    }
    const { severity } = error as { severity?: string };
    connection.isEndedByServer = severity === 'FATAL' || severity === 'PANIC';
    const isCheckedOut = pooled.state === 'in_use';
    this.#engine.broken(pooled, error, isOfNetwork(error) ? siblingsOf(connection) : undefined);
    if (isCheckedOut) {
      // Its holder learns of it from the next query, at the latest.
      this.#pool.note('checked-out client lost its connection', error);
      return;
    }
    (error as Error & { client?: PgClient }).client = client;
    // Without a listener this throws, from the client's own event: an uncaught exception, as with any emitter.
    this.#pool.emit('error', error, client);
  }

  /** The `end` event of an open client: its socket is gone. What the pool itself has out, it gives back by itself. */
  ended(connection: PgConnection): void {
    const { client, pooled } = connection;
    // The program has ended it, after giving it back.
    if (pooled.state === 'idle') this.#engine.broken(pooled, new Error('The idle client was ended.'));
    if (!connection.isHeldByCaller || pooled.state !== 'in_use') return;
    if (!client._ending) this.#warn(connection);
    this.#engine.lost(pooled);
  }

  #warn({ client, pooled }: PgConnection): void {
    this.#warning.give(() => [
      `Pool ${this.#pool.name}: a client lost its connection while it was checked out (${describeClient(client)}). ` +
        'Its place in the pool is free. The client stays unusable: release it, and take another.',
      pooled.broken && `error: ${pooled.broken.message}`,
      placeOf(pooled),
    ]);
    // The next ones can be named.
    this.#pool.noticeHolders();
  }
}

/** Clients on their way to a caller and back: their events, the function that releases them, and the meaning of a release. */
import { EventEmitter } from 'node:events';
import type { ConnectionPool } from '../core/connection-pool.js';
import { DoubleReleaseError } from '../core/errors.js';
import { areReleasesPublished } from '../runtime/channels.js';
import { asError } from '../runtime/promise-dialer.js';
import { SummedWarning } from '../runtime/summed-warning.js';
import { describeClient, isAtRest, isInTransaction, isUsable } from './client.js';
import { isFromServer, TransactionLeftOpenError } from './errors.js';
import { disown } from './held-client.js';
import { type OnOpenTransaction, rollBackFirst } from './open-transaction.js';
import { type PgConnection, placeOf, siblingsOf } from './pg-connection.js';
import type { Pooled, ReleasableClient } from './pipelining-pool.js';

/** The pool as an emitter of events. */
export interface CheckoutEvents extends Pick<EventEmitter, 'listenerCount' | 'emit'> {
  /** Emits an event. An exception of a listener becomes an uncaught exception, as if thrown outside the pool. */
  tell(event: string, ...args: unknown[]): void;
  readonly name: string;
  /** From now on each checkout records where it was made. */
  noticeHolders(): void;
}

interface CheckoutSettings {
  readonly allowsExitOnIdle: boolean;
  readonly onOpenTransaction: OnOpenTransaction;
}

const ownEmit = EventEmitter.prototype.emit;

export class ClientCheckouts {
  readonly #events: CheckoutEvents;
  readonly #engine: ConnectionPool<PgConnection>;
  readonly #allowsExitOnIdle: boolean;
  readonly #onOpenTransaction: OnOpenTransaction;
  readonly #openTransactionWarning = new SummedWarning('HG_OPEN_TRANSACTION');

  constructor(events: CheckoutEvents, engine: ConnectionPool<PgConnection>, settings: CheckoutSettings) {
    this.#events = events;
    this.#engine = engine;
    this.#allowsExitOnIdle = settings.allowsExitOnIdle;
    this.#onOpenTransaction = settings.onOpenTransaction;
  }

  /** Hands a connection to its caller: events, the release function, and errors from here on are the caller's. */
  readonly checkOut = (pooled: Pooled): ReleasableClient => {
    const { connection, generation } = pooled;
    const client = connection.client as ReleasableClient;
    if (connection.isAnnounced) connection.isAnnounced = false;
    else if (this.#hears('acquire')) this.#events.tell('acquire', client);
    connection.isHeldByCaller = true;
    client.release = (error?: unknown): void => this.#giveBack(pooled, generation, error);
    if (this.#allowsExitOnIdle) client.ref?.();
    return client;
  };

  #giveBack(pooled: Pooled, generation: number, error: unknown): void {
    const { connection } = pooled;
    const { client } = connection;
    if (connection.isRollingBack && pooled.generation === generation) throw new DoubleReleaseError();
    if ((pooled.state === 'in_use' || pooled.isTakenAway) && pooled.generation === generation) {
      client._poolUseCount = (client._poolUseCount ?? 0) + 1;
      if (this.#hears('release')) this.#events.tell('release', error, client);
      disown(connection);
      if (!isUsable(client)) this.#engine.broken(pooled, new Error('The client lost its connection.'));
    }
    // As in pg-pool, any truthy value condemns the client.
    if (this.#onOpenTransaction === 'keep' || error || pooled.state !== 'in_use')
      this.#comeBack(pooled, generation, error || undefined);
    else this.#endTransaction(pooled, generation);
  }

  /** Comes back without an error, perhaps inside a transaction. */
  #endTransaction(pooled: Pooled, generation: number): void {
    const { connection } = pooled;
    const { client } = connection;
    if (!isUsable(client) || !isInTransaction(client)) this.#comeBack(pooled, generation, undefined);
    else if (this.#onOpenTransaction === 'warn') {
      this.#warnOfTransaction(pooled);
      this.#comeBack(pooled, generation, undefined);
    } else if (this.#onOpenTransaction === 'discard')
      this.#comeBack(pooled, generation, new TransactionLeftOpenError());
    else
      rollBackFirst(connection, this.#engine.policy.checkTimeout, (failure) =>
        this.#comeBack(pooled, generation, failure),
      );
  }

  /** With a single connection, a program may have one transaction over several checkouts, as tests do. A COMMIT may be on its way. */
  #warnOfTransaction(pooled: Pooled): void {
    const { client } = pooled.connection;
    if (this.#engine.limit === 1 || !isAtRest(client)) return;
    this.#openTransactionWarning.give(() => [
      `Pool ${this.#events.name}: a client came back inside an open transaction (${describeClient(client)}), and its next caller ` +
        "continues that, as with pg-pool. COMMIT or ROLLBACK before the release; pool.query('BEGIN') can't begin a transaction for the queries after it.",
      "onOpenTransaction: 'rollback' has the pool roll back, 'discard' close the client, 'keep' leave it so without this warning.",
      placeOf(pooled),
    ]);
    // The next ones can be named.
    this.#events.noticeHolders();
  }

  #comeBack(pooled: Pooled, generation: number, error: unknown): void {
    if (error) this.#cameWith(error, pooled);
    this.#engine.release(pooled, generation, error);
    if (this.#allowsExitOnIdle && pooled.state === 'idle') pooled.connection.client.unref?.();
  }

  /** A query without an answer may be a slow one, or the end of the way to its server, which others have in common. */
  #cameWith(error: unknown, pooled: Pooled): void {
    const { connection, state } = pooled;
    const { client } = connection;
    connection.isRefused = isFromServer(error);
    if (state !== 'in_use' || connection.isRefused || !isUsable(client) || isAtRest(client)) return;
    this.#engine.broken(pooled, asError(error), siblingsOf(connection));
  }

  /** True if the program learns of releases, by an event or a diagnostics channel. */
  get areReleasesHeard(): boolean {
    return this.#hears('release') || areReleasesPublished();
  }

  /** True for an event with a listener; a tracer may have replaced `emit`. */
  #hears(event: string): boolean {
    return this.#events.listenerCount(event) > 0 || this.#events.emit !== ownEmit;
  }
}

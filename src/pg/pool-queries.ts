/** `pool.query()`: a query on a client of its own, which is released before the caller learns the outcome, or on a shared one. */

import type { ConnectionPool } from '../core/connection-pool.js';
import { inPresentContext } from '../runtime/async-context.js';
import { soon } from '../runtime/soon.js';
import type { PgClient, QueryCallback } from './client.js';
import type { ClientCheckouts } from './client-checkouts.js';
import { adoptFor, hasOwnEvents } from './held-client.js';
import type { PgConnection } from './pg-connection.js';
import { Pipeline } from './pipeline.js';
import type { Pooled, ReleasableClient } from './pipelining-pool.js';
import { CallbackWaiter, enqueue } from './pool-waiters.js';

/** Logs. An exception of the program's log function becomes an uncaught exception. */
type Note = (message: string) => void;

export class PoolQueries {
  readonly #engine: ConnectionPool<PgConnection>;
  readonly #checkouts: ClientCheckouts;
  readonly #note: Note;
  readonly #pipeline: Pipeline | undefined;

  constructor(
    engine: ConnectionPool<PgConnection>,
    checkouts: ClientCheckouts,
    note: Note,
    pipelineDepth: number,
  ) {
    this.#engine = engine;
    this.#checkouts = checkouts;
    this.#note = note;
    if (pipelineDepth === 0) return;
    this.#pipeline = new Pipeline(engine, pipelineDepth, {
      checkOut: checkouts.checkOut,
      runAlone: (pooled, text, values, callback) => this.#runAlone(pooled, text, values, callback),
    });
  }

  get isPipelined(): boolean {
    return this.#pipeline !== undefined;
  }

  /** True if a query may share its connection. */
  shares(text: unknown): boolean {
    return this.#pipeline?.takes(text) === true;
  }

  /** `isAwaited`: the callback only settles a promise, which needs no context. */
  submit(text: unknown, values: unknown, callback: QueryCallback, isAwaited: boolean): void {
    if (this.#pipeline?.takes(text)) {
      this.#pipeline.submit(text, values, callback);
      return;
    }
    const pooled = this.#engine.tryTake();
    if (pooled === undefined) this.#enqueue(text, values, callback, isAwaited);
    else this.#runAlone(pooled, text, values, callback, isAwaited);
  }

  #enqueue(text: unknown, values: unknown, callback: QueryCallback, isAwaited: boolean): void {
    const run = (pooled: Pooled): void => this.#runAlone(pooled, text, values, callback, isAwaited);
    const fail = (error: Error): void => soon(callback, error);
    const timeoutMs = this.#engine.usualTimeoutMs;
    enqueue(this.#engine, new CallbackWaiter(run, fail, undefined), { timeoutMs, signal: undefined });
  }

  #runAlone(
    pooled: Pooled,
    text: unknown,
    values: unknown,
    callback: QueryCallback,
    isAwaited = false,
  ): void {
    this.#engine.exemptFromLeaks(pooled);
    const { connection } = pooled;
    const client = this.#checkouts.checkOut(pooled);
    connection.isHeldByCaller = false;
    adoptFor(text, connection);
    this.run(client, text, values, callback, isAwaited, connection);
  }

  /** Runs one query on a checked-out client. `connection`: that of the client, where the pool itself has checked it out. */
  run(
    client: ReleasableClient,
    text: unknown,
    values: unknown,
    callback: QueryCallback,
    isAwaited = false,
    connection?: PgConnection,
  ): void {
    const { release } = client;
    let isOver = false;
    const settle = (error: Error | null | undefined, result?: unknown): void => {
      if (isOver) return;
      isOver = true;
      if (connection === undefined) client.removeListener?.('error', finish);
      else connection.onQueryError = undefined;
      if (!error && this.#pipeline !== undefined) {
        // Other queries rely on an unchanged session.
        this.#pipeline.finishAlone(client, text, result, release, callback);
        return;
      }
      release(error);
      if (error) callback(error);
      else callback(undefined, result);
    };
    const needsNoContext = isAwaited && this.#pipeline === undefined && !this.#checkouts.areReleasesHeard;
    // A query object emits its last event after its callback, in the context that the release takes from the socket.
    const end = hasOwnEvents(text) ? laterOf(settle) : settle;
    const finish = needsNoContext ? end : inPresentContext(end);
    if (connection === undefined) client.once?.('error', finish);
    else connection.onQueryError = finish;
    this.#note('dispatching query');
    try {
      (client.query as NonNullable<PgClient['query']>)(text, values, (error, result) => {
        this.#note('query dispatched');
        finish(error, result);
      });
    } catch (error) {
      finish(error as Error);
    }
  }
}

function laterOf<A extends unknown[]>(call: (...args: A) => void): (...args: A) => void {
  return (...args) => soon(call, ...args);
}

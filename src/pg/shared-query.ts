/** One query over a shared connection, from the call of `pool.query()` to its answer. */

import type { PooledConnection } from '../core/pooled-connection.js';
import { Waiter } from '../core/waiters.js';
import { CallerContext } from '../runtime/async-context.js';
import { soon } from '../runtime/soon.js';
import { throwLater } from '../runtime/throw-later.js';
import type { QueryCallback } from './client.js';
import type { Lane } from './lane.js';
import type { PgConnection } from './pg-connection.js';
import type { PipeliningPool } from './pipelining-pool.js';

/** Receives the outcome of a query. */
export interface QuerySender {
  granted(query: SharedQuery, pooled: PooledConnection<PgConnection>): void;
  failed(query: SharedQuery, error: Error): void;
  answered(query: SharedQuery, lane: Lane, error: Error | null | undefined, result: unknown): void;
}

/**
 * A prepared statement is missing or has changed: the query that should have prepared it failed just before, or its
 * tables have changed. Nothing was executed, and without the statement name the query does not depend on that.
 */
const preparedStatementErrors: ReadonlySet<string | undefined> = new Set(['26000', '42P05', '0A000']);

export class SharedQuery extends Waiter<PgConnection> {
  readonly context = new CallerContext();
  readonly #sender: QuerySender;
  readonly #values: unknown;
  readonly #callback: QueryCallback;
  #text: unknown;
  #isDelivered = false;

  constructor(sender: QuerySender, text: unknown, values: unknown, callback: QueryCallback) {
    super();
    this.#sender = sender;
    this.#text = text;
    this.#values = values;
    this.#callback = callback;
  }

  /** True if it uses a prepared statement that stays on its connection. */
  get isNamed(): boolean {
    return Boolean((this.#text as { name?: unknown }).name);
  }

  granted(pooled: PooledConnection<PgConnection>): void {
    this.#sender.granted(this, pooled);
  }

  failed(error: Error): void {
    this.#sender.failed(this, error);
  }

  runAlone(pooled: PooledConnection<PgConnection>, pool: PipeliningPool): void {
    this.context.runInAsyncScope(pool.runAlone, pool, pooled, this.#text, this.#values, this.#callback);
  }

  sendOn(lane: Lane): void {
    this.context.runInAsyncScope(this.#sendOn, this, lane);
  }

  #sendOn(lane: Lane): void {
    let isSending = true;
    let isAnswered = false;
    const answered: QueryCallback = (error, result) => {
      if (isSending && error) {
        // For a value that can't be sent, pg reports the error at once, and again when the server has answered what was
        // sent of it.
        if (this.isNamed) lane.failure ??= error;
        soon(() => this.deliver(error, undefined));
        return;
      }
      if (isAnswered) return;
      isAnswered = true;
      this.#sender.answered(this, lane, error, result);
    };
    try {
      lane.query(this.#text, this.#values, (error, result) => {
        this.context.runInAsyncScope(answered, undefined, error, result);
      });
    } catch (error) {
      // Refused before anything was sent.
      soon(answered, error as Error, undefined);
    }
    isSending = false;
  }

  /** True to send the query once more, without its statement name, instead of answering it. */
  changesForResending(error: Error | null | undefined): boolean {
    const { code } = (error ?? {}) as { code?: string };
    if (!this.isNamed || this.#isDelivered || !preparedStatementErrors.has(code)) return false;
    this.#text = Object.create(this.#text as object, { name: { value: undefined, enumerable: true } });
    return true;
  }

  /** Calls the caller back, once. An exception of its callback must not reach pg, which is in the middle of reading answers. */
  deliver(error: Error | null | undefined, result: unknown): void {
    if (this.#isDelivered) return;
    this.#isDelivered = true;
    try {
      if (error) this.#callback(error);
      else this.#callback(undefined, result);
    } catch (thrown) {
      throwLater(thrown);
    }
  }
}

/** A connection that several queries share: each is sent without waiting for the answers to those before it. */

import type { PooledConnection } from '../core/pooled-connection.js';
import type { Linked } from '../kernel/linked-list.js';
import { soon } from '../runtime/soon.js';
import type { PgClient, QueryCallback, Stream } from './client.js';
import type { PgConnection } from './pg-connection.js';
import type { ReleasableClient } from './pipelining-pool.js';
import { isReplaced } from './replaced-methods.js';

/**
 * An older pg and the native client would only keep the queries in a queue of their own; and a query timeout, wherever it
 * is set, destroys the socket with everyone's queries on it.
 */
export function canShare(client: PgClient): boolean {
  return client.pipeline !== undefined && !client.connectionParameters?.query_timeout;
}

/** The part of a client that sends its queued queries. */
interface PulsedClient {
  query(text: unknown, values: unknown, callback: QueryCallback): unknown;
  _pulseQueryQueue(): void;
}

function isTraced(client: PgClient): boolean {
  const { query } = Object.getPrototypeOf(client) as { readonly query?: unknown };
  return isReplaced(query, '_pulseQueryQueue');
}

/** Codes with which the server says goodbye: terminated, shut down, crashed, not ready, database dropped, idle too long. */
const farewell = /^57P0[1-5]$/;

export class Lane implements Linked<Lane> {
  readonly pooled: PooledConnection<PgConnection>;
  readonly client: ReleasableClient;
  /** The release function of this very checkout. */
  readonly release: (error?: unknown) => void;
  /** Queries sent and not answered. */
  load = 0;
  /** Takes no more queries; closes when the last one is answered. */
  isClosing = false;
  endsForGood = false;
  /** Why the connection is not to be used again. */
  failure: Error | undefined;
  /** No more answers will come. */
  isLost = false;
  previous: Lane | undefined;
  next: Lane | undefined;

  readonly #onClientError = (error: Error): void => {
    this.failure ??= error;
    this.isLost = true;
  };

  constructor(pooled: PooledConnection<PgConnection>, client: ReleasableClient) {
    this.pooled = pooled;
    this.client = client;
    this.release = client.release;
    client.pipeline = true;
    client.on('error', this.#onClientError);
  }

  /**
   * Sends a query behind those under way. A tracer (dd-trace) that has replaced `query` looks for the query it started
   * at the end of the client's queue: the query stays there until then.
   */
  query(text: unknown, values: unknown, callback: QueryCallback): void {
    const client = this.client as PulsedClient & ReleasableClient;
    if (!isTraced(client)) {
      client.query(text, values, callback);
      return;
    }
    client._pulseQueryQueue = () => {};
    try {
      client.query(text, values, callback);
    } finally {
      Reflect.deleteProperty(client, '_pulseQueryQueue');
    }
    client._pulseQueryQueue();
  }

  /** Finds out whether a query's error ends the connection. */
  notice(error: Error | null | undefined, isNamed: boolean): void {
    if (!this.client._queryable) this.#onClientError(error ?? new Error('The connection was lost.'));
    if (!error) return;
    const { severity, code } = error as Error & { severity?: string; code?: string };
    if (severity === 'FATAL' || severity === 'PANIC' || farewell.test(code ?? '')) this.#onClientError(error);
    // A prepared statement whose tables have changed stays unusable for as long as its connection lives.
    else if (isNamed && code === '0A000') this.failure ??= error;
  }

  /** Restores the connection and releases it. No query may be under way. */
  close(): void {
    this.client.removeListener?.('error', this.#onClientError);
    this.client.pipeline = false;
    this.release(this.failure);
  }
}

/**
 * Queries sent on one lane in the same turn leave in one packet. The only query of a lane is not held back for that:
 * only those that join others already under way are.
 */
export class Corks {
  #corked: Stream[] = [];
  readonly #uncorkAll = (): void => {
    const streams = this.#corked;
    this.#corked = [];
    for (const stream of streams) stream.uncork?.();
  };

  cork(lane: Lane): void {
    const stream = lane.client.connection?.stream;
    if (stream?.cork === undefined || stream.writableCorked > 0) return;
    stream.cork();
    if (this.#corked.push(stream) === 1) soon(this.#uncorkAll);
  }
}

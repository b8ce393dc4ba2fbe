/**
 * `pool.query()` over shared connections. Only statements that can leave nothing behind are sent this way (see
 * statement-kind.ts); every query is its own error boundary, because each ends with its own Sync.
 *
 * - A query takes an idle connection if there is one. While the pool can grow it takes a place in the queue, which makes
 *   the pool grow, and is sent on a lane when that has less than its share. When the pool can't grow it goes to the least
 *   loaded lane that has fewer than `depth` under way; when there is none, into the queue.
 * - A lane exists while it has queries under way, and is a checkout like any other. Callers of `connect()` in the queue
 *   are not kept waiting by a lane that never runs dry: as many lanes as there are such callers take no more queries.
 */
import type { ConnectionPool } from '../core/connection-pool.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import { Waiter } from '../core/waiters.js';
import { LinkedList } from '../kernel/linked-list.js';
import type { PgClient, QueryCallback } from './client.js';
import { Corks, Lane, type ReleasableClient } from './lane.js';
import type { PgConnection } from './pg-connection.js';
import { statementKind } from './statement-kind.js';

type CheckOut = (pooled: PooledConnection<PgConnection>) => ReleasableClient;

/** The server no longer knows a prepared statement: the one that was to prepare it failed, just before. */
const unknownPreparedStatement = '26000';

export class Pipeline {
  readonly #engine: ConnectionPool<PgConnection>;
  readonly #depth: number;
  readonly #checkOut: CheckOut;
  /** The lanes that take more queries, by their load. */
  readonly #open: LinkedList<Lane>[];
  readonly #closing = new LinkedList<Lane>();
  /** Queries in the pool's queue, in order; some may have left it. */
  readonly #queued: SharedQuery[] = [];
  #queuedFrom = 0;
  #waiting = 0;
  /** Queries sent and not answered, and the lanes they are on. */
  #underWay = 0;
  #lanes = 0;
  readonly #corks = new Corks();

  constructor(engine: ConnectionPool<PgConnection>, depth: number, checkOut: CheckOut) {
    this.#engine = engine;
    this.#depth = depth;
    this.#checkOut = checkOut;
    this.#open = Array.from({ length: depth + 1 }, () => new LinkedList<Lane>());
  }

  /** Whether a query may share its connection. */
  takes(query: unknown): boolean {
    if (typeof query === 'string') return statementKind(query) === 'shareable';
    if (typeof query !== 'object' || query === null) return false;
    const { text, submit, rows, query_timeout } = query as Record<string, unknown>;
    // Cursors and streams keep a portal open; a query timeout destroys the socket, with everyone's queries on it.
    if (submit !== undefined || rows || query_timeout) return false;
    return typeof text === 'string' && statementKind(text) === 'shareable';
  }

  submit(text: unknown, values: unknown, callback: QueryCallback): void {
    this.#submit(new SharedQuery(this, text, values, callback));
  }

  #submit(query: SharedQuery): void {
    this.#makeWay();
    const pooled = this.#engine.tryTake();
    if (pooled !== undefined) {
      this.#send(this.#openLane(pooled), query);
      return;
    }
    const lane = this.#leastLoaded();
    if (lane !== undefined && this.#engine.room === 0) {
      this.#send(lane, query);
      return;
    }
    this.#waiting++;
    this.#queued.push(query);
    this.#engine.enqueue(query, this.#engine.policy.acquireTimeout);
    // Asking makes the pool grow; the more callers there are, the less it makes sense to wait for that.
    if (lane !== undefined) this.#fill(lane);
  }

  // ---- called by the queries --------------------------------------------------------------------------------------

  granted(query: SharedQuery, pooled: PooledConnection<PgConnection>): void {
    this.#waiting--;
    const lane = this.#openLane(pooled);
    this.#send(lane, query);
    this.#fill(lane);
  }

  failed(query: SharedQuery, error: Error): void {
    this.#waiting--;
    process.nextTick(query.callback, error);
  }

  answered(query: SharedQuery, lane: Lane, error: Error | null | undefined, result: unknown): void {
    const { client } = lane;
    if (!client._queryable) lane.failure ??= error ?? new Error('The connection was lost.');
    if (lane.failure !== undefined) this.#beginClosing(lane);
    this.#reload(lane, lane.load - 1);
    this.#makeWay();
    if (lane.load === 0 && lane.isClosing) this.#close(lane);
    else if (!lane.isClosing) {
      this.#fill(lane);
      if (lane.load === 0) this.#close(lane);
    }
    if (isPreparedByAnother(error, query)) this.#submit(query);
    else query.deliver(error, result);
  }

  // ---- lanes ------------------------------------------------------------------------------------------------------

  #openLane(pooled: PooledConnection<PgConnection>): Lane {
    const lane = new Lane(this.#checkOut(pooled));
    this.#openAt(0).pushTail(lane);
    return lane;
  }

  #openAt(load: number): LinkedList<Lane> {
    return this.#open[load] as LinkedList<Lane>;
  }

  #leastLoaded(): Lane | undefined {
    for (let load = 0; load < this.#depth; load++) {
      const lane = this.#openAt(load).head;
      if (lane !== undefined) return lane;
    }
    return undefined;
  }

  #send(lane: Lane, query: SharedQuery): void {
    this.#reload(lane, lane.load + 1);
    if (lane.load > 1) this.#corks.cork(lane);
    query.sendOn(lane);
  }

  #reload(lane: Lane, load: number): void {
    if (!lane.isClosing) {
      this.#openAt(lane.load).remove(lane);
      this.#openAt(load).pushTail(lane);
    }
    this.#underWay += load - lane.load;
    this.#lanes += Number(load > 0) - Number(lane.load > 0);
    lane.load = load;
  }

  /** Sends queries from the queue, but no more than the lane's share, for others will come to help. */
  #fill(lane: Lane): void {
    const connections = this.#lanes + this.#engine.pending + this.#engine.room;
    const share = Math.min(
      this.#depth,
      Math.ceil((this.#underWay + this.#waiting) / Math.max(1, connections)),
    );
    while (!lane.isClosing && lane.load < share) {
      const query = this.#nextQueued();
      if (query === undefined) return;
      this.#waiting--;
      this.#engine.withdraw(query);
      this.#send(lane, query);
    }
  }

  #nextQueued(): SharedQuery | undefined {
    while (this.#queuedFrom < this.#queued.length) {
      const query = this.#queued[this.#queuedFrom++] as SharedQuery;
      if (this.#queuedFrom > 1_000 && this.#queuedFrom * 2 > this.#queued.length) {
        this.#queued.splice(0, this.#queuedFrom);
        this.#queuedFrom = 0;
      }
      if (query.queued) return query;
    }
    this.#queued.length = 0;
    this.#queuedFrom = 0;
    return undefined;
  }

  /** Closes as many lanes as callers wait for a connection of their own, and opens those again that too few wait for. */
  #makeWay(): void {
    const wanted = this.#engine.waiting - this.#waiting;
    while (this.#closing.size < wanted) {
      const lane = this.#leastLoaded() ?? this.#openAt(this.#depth).head;
      if (lane === undefined) return;
      this.#beginClosing(lane);
    }
    for (const lane of this.#closing) {
      if (this.#closing.size <= wanted) return;
      if (lane.failure !== undefined || lane.load === 0) continue;
      lane.isClosing = false;
      this.#closing.remove(lane);
      this.#openAt(lane.load).pushTail(lane);
    }
  }

  #beginClosing(lane: Lane): void {
    if (lane.isClosing) return;
    this.#openAt(lane.load).remove(lane);
    lane.isClosing = true;
    this.#closing.pushTail(lane);
  }

  #close(lane: Lane): void {
    (lane.isClosing ? this.#closing : this.#openAt(lane.load)).remove(lane);
    lane.close();
  }
}

/** One query, from the call of `pool.query()` to its answer. */
class SharedQuery extends Waiter<PgConnection> {
  readonly text: unknown;
  readonly values: unknown;
  readonly callback: QueryCallback;
  readonly #pipeline: Pipeline;
  #isDelivered = false;
  /** Sent a second time, after the statement that it relied on turned out not to be prepared. */
  wasResent = false;

  constructor(pipeline: Pipeline, text: unknown, values: unknown, callback: QueryCallback) {
    super();
    this.#pipeline = pipeline;
    this.text = text;
    this.values = values;
    this.callback = callback;
  }

  granted(pooled: PooledConnection<PgConnection>): void {
    this.#pipeline.granted(this, pooled);
  }

  failed(error: Error): void {
    this.#pipeline.failed(this, error);
  }

  sendOn(lane: Lane): void {
    let isSending = true;
    let isAnswered = false;
    const answered: QueryCallback = (error, result) => {
      if (isSending && error) {
        // A value that can't be sent: pg says so at once, and again when the server has answered to what was sent of it.
        this.deliver(error, undefined);
        return;
      }
      if (isAnswered) return;
      isAnswered = true;
      this.#pipeline.answered(this, lane, error, result);
    };
    try {
      (lane.client.query as NonNullable<PgClient['query']>)(this.text, this.values, answered);
    } catch (error) {
      // Refused before anything was sent.
      process.nextTick(answered, error as Error, undefined);
    }
    isSending = false;
  }

  deliver(error: Error | null | undefined, result: unknown): void {
    if (this.#isDelivered) return;
    this.#isDelivered = true;
    if (error) this.callback(error);
    else this.callback(undefined, result);
  }
}

function isPreparedByAnother(error: Error | null | undefined, query: SharedQuery): boolean {
  if ((error as { code?: string } | null | undefined)?.code !== unknownPreparedStatement || query.wasResent)
    return false;
  const { name } = query.text as { name?: unknown };
  query.wasResent = typeof name === 'string';
  return query.wasResent;
}

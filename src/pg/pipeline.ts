/**
 * `pool.query()` over shared connections. Only statements that can leave nothing behind are sent this way (see
 * sql/statement-kind.ts). Every query is its own error boundary, because each ends with its own Sync.
 *
 * - A query takes an idle connection if there is one. While the pool can grow, the query takes a place in the queue,
 *   which makes the pool grow, and is sent on a lane that has less than its share. When the pool can't grow, the query
 *   goes to the least loaded lane with fewer than `depth` under way; if there is none, into the queue.
 * - A lane exists while it has queries under way, and is a checkout like any other. Under constant load it would never
 *   be released, so it runs dry on request: when the pool would close its connection, and when callers of `connect()`
 *   wait for a connection of their own. It then takes no more queries.
 */

import type { ConnectionPool } from '../core/connection-pool.js';
import { LinkedList } from '../kernel/linked-list.js';
import { soon } from '../runtime/soon.js';
import { statementKind } from '../sql/statement-kind.js';
import type { QueryCallback } from './client.js';
import { Corks, canShare, Lane } from './lane.js';
import type { PgConnection } from './pg-connection.js';
import type { PipeliningPool, Pooled } from './pipelining-pool.js';
import { setRight } from './session-guard.js';
import { SharedQuery } from './shared-query.js';

export class Pipeline {
  readonly #engine: ConnectionPool<PgConnection>;
  readonly #pool: PipeliningPool;
  /** Maximum number of queries under way on one lane. */
  readonly #depth: number;
  /** The clients of this pool can be shared, as far as is known. */
  #canShare = true;
  /** The lanes that take more queries, by their load. */
  readonly #open: LinkedList<Lane>[];
  /** The lanes that run dry. */
  readonly #closing = new LinkedList<Lane>();
  /** Queries sent and not answered, and the lanes they are on. */
  #underWay = 0;
  #lanes = 0;
  /** Queries in the pool's queue, in order, from `#queuedFrom` on; some may have left it. */
  readonly #queued: SharedQuery[] = [];
  #queuedFrom = 0;
  #waiting = 0;
  readonly #corks = new Corks();
  /** Releases the client of a query that had it to itself, in the state in which it was taken, and calls back. */
  readonly finishAlone = setRight;

  constructor(engine: ConnectionPool<PgConnection>, depth: number, pool: PipeliningPool) {
    this.#engine = engine;
    this.#depth = depth;
    this.#pool = pool;
    this.#open = Array.from({ length: depth + 1 }, () => new LinkedList<Lane>());
  }

  /** True if a query may share its connection. */
  takes(query: unknown): boolean {
    if (!this.#canShare) return false;
    if (typeof query === 'string') return statementKind(query) === 'shareable';
    if (typeof query !== 'object' || query === null) return false;
    const { text, submit, rows, query_timeout } = query as Record<string, unknown>;
    // Cursors and streams keep a portal open; a query timeout destroys the socket, with everyone's queries on it.
    if (submit !== undefined || rows || query_timeout) return false;
    return typeof text === 'string' && statementKind(text) === 'shareable';
  }

  submit(text: unknown, values: unknown, callback: QueryCallback): void {
    const query = new SharedQuery(this, text, values, callback);
    this.#makeWay();
    const pooled = this.#engine.tryTake();
    if (pooled !== undefined) {
      this.#canShare &&= canShare(pooled.connection.client);
      if (this.#canShare) this.#send(this.#openLane(pooled), query);
      else query.runAlone(pooled, this.#pool);
      return;
    }
    const lane = this.#leastLoaded();
    if (lane !== undefined && this.#engine.room === 0 && this.#engine.state === 'open') {
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

  granted(query: SharedQuery, pooled: Pooled): void {
    this.#leftQueue();
    this.#canShare &&= canShare(pooled.connection.client);
    if (!this.#canShare) {
      query.runAlone(pooled, this.#pool);
      return;
    }
    const lane = this.#openLane(pooled);
    this.#send(lane, query);
    this.#fill(lane);
  }

  failed(query: SharedQuery, error: Error): void {
    this.#leftQueue();
    query.context.runInAsyncScope(soon, undefined, () => query.deliver(error, undefined));
  }

  /** Handles an answer of the server. Sends other queries before calling the caller back, so that they leave with one packet. */
  answered(query: SharedQuery, lane: Lane, error: Error | null | undefined, result: unknown): void {
    lane.notice(error, query.isNamed);
    const isResent = !lane.isLost && query.changesForResending(error);
    this.#reload(lane, lane.load - 1);
    if (lane.failure !== undefined || this.#engine.wouldRetire(lane.pooled)) this.#beginClosing(lane, true);
    this.#makeWay();
    if (isResent) this.#send(lane, query);
    this.#fill(lane);
    if (lane.load === 0) this.#close(lane);
    if (!isResent) query.deliver(error, result);
  }

  // ---- lanes ------------------------------------------------------------------------------------------------------

  #openLane(pooled: Pooled): Lane {
    this.#engine.exemptFromLeaks(pooled);
    const client = this.#pool.checkOut(pooled);
    pooled.connection.isHeldByCaller = false;
    const lane = new Lane(pooled, client);
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

  /** Takes no more queries. For good, or until fewer callers wait for a connection of their own. */
  #beginClosing(lane: Lane, forGood: boolean): void {
    lane.endsForGood ||= forGood;
    if (lane.isClosing) return;
    this.#openAt(lane.load).remove(lane);
    lane.isClosing = true;
    this.#closing.pushTail(lane);
  }

  #close(lane: Lane): void {
    (lane.isClosing ? this.#closing : this.#openAt(lane.load)).remove(lane);
    lane.close();
  }

  /** Lets as many lanes run dry as callers wait for a connection of their own; lanes above that number take queries again. */
  #makeWay(): void {
    const wanted = this.#engine.waiting - this.#waiting;
    while (this.#closing.size < wanted) {
      const lane = this.#leastLoaded() ?? this.#openAt(this.#depth).head;
      if (lane === undefined) return;
      this.#beginClosing(lane, false);
    }
    for (const lane of this.#closing) {
      if (this.#closing.size <= wanted) return;
      if (lane.endsForGood || lane.load === 0) continue;
      lane.isClosing = false;
      this.#closing.remove(lane);
      this.#openAt(lane.load).pushTail(lane);
    }
  }

  // ---- the queue --------------------------------------------------------------------------------------------------

  /** Sends queries from the queue, but no more than the lane's share: other lanes will take the rest. */
  #fill(lane: Lane): void {
    if (this.#waiting === 0 || this.#engine.state === 'paused') return;
    const connections = this.#lanes + this.#engine.pending + this.#engine.room;
    const share = Math.min(
      this.#depth,
      Math.ceil((this.#underWay + this.#waiting) / Math.max(1, connections)),
    );
    while (!lane.isClosing && lane.load < share) {
      const query = this.#firstQueued();
      if (query === undefined) return;
      this.#engine.withdraw(query);
      this.#leftQueue();
      this.#send(lane, query);
    }
  }

  #firstQueued(): SharedQuery | undefined {
    this.#forgetAnswered();
    return this.#queued[this.#queuedFrom];
  }

  #leftQueue(): void {
    this.#waiting--;
    this.#forgetAnswered();
  }

  #forgetAnswered(): void {
    while (this.#queuedFrom < this.#queued.length && !this.#queued[this.#queuedFrom]?.queued)
      this.#queuedFrom++;
    const isWorthIt = this.#queuedFrom > 1_000 && this.#queuedFrom * 2 > this.#queued.length;
    if (this.#queuedFrom < this.#queued.length && !isWorthIt) return;
    this.#queued.splice(0, this.#queuedFrom);
    this.#queuedFrom = 0;
  }
}

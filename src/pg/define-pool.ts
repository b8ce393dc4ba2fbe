/**
 * The drop-in for pg.Pool: the visible behaviour of pg-pool, kept to the letter, on the engine.
 *
 * A function of the base class, because there are two: `pg.Pool`, so that `instanceof pg.Pool` holds, and plain
 * EventEmitter, for standing in for the pg-pool package underneath pg itself. Nothing of the base is used.
 */

import type { EventEmitter } from 'node:events';
import { ConnectionPool } from '../core/connection-pool.js';
import { PoolClosedError } from '../core/errors.js';
import type { Leases } from '../core/leases.js';
import type { PoolStats } from '../core/pool-stats.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import type { Duration } from '../kernel/duration.js';
import { detached } from '../runtime/detached.js';
import { rejectionOf } from '../runtime/promised-waiter.js';
import { soon } from '../runtime/soon.js';
import { systemAlarm, systemClock, systemRandom } from '../runtime/system.js';
import { throwLater } from '../runtime/throw-later.js';
import { resizePool, whenReady } from '../runtime/waiting.js';
import type { PgClient, PgClientClass, QueryCallback } from './client.js';
import { ClientCheckouts } from './client-checkouts.js';
import { ClientCounts } from './client-counts.js';
import { ConnectCalls } from './connect-calls.js';
import { asPromiseOf } from './own-promise.js';
import type { PgConnection } from './pg-connection.js';
import { type DialingPool, PgDialer } from './pg-dialer.js';
import type { ReleasableClient } from './pipelining-pool.js';
import { type ConnectCallback, PoolConnects } from './pool-connects.js';
import { type EndArgument, endPool } from './pool-end.js';
import type { ConnectionLife, ConnectOptions, PoolClass } from './pool-interface.js';
import { PgPoolListener } from './pool-listener.js';
import { resolvePoolOptions } from './pool-options.js';
import { type PoolParts, parts } from './pool-parts.js';
import { PoolQueries } from './pool-queries.js';
import { ClientWaiter } from './pool-waiters.js';
import { type PublicOptions, publicOptions } from './public-options.js';
import { type PoolMethods, ReplacedMethods } from './replaced-methods.js';

type EmitterClass = new (options?: object) => EventEmitter;

const noop = (): void => {};

export function definePool(Base: EmitterClass, loadClient: () => PgClientClass): PoolClass {
  const tracer = new ReplacedMethods(Base.prototype as PoolMethods);

  class Pool extends Base implements DialingPool {
    readonly options: PublicOptions;
    readonly log: (message: string, error?: Error) => void;
    readonly Client: PgClientClass;
    readonly Promise: PromiseConstructor;
    readonly name: string;
    readonly leases: Leases | undefined;
    readonly rateLimiter: RateLimiter | undefined;
    ending = false;
    ended = false;

    declare readonly [parts]: PoolParts<Pool>;

    constructor(options?: object | null, Client?: PgClientClass) {
      super(options ?? undefined);
      const given = { ...options } as Record<string, unknown>;
      const { policy, name, pipelineDepth, warnAfter, onOpenTransaction } = resolvePoolOptions(given);
      this.name = name;
      this.leases = policy.leases;
      this.rateLimiter = policy.rateLimiter;
      this.options = publicOptions(options as Record<string, unknown> | null | undefined, {
        read: () => engine.limit,
        write: (max) => this.resize(max),
      });
      this.log = (given['log'] as typeof this.log | undefined) || noop;
      // Only the pool pipelines; a checked-out client belongs to its caller and works as before.
      if (pipelineDepth > 0) this.options['pipeline'] = false;
      this.Client = ((given['Client'] as PgClientClass | undefined) ||
        Client ||
        loadClient()) as PgClientClass;
      this.Promise = (given['Promise'] as PromiseConstructor | undefined) || Promise;
      const noticesHolders = Number.isFinite(policy.leakThreshold);
      const dialer = new PgDialer(this);
      const engine = new ConnectionPool<PgConnection>({
        policy: detached(policy),
        dialer,
        clock: systemClock,
        alarm: systemAlarm,
        random: systemRandom,
        listener: new PgPoolListener(this, name),
        name,
        warnAfter,
      });
      dialer.answerTo(engine);
      const allowsExitOnIdle = Boolean(given['allowExitOnIdle']);
      const checkouts = new ClientCheckouts(this, engine, { allowsExitOnIdle, onOpenTransaction });
      const connects = new PoolConnects(engine, checkouts, { noticesHolders, ...own });
      const made: PoolParts<Pool> = {
        pool: this,
        engine,
        checkouts,
        queries: new PoolQueries(engine, checkouts, (text) => this.note(text), pipelineDepth),
        connects,
        calls: new ConnectCalls(this, tracer, connects),
        counts: new ClientCounts(engine, dialer),
        isPlain: !noticesHolders && this.Promise === Promise,
      };
      Object.defineProperty(this, parts, { value: made });
      // Not before the program had a chance to add its listeners.
      const opensByItself = policy.minIdle > 0 || policy.warmup !== undefined || policy.keeper !== undefined;
      if (opensByItself) soon(() => engine.start());
    }

    // ---- checking out ---------------------------------------------------------------------------------------------

    connect(first?: ConnectCallback | ConnectOptions, second?: ConnectCallback): unknown {
      const { engine, checkouts, calls, isPlain } = this[parts];
      if (first !== undefined || second !== undefined || !isPlain || this.ending || tracer.hasConnect)
        return calls.connect(first, second);
      // The fast path of the usual call, without the steps it does not need.
      const pooled = engine.tryTake();
      if (pooled !== undefined) return Promise.resolve(checkouts.checkOut(pooled));
      const timeoutMs = engine.usualTimeoutMs;
      return new ClientWaiter(checkouts.checkOut, undefined).wait(engine, timeoutMs, undefined);
    }

    tryConnect(): PgClient | undefined {
      return this.ending ? undefined : this[parts].connects.atOnce();
    }

    /** Called by pg-pool's own `connect`, which a tracer has called. */
    newClient({ callback }: { readonly callback: ConnectCallback }): void {
      this[parts].calls.newClient(callback);
    }

    /** For pg-pool's own `connect`: the pool can always take a new client. */
    _isFull(): boolean {
      return false;
    }

    // ---- queries --------------------------------------------------------------------------------------------------

    query(text: unknown, values?: unknown, callback?: QueryCallback): unknown {
      if (typeof text === 'function') {
        const error = new Error('Passing a function as the first parameter to pool.query is not supported');
        setImmediate(text as (error: Error) => void, error);
        return undefined;
      }
      const { queries, calls } = this[parts];
      if (tracer.hasQuery && !queries.isPipelined && !this.ending) {
        return calls.tracedQuery(text, values, callback);
      }
      if (typeof values === 'function') {
        submit(this, text, undefined, values as QueryCallback);
        return undefined;
      }
      if (callback !== undefined) {
        submit(this, text, values, callback);
        return undefined;
      }
      const answer = new Promise<unknown>((resolve) => {
        const settle: QueryCallback = (error, result) => resolve(error ? rejectionOf(error) : result);
        submit(this, text, values, settle, true);
      });
      return asPromiseOf(this, answer);
    }

    // ---- closing --------------------------------------------------------------------------------------------------

    end(first?: EndArgument): unknown {
      this.note('ending');
      const { pool, engine } = this[parts];
      return endPool(pool, engine, first);
    }

    async [Symbol.asyncDispose](): Promise<void> {
      if (!this.ending) await this.end();
    }

    // ---- steering and seeing --------------------------------------------------------------------------------------

    stats(): PoolStats {
      return this[parts].engine.stats();
    }

    lives(): IterableIterator<ConnectionLife> {
      return this[parts].counts.lives();
    }

    resize(max: number): void {
      resizePool(this[parts].engine, max);
    }

    pause(): void {
      this[parts].engine.pause();
    }

    resume(): void {
      this[parts].engine.resume();
    }

    ready(count?: number, options?: { readonly timeout?: Duration }): Promise<void> {
      return whenReady(this[parts].engine, count, options?.timeout);
    }

    get totalCount(): number {
      return this[parts].counts.total;
    }

    get idleCount(): number {
      return this[parts].counts.idle;
    }

    get waitingCount(): number {
      return this[parts].counts.waiting;
    }

    get expiredCount(): number {
      return this[parts].counts.expired;
    }

    get _clients(): PgClient[] {
      return this[parts].counts.clients();
    }

    /** Older programs read the lengths of these lists of pg-pool. Its own `connect`, called by a tracer, must find no idle client. */
    get _idle(): { readonly client: PgClient }[] {
      return tracer.hasConnect ? [] : this[parts].counts.idleItems();
    }

    get _pendingQueue(): object[] {
      return Array.from({ length: this.waitingCount }, () => ({}));
    }

    // The base class keeps its own lists, which are not used.
    set _clients(_: unknown) {}
    set _idle(_: unknown) {}
    set _pendingQueue(_: unknown) {}

    noticeHolders(): void {
      this[parts].connects.noticesHolders = true;
      this[parts].isPlain = false;
    }

    // ---- for the dialer -------------------------------------------------------------------------------------------

    tell(event: string, ...args: unknown[]): void {
      try {
        this.emit(event, ...args);
      } catch (error) {
        throwLater(error);
      }
    }

    note(message: string, error?: Error): void {
      if (this.log === noop) return;
      try {
        if (error === undefined) this.log(message);
        else this.log(message, error);
      } catch (thrown) {
        throwLater(thrown);
      }
    }
  }

  function submit(
    pool: Pool,
    text: unknown,
    values: unknown,
    callback: QueryCallback,
    isAwaited = false,
  ): void {
    const { queries } = pool[parts];
    // A query that shares a connection checks none out, whatever a tracer has put in the place of `connect`.
    const sharesIts = () => pool.connect === Pool.prototype.connect && queries.shares(text);
    if ((pool.connect !== own.connect || tracer.hasConnect) && !sharesIts()) {
      // A subclass or a tracer has its own way of checking out; it is meant for queries too.
      pool.connect((error, client) => {
        if (error) callback(error);
        else queries.run(client as ReleasableClient, text, values, callback);
      });
    } else if (pool.ending) callback(new PoolClosedError());
    else queries.submit(text, values, callback, isAwaited);
  }

  const { connect, tryConnect } = Pool.prototype;
  const own = { connect, tryConnect };
  return Pool as unknown as PoolClass;
}

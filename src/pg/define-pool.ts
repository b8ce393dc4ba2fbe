/**
 * The drop-in for pg.Pool: the visible behaviour of pg-pool, kept to the letter, on the engine.
 *
 * A function of the base class, because there are two: `pg.Pool`, so that `instanceof pg.Pool` holds, and plain
 * EventEmitter, for standing in for the pg-pool package underneath pg itself. Nothing of the base is used.
 */
import { EventEmitter } from 'node:events';
import { ConnectionPool } from '../core/connection-pool.js';
import { AcquireAbortedError, DoubleReleaseError, PoolClosedError } from '../core/errors.js';
import type { PoolStats } from '../core/pool-stats.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import type { Duration } from '../kernel/duration.js';
import { onAbort } from '../runtime/abort-listeners.js';
import { inPresentContext } from '../runtime/async-context.js';
import { detached } from '../runtime/detached.js';
import { rejectionOf } from '../runtime/promised-waiter.js';
import { systemAlarm, systemClock, systemRandom } from '../runtime/system.js';
import { throwLater } from '../runtime/throw-later.js';
import { readTimeout, readWait, resizePool, type Wait, whenReady } from '../runtime/waiting.js';
import {
  isInTransaction,
  isUsable,
  type PgClient,
  type PgClientClass,
  type QueryCallback,
} from './client.js';
import { TransactionLeftOpenError } from './errors.js';
import { disown } from './held-client.js';
import type { ReleasableClient } from './lane.js';
import { type OnOpenTransaction, rollBackFirst } from './open-transaction.js';
import type { PgConnection } from './pg-connection.js';
import { type DialingPool, PgDialer } from './pg-dialer.js';
import { Pipeline } from './pipeline.js';
import type { ConnectionLife, ConnectOptions, PoolClass } from './pool-interface.js';
import { PgPoolListener } from './pool-listener.js';
import { resolvePoolOptions } from './pool-options.js';
import { CallbackWaiter, ClientWaiter } from './pool-waiters.js';
import { type PublicOptions, publicOptions } from './public-options.js';
import { type PoolMethods, ReplacedMethods } from './replaced-methods.js';
import { isAnswer, setRight } from './session-guard.js';

type Pooled = PooledConnection<PgConnection>;
type ConnectCallback = (
  error: Error | undefined,
  client: PgClient | undefined,
  release: (error?: unknown) => void,
) => unknown;
type EmitterClass = new (options?: object) => EventEmitter;

/** A call on its way through a tracer. */
interface Entry {
  readonly options?: ConnectOptions | undefined;
  readonly isQuery?: boolean;
}

const noop = (): void => {};
const ownEmit = EventEmitter.prototype.emit;

export function definePool(Base: EmitterClass, loadClient: () => PgClientClass): PoolClass {
  const tracer = new ReplacedMethods(Base.prototype as PoolMethods);

  class Pool extends Base implements DialingPool {
    readonly options: PublicOptions;
    readonly log: (message: string, error?: Error) => void;
    readonly Client: PgClientClass;
    readonly Promise: PromiseConstructor;
    readonly name: string;
    ending = false;
    ended = false;

    readonly #engine: ConnectionPool<PgConnection>;
    readonly #dialer: PgDialer;
    readonly #pipeline: Pipeline | undefined = undefined;
    readonly #allowsExitOnIdle: boolean;
    readonly #onOpenTransaction: OnOpenTransaction;
    #noticesHolders: boolean;
    /** Callers are not recorded, and the program set no promise class of its own. */
    #isPlain: boolean;
    /** While a tracer's method runs: the arguments that its call can't carry. */
    #entering: Entry | undefined = undefined;
    constructor(options?: object | null, Client?: PgClientClass) {
      super(options ?? undefined);
      const given = { ...options } as Record<string, unknown>;
      const { policy, name, pipelineDepth, warnAfter, onOpenTransaction } = resolvePoolOptions(given);
      this.name = name;
      this.#onOpenTransaction = onOpenTransaction;
      this.options = publicOptions(options as Record<string, unknown> | null | undefined, {
        read: () => this.#engine.limit,
        write: (max) => this.resize(max),
      });
      this.log = (given['log'] as typeof this.log | undefined) || noop;
      // Only the pool pipelines; a checked-out client belongs to its caller and works as before.
      if (pipelineDepth > 0) this.options['pipeline'] = false;
      this.Client = ((given['Client'] as PgClientClass | undefined) ||
        Client ||
        loadClient()) as PgClientClass;
      this.Promise = (given['Promise'] as PromiseConstructor | undefined) || Promise;
      this.#allowsExitOnIdle = Boolean(given['allowExitOnIdle']);
      this.#noticesHolders = Number.isFinite(policy.leakThreshold);
      this.#isPlain = !this.#noticesHolders && this.Promise === Promise;
      this.#dialer = new PgDialer(this);
      this.#engine = new ConnectionPool<PgConnection>({
        policy: detached(policy),
        dialer: this.#dialer,
        clock: systemClock,
        alarm: systemAlarm,
        random: systemRandom,
        listener: new PgPoolListener(this, name),
        name,
        warnAfter,
      });
      this.#dialer.answerTo(this.#engine);
      if (pipelineDepth > 0) {
        this.#pipeline = new Pipeline(this.#engine, pipelineDepth, {
          checkOut: this.#checkOut,
          runAlone: (pooled, text, values, callback) => this.#runAlone(pooled, text, values, callback),
        });
      }
      // Not before the program had a chance to add its listeners.
      const opensByItself = policy.minIdle > 0 || policy.warmup !== undefined || policy.keeper !== undefined;
      if (opensByItself) process.nextTick(() => this.#engine.start());
    }

    // ---- checking out ---------------------------------------------------------------------------------------------

    connect(first?: ConnectCallback | ConnectOptions, second?: ConnectCallback): unknown {
      if (tracer.hasConnect && !this.ending) {
        const [options, callback] = typeof first === 'function' ? [undefined, first] : [first, second];
        return this.#entering === undefined
          ? this.#enter({ options }, () => tracer.connect(this, callback))
          : tracer.connect(this, callback);
      }
      if (first === undefined && second === undefined && this.#isPlain && !this.ending) {
        // The fast path of the usual call, without the steps it does not need.
        const pooled = this.#engine.tryTake();
        if (pooled !== undefined) return Promise.resolve(this.#checkOut(pooled));
        return new ClientWaiter(this.#checkOut, undefined).wait(
          this.#engine,
          this.#engine.usualTimeoutMs,
          undefined,
        );
      }
      const callback = typeof first === 'function' ? first : second;
      const options = typeof first === 'object' && first !== null ? first : undefined;
      if (callback !== undefined) return this.#connectWithCallback(callback, options);
      if (this.ending) return this.Promise.reject(new PoolClosedError());
      let wait: Wait;
      try {
        wait = this.#readWait(options);
      } catch (error) {
        return this.Promise.reject(error);
      }
      const holder = this.#noticesHolders ? new Error('taken here') : undefined;
      const pooled = wait.signal?.aborted ? undefined : this.#engine.tryTake(holder);
      if (pooled !== undefined) return this.Promise.resolve(this.#checkOut(pooled));
      const waiter = new ClientWaiter(this.#checkOut, holder);
      return this.#asPromise(waiter.wait(this.#engine, wait.timeoutMs, wait.signal));
    }

    tryConnect(): PgClient | undefined {
      if (this.ending) return undefined;
      const pooled = this.#engine.tryTake(this.#noticesHolders ? new Error('taken here') : undefined);
      return pooled === undefined ? undefined : this.#checkOut(pooled);
    }

    #enter(entry: Entry, call: () => unknown): unknown {
      this.#entering = entry;
      try {
        return call();
      } finally {
        this.#entering = undefined;
      }
    }

    /** Called by pg-pool's own `connect`, which a tracer has called. */
    newClient({ callback }: { readonly callback: ConnectCallback }): void {
      const entry = this.#entering;
      // Code in the program's hooks is not part of this call.
      this.#entering = undefined;
      this.#connectWithCallback(callback, entry?.options, entry?.isQuery);
    }

    /** For pg-pool's own `connect`: the pool can always take a new client. */
    _isFull(): boolean {
      return false;
    }

    /** The callback comes later in every case, and never from inside another caller's release. */
    #connectWithCallback(
      callback: ConnectCallback,
      options: ConnectOptions | undefined,
      isQuery = false,
    ): unknown {
      if (this.ending) return callback(new PoolClosedError(), undefined, noop);
      const fail = (error: Error): void => process.nextTick(callback, error, undefined, noop);
      const succeed = (pooled: Pooled): void => {
        if (isQuery) this.#engine.exemptFromLeaks(pooled);
        const client = this.#checkOut(pooled);
        process.nextTick(callback, undefined, client, client.release);
      };
      try {
        const wait = this.#readWait(options);
        const holder = this.#noticesHolders ? new Error('taken here') : undefined;
        const pooled = wait.signal?.aborted ? undefined : this.#engine.tryTake(holder);
        if (pooled !== undefined) succeed(pooled);
        else this.#enqueue(new CallbackWaiter(succeed, fail, holder), wait);
      } catch (error) {
        fail(error as Error);
      }
      return undefined;
    }

    #readWait(options: ConnectOptions | undefined): Wait {
      return readWait(options ?? {}, this.#engine.usualTimeoutMs);
    }

    #enqueue(waiter: CallbackWaiter, { timeoutMs, signal }: Wait): void {
      const leave = (): void => {
        this.#engine.abort(waiter, new AcquireAbortedError(signal?.reason));
      };
      if (signal !== undefined) waiter.onSettled = onAbort(signal, leave);
      this.#engine.enqueue(waiter, timeoutMs);
      if (signal?.aborted) leave();
    }

    /** Hands a connection to its caller: events, the release function, and errors from here on are the caller's. */
    readonly #checkOut = (pooled: Pooled): ReleasableClient => {
      const { connection, generation } = pooled;
      const client = connection.client as ReleasableClient;
      if (connection.isAnnounced) connection.isAnnounced = false;
      else if (this.#hears('acquire')) this.tell('acquire', client);
      connection.isHeldByCaller = true;
      client.release = (error?: unknown): void => this.#giveBack(pooled, generation, error);
      if (this.#allowsExitOnIdle) client.ref?.();
      return client;
    };

    #giveBack(pooled: Pooled, generation: number, error: unknown): void {
      const { connection } = pooled;
      const { client } = connection;
      if (connection.isRollingBack && pooled.generation === generation) throw new DoubleReleaseError();
      if ((pooled.state === 'lent' || pooled.isTakenAway) && pooled.generation === generation) {
        client._poolUseCount = (client._poolUseCount ?? 0) + 1;
        if (this.#hears('release')) this.tell('release', error, client);
        disown(connection);
        if (!isUsable(client)) this.#engine.broken(pooled, new Error('The client lost its connection.'));
      }
      // As in pg-pool, any truthy value condemns the client.
      const choice = this.#onOpenTransaction;
      const staysAsItIs = choice === 'keep' || Boolean(error) || pooled.state !== 'lent';
      if (staysAsItIs || !isUsable(client) || !isInTransaction(client))
        this.#comeBack(pooled, generation, error || undefined);
      else if (choice === 'discard') this.#comeBack(pooled, generation, new TransactionLeftOpenError());
      else
        rollBackFirst(connection, this.#engine.policy.checkTimeout, (failure) =>
          this.#comeBack(pooled, generation, failure),
        );
    }

    #comeBack(pooled: Pooled, generation: number, error: unknown): void {
      const { client } = pooled.connection;
      if (error) pooled.connection.isAnswering = isAnswer(error);
      this.#engine.release(pooled, generation, error);
      if (this.#allowsExitOnIdle && pooled.state === 'idle') client.unref?.();
    }

    // ---- queries --------------------------------------------------------------------------------------------------

    query(text: unknown, values?: unknown, callback?: QueryCallback): unknown {
      if (typeof text === 'function') {
        const error = new Error('Passing a function as the first parameter to pool.query is not supported');
        setImmediate(text as (error: Error) => void, error);
        return undefined;
      }
      if (tracer.hasQuery && this.#pipeline === undefined && !this.ending) {
        return this.#enter({ isQuery: true }, () => tracer.query(this, text, values, callback));
      }
      if (typeof values === 'function') {
        this.#submit(text, undefined, values as QueryCallback);
        return undefined;
      }
      if (callback !== undefined) {
        this.#submit(text, values, callback);
        return undefined;
      }
      const answer = new Promise<unknown>((resolve) => {
        this.#submit(text, values, (error, result) => resolve(error ? rejectionOf(error) : result));
      });
      return this.#asPromise(answer);
    }

    #submit(text: unknown, values: unknown, callback: QueryCallback): void {
      if ((this.connect !== ownConnect || tracer.hasConnect) && !this.#sharesIts(text)) {
        // A subclass or a tracer has its own way of checking out; it is meant for queries too.
        this.connect((error, client) => {
          if (error) callback(error);
          else this.#run(client as ReleasableClient, text, values, callback);
        });
        return;
      }
      if (this.ending) {
        callback(new PoolClosedError());
        return;
      }
      if (this.#pipeline?.takes(text)) {
        this.#pipeline.submit(text, values, callback);
        return;
      }
      const run = (pooled: Pooled): void => this.#runAlone(pooled, text, values, callback);
      const pooled = this.#engine.tryTake();
      if (pooled !== undefined) {
        run(pooled);
        return;
      }
      const fail = (error: Error): void => process.nextTick(callback, error);
      this.#enqueue(new CallbackWaiter(run, fail, undefined), this.#readWait(undefined));
    }

    /** A query that shares a connection checks none out, whatever a tracer has put in the place of `connect`. */
    #sharesIts(query: unknown): boolean {
      return this.connect === Pool.prototype.connect && this.#pipeline?.takes(query) === true;
    }

    #runAlone(pooled: Pooled, text: unknown, values: unknown, callback: QueryCallback): void {
      this.#engine.exemptFromLeaks(pooled);
      const client = this.#checkOut(pooled);
      pooled.connection.isHeldByCaller = false;
      this.#run(client, text, values, callback);
    }

    /** Runs one query on a client that is released before the caller learns the outcome. */
    #run(client: ReleasableClient, text: unknown, values: unknown, callback: QueryCallback): void {
      const { release } = client;
      let isOver = false;
      const finish = inPresentContext((error: Error | null | undefined, result?: unknown): void => {
        if (isOver) return;
        isOver = true;
        client.removeListener?.('error', finish);
        if (!error && this.#pipeline !== undefined) {
          // Other queries rely on an unchanged session.
          setRight(client, text, result, release, callback);
          return;
        }
        release(error);
        if (error) callback(error);
        else callback(undefined, result);
      });
      client.once?.('error', finish);
      this.note('dispatching query');
      try {
        (client.query as NonNullable<PgClient['query']>)(text, values, (error, result) => {
          this.note('query dispatched');
          finish(error, result);
        });
      } catch (error) {
        finish(error as Error);
      }
    }

    // ---- closing --------------------------------------------------------------------------------------------------

    end(first?: (() => void) | { readonly deadline?: Duration }): unknown {
      this.note('ending');
      const callback = typeof first === 'function' ? (first as (error?: Error) => void) : undefined;
      if (this.ending) {
        const error = new Error('Called end on pool more than once');
        return callback ? callback(error) : this.Promise.reject(error);
      }
      const deadline = typeof first === 'object' && first !== null ? first.deadline : undefined;
      let deadlineMs: number;
      try {
        deadlineMs = readTimeout(deadline, Number.POSITIVE_INFINITY, 'deadline');
      } catch (error) {
        return this.Promise.reject(error);
      }
      this.ending = true;
      const drained = (then: () => void): void => {
        this.#engine.drain(systemClock.now() + deadlineMs, () => {
          this.ended = true;
          then();
        });
      };
      if (callback === undefined) return this.#asPromise(new Promise<void>(drained));
      drained(inPresentContext(() => process.nextTick(callback)));
      return undefined;
    }

    async [Symbol.asyncDispose](): Promise<void> {
      if (!this.ending) await this.end();
    }

    // ---- steering and seeing --------------------------------------------------------------------------------------

    stats(): PoolStats {
      return this.#engine.stats();
    }

    *lives(): IterableIterator<ConnectionLife> {
      const now = systemClock.now();
      for (const { bornAt, lendUntil } of this.#engine.connections())
        yield { ageMs: now - bornAt, remainingMs: Math.max(0, lendUntil - now) };
    }

    resize(max: number): void {
      resizePool(this.#engine, max);
    }

    pause(): void {
      this.#engine.pause();
    }

    resume(): void {
      this.#engine.resume();
    }

    ready(count?: number, options?: { readonly timeout?: Duration }): Promise<void> {
      return whenReady(this.#engine, count, options?.timeout);
    }

    /** Connecting and live clients. Callers whose dial is held back count as connecting, as they would in pg-pool. */
    get totalCount(): number {
      return this.#engine.live + this.#engine.pending + this.#dialsToCome();
    }

    get idleCount(): number {
      return this.#engine.idle;
    }

    get waitingCount(): number {
      return Math.max(0, this.#engine.waiting - this.#engine.pending - this.#dialsToCome());
    }

    get expiredCount(): number {
      const now = systemClock.now();
      let expired = 0;
      for (const pooled of this.#engine.connections()) if (now >= pooled.expiresAt) expired++;
      return expired;
    }

    get _clients(): PgClient[] {
      return [
        ...this.#dialer.clients,
        ...Array.from(this.#engine.connections(), ({ connection }) => connection.client),
      ];
    }

    /** The base class keeps its own list, which is not used. */
    set _clients(_: PgClient[]) {}

    #dialsToCome(): number {
      const { waiting, pending, room, state } = this.#engine;
      return state === 'paused' ? 0 : Math.min(Math.max(0, waiting - pending), room);
    }

    /** From now on each checkout records where it was made. */
    noticeHolders(): void {
      this.#noticesHolders = true;
      this.#isPlain = false;
    }

    // ---- for the dialer -------------------------------------------------------------------------------------------

    tell(event: string, ...args: unknown[]): void {
      try {
        this.emit(event, ...args);
      } catch (error) {
        throwLater(error);
      }
    }

    /** Whether an event has a listener; a tracer may have replaced `emit`. */
    #hears(event: string): boolean {
      return this.listenerCount(event) > 0 || this.emit !== ownEmit;
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

    /** Converts to the promise class that the program has set. */
    #asPromise<T>(promise: Promise<T>): Promise<T> {
      return this.Promise === Promise ? promise : this.Promise.resolve(promise);
    }
  }

  const ownConnect = Pool.prototype.connect;
  return Pool as unknown as PoolClass;
}

/** The engine for programs: any kind of connection, in real time, with promises and AbortSignals. */
import { ConnectionPool } from '../core/connection-pool.js';
import { ForeignReleaseError } from '../core/errors.js';
import type { Leases } from '../core/leases.js';
import { type PolicyOptions, readPolicy } from '../core/pool-policy.js';
import type { PoolStats } from '../core/pool-stats.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';
import { ChannelPublisher } from './channels.js';
import { Checkout } from './checkout.js';
import { CheckoutWaiter } from './checkout-waiter.js';
import { detached } from './detached.js';
import { type ConnectionFunctions, PromiseDialer } from './promise-dialer.js';
import { usualWarnAfter } from './stuck-warning.js';
import { systemAlarm, systemClock, systemRandom } from './system.js';
import { drainPool, readWait, resizePool, whenReady } from './waiting.js';

/** The functions that handle connections, and the options of the pool. */
export interface PromisePoolOptions<C> extends PolicyOptions, ConnectionFunctions<C> {
  /**
   * When a caller, `ready()` or `drain()` has waited for this long, a process warning (`HG_POOL_STUCK`) gives the cause:
   * once, then summed. Default `5s`; 0: never.
   */
  readonly warnAfter?: Duration | undefined;
  /** Names the pool in metrics and messages. Default `pool`. */
  readonly name?: string | undefined;
}

/** Options of one checkout. */
export interface AcquireOptions {
  /** Time to wait, queue included; 0: for ever. Default: the pool's `acquireTimeout`. */
  readonly timeout?: Duration | undefined;
  /** Stops the wait. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A pool of any kind of connection that never holds more than `max`.
 *
 * @example
 * ```ts
 * import { connect, type Socket } from 'node:net';
 * import { once } from 'node:events';
 * import { PromisePool } from 'headgate/engine';
 *
 * const pool = new PromisePool<Socket>({
 *   connect: async ({ signal }) => {
 *     const socket = connect({ port: 7000, signal });
 *     await once(socket, 'connect');
 *     return socket;
 *   },
 *   close: (socket) => once(socket.end(), 'close'),
 *   destroy: (socket) => socket.destroy(),
 *   max: 10,
 * });
 *
 * const checkout = await pool.acquire({ timeout: '2s' });
 * checkout.connection.write('hello');
 * const [answer] = await once(checkout.connection, 'data');
 * checkout.release();
 * await pool.drain({ deadline: '10s' });
 * ```
 */
export class PromisePool<C> {
  readonly name: string;
  /** The budget above `max`, and the limiter of how fast connections are opened: those given as options. */
  readonly leases: Leases | undefined;
  readonly rateLimiter: RateLimiter | undefined;
  readonly #engine: ConnectionPool<C>;
  readonly #noticesHolders: boolean;

  constructor(options: PromisePoolOptions<C>) {
    const read = new OptionReader(options ?? {});
    // A socket keeps the program running by itself; waiting for an idle connection to be closed must not.
    const policy = readPolicy(read, false);
    this.name = read.string('name', 'pool');
    this.leases = policy.leases;
    this.rateLimiter = policy.rateLimiter;
    const warnAfter = read.duration('warnAfter', usualWarnAfter, Infinity);
    read.callback('connect', true);
    for (const optional of ['close', 'destroy', 'check']) read.callback(optional, false);
    if (options?.check === undefined && (policy.checkAfterIdle < Infinity || policy.keepalive < Infinity)) {
      read.problem('check', 'is missing: checkAfterIdle and keepalive need it');
    }
    read.refuseUnknown();
    read.throwIfAnyProblem();
    this.#noticesHolders = Number.isFinite(policy.leakThreshold);
    const dialer = new PromiseDialer<C>(options);
    this.#engine = new ConnectionPool<C>({
      policy: detached(policy),
      dialer,
      clock: systemClock,
      alarm: systemAlarm,
      random: systemRandom,
      listener: new ChannelPublisher<C>(this, this.name),
      name: this.name,
      warnAfter,
    });
    dialer.answerTo(this.#engine);
    this.#engine.start();
  }

  /** A ready connection, at once, or undefined. */
  tryAcquire(): Checkout<C> | undefined {
    const pooled = this.#engine.tryTake(this.#noticesHolders ? new Error('taken here') : undefined);
    return pooled === undefined ? undefined : new Checkout(this.#engine, pooled);
  }

  /** Checks out a connection, in the order of the callers. Rejects at the timeout, when the signal fires, or when none can be had. */
  acquire(options?: AcquireOptions): Promise<Checkout<C>> {
    const holder = this.#noticesHolders ? new Error('taken here') : undefined;
    const engine = this.#engine;
    if (options === undefined) {
      const pooled = engine.tryTake(holder);
      if (pooled !== undefined) return Promise.resolve(new Checkout(engine, pooled));
      return new CheckoutWaiter(engine, holder).wait(engine, engine.usualTimeoutMs, undefined);
    }
    try {
      const { timeoutMs, signal } = readWait(options, engine.usualTimeoutMs);
      const pooled = signal?.aborted ? undefined : engine.tryTake(holder);
      if (pooled !== undefined) return Promise.resolve(new Checkout(engine, pooled));
      return new CheckoutWaiter(engine, holder).wait(engine, timeoutMs, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Gives a checkout of this pool back, as `checkout.release(error)` does. */
  release(checkout: Checkout<C>, error?: unknown): void {
    if (!(checkout instanceof Checkout) || !checkout.isOf(this.#engine)) throw new ForeignReleaseError();
    checkout.release(error);
  }

  /** The numbers of this instant. */
  stats(): PoolStats {
    return this.#engine.stats();
  }

  /** Changes the limit. Connections above it are closed: idle ones now, those in use when they are released. */
  resize(max: number): void {
    resizePool(this.#engine, max);
  }

  /** Hands out nothing and opens nothing until `resume()`. Callers queue, and their timeouts go on. */
  pause(): void {
    this.#engine.pause();
  }

  resume(): void {
    this.#engine.resume();
  }

  /**
   * Opens connections until `count` exist (default: `minIdle`). Rejects when they don't within `timeout` (`30s`). With a
   * reservoir and without a `count`, it waits for the first fill, and when that takes too long it warns and goes on.
   */
  ready(count?: number, options?: { readonly timeout?: Duration }): Promise<void> {
    return whenReady(this.#engine, count, options?.timeout);
  }

  /**
   * Refuses new callers, serves the queue, and resolves when every connection is closed. At the deadline (default: none)
   * callers still in the queue are refused and connections still in use are destroyed.
   */
  drain(options?: { readonly deadline?: Duration }): Promise<void> {
    return drainPool(this.#engine, options?.deadline);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain();
  }
}

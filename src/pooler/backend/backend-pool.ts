/**
 * The server connections of one user in one database, on the engine. When something about them changes that the engine can't
 * change, another engine takes over: the old one hands out nothing any more, and its connections go as they come back. Both
 * together never have more connections than one may have.
 */
import { ConnectionPool } from '../../core/connection-pool.js';
import type { PoolPolicy } from '../../core/pool-policy.js';
import type { PoolStats } from '../../core/pool-stats.js';
import type { PooledConnection } from '../../core/pooled-connection.js';
import type { Waiter } from '../../core/waiters.js';
import { ChannelPublisher } from '../../runtime/channels.js';
import { systemAlarm, systemClock, systemRandom } from '../../runtime/system.js';
import type { PoolSettings } from '../config/pool-settings.js';
import type { SettingsRegistry } from '../settings.js';
import type { Backend } from './backend.js';
import { BackendCleaner } from './backend-cleaner.js';
import { BackendDialer, type OpenBackend } from './backend-dialer.js';
import { Canceller } from './canceller.js';
import { PoolTally } from './pool-tally.js';
import { StatementRegistry } from './prepared-statement.js';

/** How a pool works at the moment. */
export interface BackendPoolPlan {
  readonly limits: PoolSettings;
  readonly policy: PoolPolicy;
  readonly open: OpenBackend;
  readonly checkQuery: string;
  /** Forgets what a client left in a session beyond settings; empty for nothing. */
  readonly resetQuery: string;
  /** It is run after every transaction, too. */
  readonly resetsAlways: boolean;
  readonly cleaningTimeoutMs: number;
  readonly cancelTimeoutMs: number;
  /** Prepared statements follow the client. */
  readonly followsStatements: boolean;
  /** BEGIN is answered before there is a server. */
  readonly defersBegin: boolean;
}

const noDeadline = Number.POSITIVE_INFINITY;

export class BackendPool {
  readonly database: string;
  readonly user: string;
  readonly settings: SettingsRegistry;
  readonly statements = new StatementRegistry();
  readonly canceller: Canceller;
  readonly tally = new PoolTally();
  #plan: BackendPoolPlan;
  #engine: ConnectionPool<Backend>;
  /** Engines whose connections are yet to go. */
  readonly #former = new Set<ConnectionPool<Backend>>();
  /** The size, and the reserve as far as it is in use. */
  #limit: number;
  #parameters: ReadonlyMap<string, string> | undefined;
  #isPaused = false;

  constructor(database: string, user: string, settings: SettingsRegistry, plan: BackendPoolPlan) {
    this.database = database;
    this.user = user;
    this.settings = settings;
    this.#plan = plan;
    this.#limit = plan.limits.poolSize;
    this.canceller = new Canceller(this.#cancelOptions());
    this.#engine = this.#makeEngine();
  }

  get plan(): BackendPoolPlan {
    return this.#plan;
  }

  get limits(): PoolSettings {
    return this.#plan.limits;
  }

  get name(): string {
    return `${this.user}@${this.database}`;
  }

  /** What the server that was opened last has reported about a new session; undefined as long as there was none. */
  get parameters(): ReadonlyMap<string, string> | undefined {
    return this.#parameters;
  }

  // ---- taking and giving back -------------------------------------------------------------------------------------

  tryTake(): PooledConnection<Backend> | undefined {
    return this.#engine.tryTake();
  }

  enqueue(waiter: Waiter<Backend>, timeoutMs: number): void {
    this.#engine.enqueue(waiter, timeoutMs);
  }

  /** Takes a client out of the queue that does not want a connection any more; false when it has had its answer. */
  leave(waiter: Waiter<Backend>): boolean {
    if (this.#engine.withdraw(waiter)) return true;
    for (const engine of this.#former) if (engine.withdraw(waiter)) return true;
    return false;
  }

  /** Only one that is settled. */
  release(backend: Backend, generation: number): void {
    backend.home?.release(backend.pooled as PooledConnection<Backend>, generation);
  }

  /** It broke while a client had it. */
  lost(backend: Backend, generation: number, error: Error): void {
    const { pooled, home } = backend;
    home?.broken(pooled as PooledConnection<Backend>, error);
    home?.release(pooled as PooledConnection<Backend>, generation, error);
  }

  /** It can't be used any more, although it is still there. */
  discard(backend: Backend, generation: number, error: Error): void {
    backend.destroy(error);
    this.lost(backend, generation, error);
  }

  /** Its client is gone. `resets`: the client may have left more in the session than settings. */
  cleanUp(backend: Backend, generation: number, resets: boolean): void {
    const { resetQuery, cleaningTimeoutMs } = this.#plan;
    const isReset = resets && resetQuery !== '';
    if (backend.isSettled && !isReset && !backend.isInDoubt) {
      this.release(backend, generation);
      return;
    }
    const cleaner = new BackendCleaner(backend, {
      resetQuery: isReset ? resetQuery : undefined,
      timeoutMs: cleaningTimeoutMs,
      done: () => {
        this.tally.cleaned++;
        this.release(backend, generation);
      },
      failed: (error) => {
        this.tally.notCleaned++;
        this.discard(backend, generation, error);
      },
    });
    cleaner.begin();
  }

  // ---- control ----------------------------------------------------------------------------------------------------

  /** Works in another way from now on. `reconnects`: the connections that there are belong to the old way. */
  change(plan: BackendPoolPlan, reconnects: boolean): void {
    this.#plan = plan;
    this.canceller.change(this.#cancelOptions());
    if (reconnects) this.reconnect();
    this.setLimit(plan.limits.poolSize);
  }

  /** Every connection is replaced: idle ones now, the others when they come back. */
  reconnect(): void {
    const former = this.#engine;
    this.#former.add(former);
    this.#engine = this.#makeEngine();
    if (this.#isPaused) this.#engine.pause();
    former.drain(noDeadline, () => {
      this.#former.delete(former);
      this.#share();
    });
    this.#share();
  }

  /** A limit other than the size, while the reserve is in use. */
  setLimit(limit: number): void {
    this.#limit = limit;
    this.#share();
  }

  get limit(): number {
    return this.#limit;
  }

  /** The engine may have what its predecessors have given up. */
  #share(): void {
    const limit = this.#left();
    if (limit !== this.#engine.limit) this.#engine.resize(limit);
  }

  /** The limit, less what former engines hold. */
  #left(): number {
    let held = 0;
    for (const former of this.#former) {
      const { pending, live, closing } = former.counts();
      held += pending + live + closing;
    }
    return Math.max(0, this.#limit - held);
  }

  /** Closes idle connections for the sake of another pool; how many. */
  evictIdle(count: number): number {
    const { pending, live, idle } = this.#engine.counts();
    const evicted = Math.min(count, idle);
    if (evicted === 0) return 0;
    this.#engine.resize(Math.max(0, pending + live - evicted));
    this.#engine.resize(this.#left());
    return evicted;
  }

  /** Hands out nothing until `resume()`. */
  pause(): void {
    this.#isPaused = true;
    this.#engine.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#engine.resume();
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Takes no more callers, and closes all connections as they come back, at the deadline in any case. */
  drain(deadline: number, then: () => void): void {
    const engines = [this.#engine, ...this.#former];
    let left = engines.length;
    for (const engine of engines) {
      engine.drain(deadline, () => {
        if (--left === 0) then();
      });
    }
  }

  // ---- what can be seen -------------------------------------------------------------------------------------------

  stats(): PoolStats {
    return this.#engine.stats();
  }

  /** Connections of former engines that are still there. */
  get leaving(): number {
    let count = 0;
    for (const { live, pending } of this.#former) count += live + pending;
    return count;
  }

  get waiting(): number {
    return this.#engine.waiting;
  }

  get idle(): number {
    return this.#engine.idle;
  }

  get lastDialError(): Error | undefined {
    return this.#engine.lastDialError;
  }

  *backends(): IterableIterator<Backend> {
    for (const engine of [this.#engine, ...this.#former])
      for (const { connection } of engine.connections()) yield connection;
  }

  // ---- the engine -------------------------------------------------------------------------------------------------

  #makeEngine(): ConnectionPool<Backend> {
    const dialer = new BackendDialer(
      (signal) => this.#plan.open(signal),
      () => this.#plan.checkQuery,
    );
    const engine: ConnectionPool<Backend> = new ConnectionPool<Backend>({
      policy: this.#plan.policy,
      dialer,
      clock: systemClock,
      alarm: systemAlarm,
      random: systemRandom,
      listener: new EngineNotes(this, this.name, {
        opened: (pooled) => this.#opened(pooled, engine),
        closed: () => this.#closed(engine),
      }),
      name: this.name,
    });
    dialer.answerTo(engine);
    // Before it opens anything.
    if (engine.limit !== this.#left()) engine.resize(this.#left());
    engine.start();
    return engine;
  }

  #opened(pooled: PooledConnection<Backend>, engine: ConnectionPool<Backend>): void {
    const { connection: backend } = pooled;
    backend.pooled = pooled;
    backend.home = engine;
    this.#parameters = new Map(backend.parameters);
  }

  #closed(engine: ConnectionPool<Backend>): void {
    // Not from the middle of its decision.
    if (engine !== this.#engine) process.nextTick(() => this.#share());
  }

  #cancelOptions(): { readonly mostAtOnce: number; readonly timeoutMs: number } {
    const { cancelTimeoutMs, limits } = this.#plan;
    return { mostAtOnce: limits.poolSize, timeoutMs: cancelTimeoutMs };
  }
}

interface EngineEvents {
  opened(pooled: PooledConnection<Backend>): void;
  closed(): void;
}

/** Tells each backend which of the engine's connections it is. */
class EngineNotes extends ChannelPublisher<Backend> {
  readonly #events: EngineEvents;

  constructor(pool: object, name: string, events: EngineEvents) {
    super(pool, name);
    this.#events = events;
  }

  override opened(pooled: PooledConnection<Backend>, dialMs: number): void {
    this.#events.opened(pooled);
    super.opened(pooled, dialMs);
  }

  override closed(pooled: PooledConnection<Backend>): void {
    super.closed(pooled);
    this.#events.closed();
  }
}

/** The server connections of one user in one database, on the engine. */
import { ConnectionPool } from '../../core/connection-pool.js';
import type { PoolStats, PoolTotals } from '../../core/pool-stats.js';
import type { PooledConnection } from '../../core/pooled-connection.js';
import type { Waiter } from '../../core/waiters.js';
import { shortTurnClock, systemAlarm, systemRandom } from '../../runtime/system.js';
import type { PoolSettings } from '../config/pool-settings.js';
import type { OwnQueryError } from '../errors.js';
import type { Settings, SettingsRegistry } from '../settings/settings.js';
import type { Backend } from './backend.js';
import { BackendCleaner, type Cleaning, resetsOf } from './backend-cleaner.js';
import { BackendDialer } from './backend-dialer.js';
import { type BackendPoolPlan, cancellerOptions } from './backend-pool-plan.js';
import { Canceller } from './canceller.js';
import { ClassUsage } from './class-usage.js';
import { isDefiniteRefusal } from './definite-refusal.js';
import { type DialFailure, dialFailureOf } from './dial-failure.js';
import { type Engine, type EngineCounts, EngineGenerations } from './engine-generations.js';
import { EngineNotes } from './engine-notes.js';
import { Gathering } from './gathering.js';
import { Opening, type OpeningWatcher } from './opening.js';
import { PlainTexts } from './plain-texts.js';
import { PoolTally } from './pool-tally.js';
import { StatementRegistry } from './prepared-statement.js';
import type { PoolQueries } from './query-stats.js';
import { RepeatedStatements } from './repeated-statement.js';
import { StatementTimes } from './statement-times.js';
import { UsualParameters } from './usual-parameters.js';

export class BackendPool {
  readonly database: string;
  readonly user: string;
  readonly settings: SettingsRegistry;
  readonly statements = new StatementRegistry();
  readonly repeated = new RepeatedStatements(this.statements);
  readonly times = new StatementTimes();
  readonly gathering = new Gathering(this);
  readonly texts = new PlainTexts();
  readonly canceller: Canceller;
  readonly tally = new PoolTally();
  readonly classes: ClassUsage;
  /** Statistics of the pool's statements; undefined where none are kept. */
  queries: PoolQueries | undefined;
  /** Connected clients. */
  clients = 0;
  /** Called when the connect query of a new connection fails. */
  onConnectQueryFailed: ((error: OwnQueryError) => void) | undefined;
  /** Told of connections that are being opened. */
  openingWatcher: OpeningWatcher | undefined;
  /** Called the first time that a kind of statement is swallowed. */
  onSwallowed: ((what: string) => void) | undefined;
  /** Called when a server connection is given the settings of its next client. */
  onSettingsBrought: ((backend: Backend, from: Settings, to: Settings) => void) | undefined;
  readonly #dialers = new WeakMap<Engine, BackendDialer>();
  readonly #engines: EngineGenerations;
  #plan: BackendPoolPlan;
  readonly #parameters = new UsualParameters();

  constructor(database: string, user: string, settings: SettingsRegistry, plan: BackendPoolPlan) {
    this.database = database;
    this.user = user;
    this.settings = settings;
    this.#plan = plan;
    this.classes = new ClassUsage(plan.reservedRatio, this);
    this.canceller = new Canceller(cancellerOptions(plan));
    this.#boundStatements(plan);
    this.#engines = new EngineGenerations(plan.limits.poolSize, () => this.#makeEngine());
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

  /** Parameters reported most recently for a new session; undefined until a session was opened. */
  get parameters(): ReadonlyMap<string, string> | undefined {
    return this.#parameters.all;
  }

  // ---- taking and giving back -------------------------------------------------------------------------------------

  tryTake(): PooledConnection<Backend> | undefined {
    const pooled = this.#engines.present.tryTake();
    if (pooled?.connection.isLost !== true) return pooled;
    this.lost(pooled.connection, pooled.generation, lostWhileIdle());
    return this.tryTake();
  }

  /** More statements are under way than the pool has connections. */
  get isCrowded(): boolean {
    return this.#engines.present.isCrowdedWith(this.gathering.size);
  }

  /** Open connections, if no more may be opened. */
  get finalSize(): number | undefined {
    return this.#engines.present.finalSize;
  }

  enqueue(waiter: Waiter<Backend>, timeoutMs: number): void {
    this.#engines.enqueue(waiter, timeoutMs);
  }

  /** Removes from the queue a client that does not want a connection any more; false when it was already answered. */
  leave(waiter: Waiter<Backend>): boolean {
    return this.#engines.withdraw(waiter);
  }

  /** Releases a connection. It must be settled. */
  release(backend: Backend, generation: number): void {
    backend.home?.release(backend.pooled as PooledConnection<Backend>, generation);
  }

  /** The connection broke while a client used it. */
  lost(backend: Backend, generation: number, error: Error): void {
    const { pooled, home } = backend;
    home?.broken(pooled as PooledConnection<Backend>, error);
    home?.release(pooled as PooledConnection<Backend>, generation, error);
  }

  /** Retires a connection that is still open but unusable. It is closed in good order, and counts until the server has closed it. */
  discard(backend: Backend, generation: number, error: Error): void {
    this.lost(backend, generation, error);
  }

  /** Cleans a connection whose client has disconnected and may have left something in the session. */
  cleanUp(backend: Backend, generation: number, cleaning: Cleaning): void {
    const { resetQuery, isDsql, cleaningTimeoutMs } = this.#plan;
    const resets = resetsOf(resetQuery, cleaning, isDsql);
    if (backend.isSettled && resets.length === 0 && !backend.isInDoubt) {
      this.release(backend, generation);
      return;
    }
    const cleaner = new BackendCleaner(backend, {
      resets,
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

  /** Opens a connection for replication in the place of one that is closed, whose place in the pool is still taken. */
  async openReplication(
    place: Backend,
    parameters: ReadonlyMap<string, string>,
    signal: AbortSignal,
  ): Promise<Backend> {
    const opening = new Opening(signal, parameters);
    opening.watcher = this.openingWatcher;
    const backend = await this.#plan.open(opening);
    backend.replication?.claim(parameters);
    backend.pooled = place.pooled;
    backend.home = place.home;
    place.substitute = backend;
    return backend;
  }

  /** Counts a statement that the pooler answered because the server would refuse it. `what` has few distinct values. */
  swallowed(what: string): void {
    if (this.tally.swallowedOne(what)) this.onSwallowed?.(what);
  }

  // ---- control ----------------------------------------------------------------------------------------------------

  /** Changes the configuration. `reconnects`: existing connections belong to the old configuration and are replaced. */
  change(plan: BackendPoolPlan, reconnects: boolean): void {
    this.#plan = plan;
    this.#boundStatements(plan);
    this.canceller.change(cancellerOptions(plan));
    if (reconnects) this.#engines.renew(plan.closeReplacedAfterMs);
    else this.#engines.adjust(plan.policy);
    // Statements above the limit are closed along with the next that is prepared.
    for (const { statements } of this.backends()) statements.most = plan.mostStatements;
    this.setLimit(plan.limits.poolSize);
  }

  /** Named statements and unnamed ones get half of the limit each. */
  #boundStatements({ mostStatementBytes }: BackendPoolPlan): void {
    this.statements.mostUnusedBytes = this.repeated.mostBytes = mostStatementBytes / 2;
  }

  /** Replaces every connection: idle ones now, those in use when they are released. */
  reconnect(): void {
    this.#engines.renew();
  }

  /** Sets the connection limit: the size, or the size plus the reserve. */
  setLimit(limit: number): void {
    this.#engines.setLimit(limit);
  }

  /** Keeps this many connections open, of those that the policy says; none until this is called. */
  keep(count: number): void {
    this.#engines.keep(count);
  }

  /** Name of what the pool lacks beyond its own limit. */
  get shortage(): string | undefined {
    return this.#plan.shortage();
  }

  get limit(): number {
    return this.#engines.limit;
  }

  get isPaused(): boolean {
    return this.#engines.isPaused;
  }

  /** Hands out nothing until `resume()`. */
  pause(): void {
    this.#engines.pause();
  }

  resume(): void {
    this.#engines.resume();
  }

  /** Takes no more callers, and closes each connection when it is released, all of them at the deadline. */
  drain(deadline: number, then: () => void): void {
    this.#engines.drain(deadline, then);
  }

  // ---- statistics --------------------------------------------------------------------------------------------------

  stats(): PoolStats {
    return this.#engines.present.stats();
  }

  /** Waiting clients for which none is being opened, because the rate limiter has no permit. */
  get waitingForPermit(): number {
    return this.#engines.present.waitingForPermit;
  }

  /** Connections by state, including those that are to be replaced. */
  counts(): EngineCounts {
    return this.#engines.counts();
  }

  /** Totals since the pool was made, over all its engines. */
  totals(): PoolTotals {
    return this.#engines.totals();
  }

  /** Connections that are to be replaced and are still open. */
  get leaving(): number {
    return this.#engines.leaving;
  }

  /** No connection is open, and the last attempt to open one failed. */
  get isFailing(): boolean {
    const { present, isPaused } = this.#engines;
    return !isPaused && present.failedDials > 0 && present.counts().live === 0;
  }

  /** Error that fails new waiters at once: dials keep failing, and a probe by other waiters will show when that changes. */
  get outage(): Error | undefined {
    if (!this.isFailing) return undefined;
    const { breaker, pending } = this.stats();
    const isProbed = breaker === 'half_open' && pending > 0;
    return breaker === 'open' || isProbed ? this.#engines.present.lastDialError : undefined;
  }

  /** Why the last attempt to open a connection failed, until one succeeds. */
  get dialError(): Error | undefined {
    const { present } = this.#engines;
    return present.failedDials > 0 ? present.lastDialError : undefined;
  }

  /** Cause, code and message of `dialError`. */
  get dialFailure(): DialFailure | undefined {
    const error = this.dialError;
    return error && dialFailureOf(error);
  }

  /** True if anything could use a connection: connected clients or waiters. */
  get hasClients(): boolean {
    return this.clients > 0 || this.waiting > 0;
  }

  get waiting(): number {
    return this.#engines.present.waiting;
  }

  get idle(): number {
    return this.#engines.present.idle;
  }

  /** Statements queued behind those of other clients on the same connection. */
  get followers(): number {
    let count = 0;
    if (this.isUnconnected) return 0;
    for (const { followers } of this.backends()) count += followers.length;
    return count;
  }

  /** No connection is open. */
  get isUnconnected(): boolean {
    return this.#engines.isUnconnected;
  }

  /** No connection is open, opening or closing. */
  get isEmpty(): boolean {
    return this.#engines.isEmpty;
  }

  *backends(): IterableIterator<Backend> {
    for (const engine of this.#engines.all)
      for (const { connection } of engine.connections()) yield connection.substitute ?? connection;
  }

  /** Connections that are being opened. */
  *openings(): IterableIterator<Opening> {
    for (const engine of this.#engines.all) yield* this.#dialers.get(engine)?.openings() ?? [];
  }

  // ---- the engine -------------------------------------------------------------------------------------------------

  #makeEngine(): Engine {
    const dialer = new BackendDialer(
      (opening) => {
        opening.watcher = this.openingWatcher;
        return this.#plan.open(opening);
      },
      () => this.#plan.checkQuery,
    );
    const engine: Engine = new ConnectionPool<Backend>({
      policy: this.#plan.policy,
      dialer,
      clock: shortTurnClock,
      alarm: systemAlarm,
      random: systemRandom,
      listener: new EngineNotes(this, this.name, {
        opened: (pooled, dialMs) => this.#opened(pooled, dialMs, engine),
        closed: () => this.#closed(engine),
        dialFailed: (error) => this.#dialFailed(error, engine),
      }),
      name: this.name,
      queue: this.classes.makeQueue(),
    });
    dialer.answerTo(engine);
    this.#dialers.set(engine, dialer);
    return engine;
  }

  #opened(pooled: PooledConnection<Backend>, dialMs: number, engine: Engine): void {
    const { connection: backend } = pooled;
    this.tally.dialTimes.record(dialMs);
    backend.pooled = pooled;
    backend.home = engine;
    backend.onFlood = () => this.tally.limitReached('max_server_parameters_size');
    // Parameters of a replicating client are not the pool's.
    if (backend.replication === undefined) {
      backend.onReport = (name, value) =>
        this.#parameters.note([[name, value]], this.#plan.mostParameterBytes);
      this.#parameters.note(backend.parameters, this.#plan.mostParameterBytes);
    }
    // The connection was lost before the engine knew of it, or its own client is gone. Deferred, because the engine is in the
    // middle of a decision.
    if (backend.isLost)
      process.nextTick(() => {
        if (backend.isLost) engine.broken(pooled, lostWhileIdle());
      });
  }

  /** Fails waiting clients at once when the refusal is permanent, unless there are open connections to wait for. */
  #dialFailed(error: Error, engine: Engine): void {
    if (!isDefiniteRefusal(error)) return;
    // Deferred, because the engine is in the middle of a decision.
    process.nextTick(() => {
      const isPresent = engine === this.#engines.present && !this.#engines.isPaused;
      if (isPresent && engine.counts().live === 0) this.#engines.refuse(error);
    });
  }

  #closed(engine: Engine): void {
    // Deferred, because the engine is in the middle of a decision.
    if (engine !== this.#engines.present) process.nextTick(() => this.#engines.share());
  }
}

function lostWhileIdle(): Error {
  return new Error('The server closed the connection.');
}

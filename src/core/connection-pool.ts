/**
 * The engine: decides which caller gets which connection, and when connections are opened and closed. Clock, randomness
 * and dialer are passed in; their answers come back as calls. This file has the calls and their order; each decision is
 * a part of its own.
 *
 * - Only the ledger changes counts; a dial starts only with an approval.
 * - Every event that could help a caller ends in `#pump()`, which serves the queue and then opens what is missing.
 * - After `#pump()`: no caller waits while a usable connection is idle, and if a caller waits while a slot is free, a
 *   dial is under way or the alarm is set for the time when one may begin.
 */
import type { Clock, LongTurnListener } from '../kernel/clock.js';
import type { DialFailureCause } from './breaker.js';
import type { Checkouts } from './checkouts.js';
import type { Dial } from './dialer.js';
import type { Dialing } from './dialing.js';
import { PoolClosedError } from './errors.js';
import type { IdleConnections } from './idle-connections.js';
import type { LeaseHolder } from './leases.js';
import type { Ledger } from './ledger.js';
import type { LiveConnections } from './live-connections.js';
import { assemblePool, type PoolAssembly, type PoolParts } from './pool-assembly.js';
import { type AdjustablePolicy, adjustPolicy, type PoolPolicy } from './pool-policy.js';
import { PoolView } from './pool-view.js';
import type { PooledConnection } from './pooled-connection.js';
import type { ReadyRequest } from './readiness.js';
import type { DiscardReason } from './reasons.js';
import type { Retention } from './retention.js';
import type { ServiceState } from './service-state.js';
import type { Serving } from './serving.js';
import type { StuckWatch } from './stuck-watch.js';
import type { CallerQueue, Waiter } from './waiters.js';
import type { WakeUp } from './wake-up.js';

export type { PoolParts } from './pool-assembly.js';

export class ConnectionPool<C> extends PoolView<C> implements LongTurnListener, LeaseHolder {
  readonly name: string;
  readonly policy: PoolPolicy;
  protected readonly parts: PoolAssembly<C>;
  // The parts that a checkout or a release needs.
  readonly #clock: Clock;
  readonly #service: ServiceState<C>;
  readonly #waiters: CallerQueue<C>;
  readonly #checkouts: Checkouts<C>;
  readonly #connections: LiveConnections<C>;
  readonly #idle: IdleConnections<C>;
  readonly #ledger: Ledger;
  readonly #retention: Retention<C>;
  readonly #serving: Serving<C>;
  readonly #dialing: Dialing<C>;
  readonly #wakeUp: WakeUp;
  readonly #stuckWatch: StuckWatch<C> | undefined;

  /** The pool is open, within its limit, and no call asked for more connections: a release can take the short path. */
  #isOrdinary = true;
  #pumping = false;
  #pumpAgain = false;
  readonly #isPumpedAgain = (): boolean => this.#pumpAgain;

  constructor(given: PoolParts<C>) {
    super();
    this.name = given.name ?? 'pool';
    const parts = assemblePool(given, this, () => this.#tick());
    this.policy = parts.policy;
    this.parts = parts;
    this.#clock = parts.clock;
    this.#service = parts.service;
    this.#waiters = parts.waiters;
    this.#checkouts = parts.checkouts;
    this.#connections = parts.connections;
    this.#idle = parts.connections.idle;
    this.#ledger = parts.ledger;
    this.#retention = parts.retention;
    this.#serving = parts.serving;
    this.#dialing = parts.dialing;
    this.#wakeUp = parts.wakeUp;
    this.#stuckWatch = parts.stuckWatch;
  }

  // ---- calls from callers -----------------------------------------------------------------------------------------

  /** Opens the first spares, if any are wanted. Call once, when the dialer is ready to dial. */
  start(): void {
    if (this.#service.isEnding) return;
    const { refiller, random, listener, firstFill } = this.parts;
    const now = this.#clock.now();
    const warmup = refiller.start(now, random);
    if (warmup !== undefined) {
      this.#isOrdinary = false;
      listener?.filling(warmup);
    }
    this.#wakeUp.by(refiller.nextTickAt);
    if (firstFill !== undefined) this.#awaitReady(firstFill.begin(now));
    this.#pump();
  }

  /** The timeout of a caller that sets none. */
  get usualTimeoutMs(): number {
    const { acquireTimeout } = this.policy;
    const { firstFill } = this.parts;
    return firstFill === undefined || firstFill.isOver
      ? acquireTimeout
      : Math.max(acquireTimeout, firstFill.remainingMs);
  }

  /** Returns a ready connection at once, or none. `holder` names the caller in the report of a leak. */
  tryTake(holder?: unknown): PooledConnection<C> | undefined {
    const idle = this.#idle;
    // The queue comes first, even while it is being served.
    if (
      idle.size === 0 ||
      this.#waiters.servable > 0 ||
      !(this.#isOrdinary || this.#service.current === 'open')
    ) {
      this.#noteEmpty();
      return undefined;
    }
    const now = this.#clock.coarse();
    let connection = idle.next;
    if (connection === undefined || !this.#connections.isFresh(connection, now)) {
      connection = this.#connections.nextUsable(now, 1);
    }
    if (connection !== undefined) {
      idle.remove(connection);
      this.#checkouts.begin(connection, now, 0, holder, 0);
    } else {
      this.#noteEmpty();
    }
    if (idle.spares < this.policy.minIdle && this.#ledger.room > 0) this.#pump();
    return connection;
  }

  #noteEmpty(): void {
    const { tally, listener } = this.parts;
    tally.foundEmpty++;
    if (this.policy.reservoir !== undefined) listener?.foundEmpty();
  }

  /** Puts a caller into the queue. Whatever happens, the waiter gets exactly one answer. */
  enqueue(waiter: Waiter<C>, timeoutMs: number): void {
    if (this.#service.isEnding) {
      waiter.failed(new PoolClosedError());
      return;
    }
    // No idle connection and no free slot: only a release can help.
    const isFull = this.#idle.size === 0 && this.#ledger.room === 0 && this.#ledger.live > 0;
    const now = isFull ? this.#clock.arrival(this) : this.#clock.now();
    const deadline = now + timeoutMs;
    this.#waiters.add(waiter, now, deadline);
    this.#checkouts.noteDemand(this.#waiters.size);
    this.#wakeUp.by(deadline);
    if (this.#stuckWatch !== undefined) this.#stuckWatch.begin(now);
    if (isFull) {
      this.#wakeUp.setAwaited(true);
      return;
    }
    // Caller and dial get the same start time: with equal timeouts, both end together.
    this.#pump(now);
    if (waiter.queued && !waiter.isPatient && this.parts.dialOutcomes.isHopeless(now)) {
      this.#waiters.remove(waiter);
      waiter.failed(this.#dialing.connectFailed(now));
      this.#pump();
    }
  }

  /** Removes a caller from the queue; false if it has been answered already. */
  abort(waiter: Waiter<C>, error: Error): boolean {
    if (!waiter.queued) return false;
    this.#serving.abort(waiter, error);
    this.#pump();
    return true;
  }

  /** Removes from the queue a caller that was served in another way; false if it has been answered already. */
  withdraw(waiter: Waiter<C>): boolean {
    if (!waiter.queued) return false;
    this.#waiters.remove(waiter);
    this.#pump();
    return true;
  }

  /** Takes the first waiter out of the queue to share a connection until `shareEnded()`. Until then it counts as demand. */
  share(): void {
    this.#serving.shareFirst();
    if (this.#waiters.size === 0) this.#pump();
  }

  /** Takes all callers out of the queue, in the order in which they would have been served. None of them is answered. */
  withdrawAll(): Waiter<C>[] {
    const callers = [...this.#serving.takeAll()];
    this.#pump();
    return callers;
  }

  /** Ends the checkout that `generation` names. With an error the connection is not used again. */
  release(connection: PooledConnection<C>, generation: number, error?: unknown): void {
    if (this.#checkouts.isOver(connection, generation)) return;
    const now = this.#clock.coarse();
    this.#checkouts.end(connection, now);
    const reason =
      error === undefined && this.#isOrdinary && this.#retention.isKeepable(connection, now)
        ? undefined
        : this.#retention.reasonToRetire(connection, now, error);
    if (reason !== undefined) this.#connections.retire(connection, reason);
    else if (this.#waiters.servable > 0 && this.#service.current !== 'paused' && !this.#pumping) {
      this.#handOver(connection, now);
      return;
    } else {
      this.#connections.becomeIdle(connection, now);
      if (this.#isOrdinary && this.#waiters.servable === 0) return;
    }
    this.#pump();
  }

  /** True if a connection in use would be closed if it were released now. For callers that may keep it as long as they like. */
  wouldRetire(connection: PooledConnection<C>): boolean {
    return this.#retention.reasonToRetire(connection, this.#clock.coarse(), undefined) !== undefined;
  }

  /** A connection that the pool itself uses can't be forgotten: no leak, however long it takes. */
  exemptFromLeaks(connection: PooledConnection<C>): void {
    connection.leakReported = true;
  }

  resize(limit: number): void {
    this.#ledger.setLimit(limit);
    this.#shed('over_limit');
  }

  /** Closes the excess: idle connections now, those in use when they are released. */
  #shed(reason: DiscardReason): void {
    this.#isOrdinary = false;
    const idle = this.#idle;
    for (let c = idle.longestIdle; c !== undefined && this.parts.excess.exists; c = idle.longestIdle) {
      idle.remove(c);
      this.#connections.retire(c, reason);
    }
    this.parts.dialOutcomes.giveUpHanging(this.#clock.now());
    this.#pump();
  }

  /**
   * Caps the size that the `keeper` keeps and the `idleFloor` below which nothing is closed for idleness. Closes nothing
   * itself: the excess ends by its own timeouts.
   */
  keepAtMost(count: number): void {
    this.parts.refiller.keepAtMost(count);
    if (this.#service.current !== 'closed') this.#connections.rearm(this.#retention.isReapable());
  }

  /** Other numbers hold from now on, for the connections that there are, too. */
  adjust(numbers: AdjustablePolicy): void {
    adjustPolicy(this.parts.policy, numbers);
    this.#idle.order = numbers.idleOrder;
    this.parts.refiller.adjusted(this.#clock.now());
    if (this.#service.current === 'closed') return;
    this.#rearm();
    this.#pump();
  }

  /** Hands out nothing and opens nothing until `resume()`. Callers queue, and their deadlines run on. */
  pause(): void {
    if (this.#service.current !== 'open') return;
    this.#isOrdinary = false;
    this.#service.change('paused');
    this.#dialing.wantsNone();
  }

  resume(): void {
    if (this.#service.current !== 'paused') return;
    this.#service.change('open');
    this.#pump();
  }

  /** Opens connections until `request.target` exist, and answers. */
  whenReady(request: ReadyRequest): void {
    if (this.#service.isEnding) {
      request.missed();
      return;
    }
    this.#awaitReady(request);
    // A reservoir has its own timeout for the first fill.
    if (this.policy.reservoir === undefined) this.#stuckWatch?.readyAsked(this.#clock.now());
    this.#pump();
  }

  #awaitReady(request: ReadyRequest): void {
    this.parts.readiness.add(request);
    this.#isOrdinary = false;
    this.#wakeUp.by(request.deadline);
  }

  /**
   * Refuses new callers, serves the queue, closes every connection when it is released, and then calls `onDrained`. At
   * the deadline the queue is refused and connections still in use are destroyed.
   */
  drain(deadline: number, onDrained: () => void): void {
    if (this.#service.current === 'closed') {
      onDrained();
      return;
    }
    this.#isOrdinary = false;
    this.parts.draining.begin(deadline, () => {
      this.#stuckWatch?.stop();
      onDrained();
    });
    if (deadline === Infinity) this.#stuckWatch?.endBegan(this.#clock.now());
    this.#pump();
  }

  // ---- answers of the dialer --------------------------------------------------------------------------------------

  dialed(dial: Dial<C>, connection: C): void {
    const { dialOutcomes } = this.parts;
    const pooled = dialOutcomes.succeeded(dial, connection);
    if (pooled !== undefined) {
      this.#lendAtOnce(pooled);
      dialOutcomes.settleWarmup();
    }
    this.#pump();
  }

  /** `cause`: the kind of failure, where the dialer knows it. */
  dialFailed(dial: Dial<C>, error: Error, cause: DialFailureCause = 'connection_open'): void {
    this.parts.dialOutcomes.failed(dial, error, cause);
    this.#pump();
  }

  /**
   * Repeats a dial whose reason to fail no longer exists. The new dial takes its own lease and permit. Returns false if
   * this dial was already a second chance: then it has failed.
   */
  dialAgain(dial: Dial<C>): boolean {
    const { dialOutcomes } = this.parts;
    if (!dialOutcomes.grantSecondChance(dial)) return false;
    this.#pump();
    dialOutcomes.settleWarmup();
    return true;
  }

  /** The server has refused a dial because connections are opened too fast; the failure itself is answered as any other. */
  rateExceeded(): void {
    this.#dialing.rateExceeded(this.#clock.now());
  }

  leasesAvailable(): void {
    this.#dialing.leasesAvailable();
    this.#pump();
  }

  leasesGranted(count: number): number {
    return this.parts.leases.offer(count, () => {
      this.#dialing.leasesAvailable();
      this.#pump();
    });
  }

  leasesDelayed(reason: Error): void {
    this.#dialing.leaseDelayed(reason);
  }

  leasesRefused(error: Error): void {
    this.#dialing.leaseRefused(error, this.#clock.now());
    this.#pump();
  }

  leasesLost(count: number): void {
    this.parts.leases.lost(count);
    this.#shed('lease_lost');
  }

  leasesRecalled(count: number, hanging = 0): void {
    const { leases } = this.parts;
    leases.recalled = count;
    leases.hanging = hanging;
    this.#shed('lease_recalled');
  }

  /** The socket of a closing connection is closed. */
  closed(connection: PooledConnection<C>): void {
    this.#connections.closed(connection);
    this.#pump();
  }

  checked(connection: PooledConnection<C>, error?: Error): void {
    this.#connections.checked(connection, error, this.#retention.reasonNotToKeep());
    this.#lendAtOnce(connection);
    this.#pump();
  }

  /** Hands the connection to the first waiter: an idle one might have to be checked again before use. */
  #lendAtOnce(connection: PooledConnection<C>): void {
    const canServe = this.#waiters.servable > 0 && this.#service.current !== 'paused' && !this.#pumping;
    if (connection.state !== 'idle' || !canServe) return;
    this.#idle.remove(connection);
    this.#handOver(connection, this.#clock.now());
  }

  /** A connection failed by itself. One in use is retired when it comes back. Idle ones that are `doubted` are checked. */
  broken(connection: PooledConnection<C>, error: Error, doubted?: (idle: C) => boolean): void {
    this.#connections.broken(connection, error, doubted);
    this.#pump();
  }

  /** The socket of a connection in use is gone: its place is free, and the release that may follow does nothing. */
  lost(connection: PooledConnection<C>): void {
    if (connection.state !== 'in_use') return;
    this.#checkouts.cutShort(connection);
    this.#connections.destroy(connection, 'broken');
    this.#pump();
  }

  // ---- calls from the clock ---------------------------------------------------------------------------------------

  turnWasLong(turnBegan: number, turnEnded: number): void {
    this.#waiters.postpone(turnBegan, turnEnded);
  }

  // ---- serving ----------------------------------------------------------------------------------------------------

  /** The one place where waiting callers and missing connections are seen to. Safe to call at any time. */
  #pump(now?: number): void {
    if (this.#isQuiet()) {
      this.#dialing.wantsNone();
      if (this.#wakeUp.isAwaited) this.#wakeUp.setAwaited(false);
      return;
    }
    if (this.#pumping) {
      this.#pumpAgain = true;
      return;
    }
    const { growing, draining, readiness, refiller, excess } = this.parts;
    this.#pumping = true;
    try {
      do {
        this.#pumpAgain = false;
        if (this.#waiters.size > 0) this.#serving.serve();
        growing.grow(now, this.#isPumpedAgain);
        if (this.#service.current === 'draining') draining.closeUnneeded();
      } while (this.#pumpAgain);
    } finally {
      this.#pumping = false;
    }
    readiness.settle(this.#ledger.live, -Infinity);
    const state = this.#service.current;
    this.#isOrdinary = state === 'open' && readiness.size === 0 && !refiller.isBusy && !excess.exists;
    this.#wakeUp.setAwaited(this.#waiters.size > 0 || readiness.size > 0 || state === 'draining');
    if (state === 'draining') draining.finish();
  }

  /** No caller waits and no connection is missing: the usual case at a release. */
  #isQuiet(): boolean {
    if (!this.#isOrdinary || this.#waiters.size > 0) return false;
    return this.#idle.spares >= this.policy.minIdle || this.#ledger.room === 0;
  }

  /** Hands a released connection straight to the first waiter. What that caller does synchronously is handled afterwards. */
  #handOver(connection: PooledConnection<C>, now: number): void {
    this.#pumping = true;
    this.#pumpAgain = false;
    try {
      connection.aliveAt = now;
      this.#serving.grantToFirst(connection, now);
    } finally {
      this.#pumping = false;
    }
    if (this.#pumpAgain || this.#waiters.size === 0) this.#pump();
  }

  // ---- time -------------------------------------------------------------------------------------------------------

  #tick(): void {
    const now = this.#wakeUp.rang(this.#clock.now());
    const { dialOutcomes, growing, draining, readiness } = this.parts;
    // Dials first: a caller whose timeout has passed then finds the dial's slot free.
    dialOutcomes.timeOut(now);
    this.#serving.timeOut(now);
    this.#connections.timeOut(now);
    this.#connections.turn(now, this.parts.situation);
    this.#connections.reap(now, () => this.#retention.isReapable());
    this.#connections.keepAlive(now);
    this.#checkouts.reportLeaks(this.#connections.all(), now);
    if (growing.topUp(now)) this.#isOrdinary = false;
    readiness.settle(this.#ledger.live, now);
    if (now >= draining.deadline) draining.cutShort();
    this.#pump();
    if (this.#service.current !== 'closed') this.#rearm();
  }

  /** Sets the alarm for what is due next. Alarms for held back dials and possible leaks are already set. */
  #rearm(): void {
    const { readiness, draining, refiller } = this.parts;
    this.#wakeUp.by(this.#waiters.nextDeadline);
    this.#wakeUp.by(this.#dialing.dials.nextDeadline);
    this.#wakeUp.by(readiness.nextDeadline);
    this.#wakeUp.by(draining.deadline);
    this.#wakeUp.by(refiller.nextTickAt);
    this.#connections.rearm(this.#retention.isReapable());
  }
}

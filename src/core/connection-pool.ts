/**
 * The engine: who gets which connection, and when one is opened, checked and closed. It decides and does nothing else;
 * time, randomness and dialing are handed in, and their answers come back as calls.
 *
 * The rules it lives by:
 * - Counts change in the ledger alone; a dial starts only with an approval in hand.
 * - Every event that could help a caller ends in `#pump()`, which serves the queue and then opens what is missing.
 * - After `#pump()`: no one waits while a usable connection is idle, and if someone waits while there is room, a dial is
 *   under way or the alarm is set for the moment when one may begin.
 * - A connection that is idle, checking or closing is in the list of that name, and in no other.
 */
import type { Alarm, AlarmFactory, Clock } from '../kernel/clock.js';
import { Heap } from '../kernel/heap.js';
import { LinkedList } from '../kernel/linked-list.js';
import type { Random } from '../kernel/random.js';
import { Breaker } from './breaker.js';
import type { Dial, Dialer } from './dialer.js';
import { Dials } from './dials.js';
import {
  AcquireTimeoutError,
  CheckTimeoutError,
  ConnectFailedError,
  DialTimeoutError,
  DoubleReleaseError,
  PoolClosedError,
} from './errors.js';
import { bulk, trickle } from './growth.js';
import { IdleConnections } from './idle-connections.js';
import { Ledger } from './ledger.js';
import { drawLifetime } from './lifetime.js';
import type { PoolListener } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import type { PoolCounts, PoolState, PoolStats } from './pool-stats.js';
import { PooledConnection } from './pooled-connection.js';
import { Readiness, type ReadyRequest } from './readiness.js';
import type { DiscardReason } from './reasons.js';
import { Tally } from './tally.js';
import { type Waiter, Waiters } from './waiters.js';

export interface PoolParts<C> {
  readonly policy: PoolPolicy;
  readonly dialer: Dialer<C>;
  readonly clock: Clock;
  readonly alarm: AlarmFactory;
  readonly random: Random;
  readonly listener?: PoolListener<C> | undefined;
}

const never = Number.POSITIVE_INFINITY;

export class ConnectionPool<C> {
  readonly policy: PoolPolicy;
  readonly #dialer: Dialer<C>;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #listener: PoolListener<C> | undefined;
  readonly #findsLeaks: boolean;

  readonly #ledger: Ledger;
  readonly #dials: Dials<C>;
  readonly #breaker: Breaker;
  readonly #waiters = new Waiters<C>();
  readonly #idle: IdleConnections<C>;
  readonly #checking = new LinkedList<PooledConnection<C>>();
  readonly #closing = new LinkedList<PooledConnection<C>>();
  /** Live connections by the next turn of their life: entering the guard window, then reaching the end. */
  readonly #expiries = new Heap<PooledConnection<C>>();
  /** Every live connection, whatever it is doing. */
  readonly #all = new Set<PooledConnection<C>>();
  readonly #readiness = new Readiness();
  readonly #tally = new Tally();

  #state: PoolState = 'open';
  #lastId = 0;
  #lent = 0;
  #nextKeepaliveAt = never;
  #drainDeadline = never;
  #onDrained: (() => void)[] = [];
  #pumping = false;
  #pumpAgain = false;

  readonly #alarm: Alarm;
  #armedAt = never;
  #armedKeepsProcessAlive = false;

  constructor(parts: PoolParts<C>) {
    this.policy = parts.policy;
    this.#dialer = parts.dialer;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#listener = parts.listener;
    this.#findsLeaks = parts.policy.leakThreshold !== never;
    this.#ledger = new Ledger(parts.policy.max);
    this.#dials = new Dials<C>(parts.policy.dialTimeout, parts.policy.closeTimeout);
    this.#breaker = new Breaker(parts.policy, parts.random);
    this.#idle = new IdleConnections(parts.policy.idleOrder);
    this.#alarm = parts.alarm(() => this.#tick());
  }

  // ---- what callers ask -------------------------------------------------------------------------------------------

  /** Opens the first spares, if any are wanted. Call once, when the dialer is ready to dial. */
  start(): void {
    this.#pump();
  }

  /** A ready connection, at once, or none. `holder` says who takes it, for the report of a leak. */
  tryTake(holder?: unknown): PooledConnection<C> | undefined {
    // Who is in the queue comes first, even while it is being served.
    if (this.#idle.size === 0 || this.#waiters.size > 0 || this.#state !== 'open') return undefined;
    const now = this.#clock.coarse();
    const connection = this.#nextUsable(now);
    if (connection === undefined) return undefined;
    this.#idle.remove(connection);
    this.#lend(connection, now, 0, holder);
    if (this.#idle.spares < this.policy.minIdle) this.#pump();
    return connection;
  }

  /** Puts a caller into the queue. Whatever happens, the waiter gets exactly one answer. */
  enqueue(waiter: Waiter<C>, timeoutMs: number): void {
    if (this.#state === 'draining' || this.#state === 'closed') {
      waiter.failed(new PoolClosedError());
      return;
    }
    const now = this.#clock.now();
    const deadline = now + timeoutMs;
    this.#waiters.add(waiter, now, deadline);
    if (deadline < this.#armedAt) this.#arm(deadline);
    this.#pump();
    if (waiter.queued && this.#isHopeless(now)) {
      this.#waiters.remove(waiter);
      waiter.failed(this.#connectFailed(now));
    }
  }

  /** Takes a caller out of the queue; false when it has had its answer already. */
  abort(waiter: Waiter<C>, error: Error): boolean {
    if (!waiter.queued) return false;
    this.#waiters.remove(waiter);
    this.#tally.aborted++;
    this.#tally.waitedMs += this.#clock.now() - waiter.enqueuedAt;
    waiter.failed(error);
    this.#pump();
    return true;
  }

  /** Takes a caller out of the queue without an answer: it was served in another way. False when it has had one already. */
  withdraw(waiter: Waiter<C>): boolean {
    if (!waiter.queued) return false;
    this.#waiters.remove(waiter);
    this.#pump();
    return true;
  }

  /** Ends the checkout that `generation` names. With an error the connection is not used again. */
  release(connection: PooledConnection<C>, generation: number, error?: unknown): void {
    if (connection.state !== 'lent' || connection.generation !== generation) {
      // The pool itself may have ended the checkout, when the deadline of its draining passed.
      if (connection.reason === 'drain_deadline' && connection.generation === generation) return;
      throw new DoubleReleaseError();
    }
    const now = this.#clock.coarse();
    this.#lent--;
    if (this.#listener?.wantsReleases) this.#listener.released(connection, now - connection.lentAt);
    const reason = this.#reasonToRetire(connection, now, error);
    if (reason === undefined) this.#becomeIdle(connection, now);
    else this.#retire(connection, reason);
    this.#pump();
  }

  /** A new limit. What is above it is closed: idle connections now, lent ones when they come back. */
  resize(limit: number): void {
    this.#ledger.setLimit(limit);
    for (let c = this.#idle.longestIdle; c !== undefined && this.#isOverLimit(); c = this.#idle.longestIdle) {
      this.#idle.remove(c);
      this.#retire(c, 'over_limit');
    }
    this.#pump();
  }

  /** Hands out nothing and opens nothing until `resume()`. Callers queue, and their deadlines run on. */
  pause(): void {
    if (this.#state === 'open') this.#changeState('paused');
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#changeState('open');
    this.#pump();
  }

  /** Opens connections until `request.target` exist, and answers. */
  whenReady(request: ReadyRequest): void {
    if (this.#state === 'draining' || this.#state === 'closed') {
      request.missed();
      return;
    }
    this.#readiness.add(request);
    if (request.deadline < this.#armedAt) this.#arm(request.deadline);
    this.#pump();
  }

  /**
   * Takes no more callers, serves those in the queue, closes every connection as it comes back, and then calls
   * `onDrained`. At the deadline the queue is refused and what is still lent is destroyed.
   */
  drain(deadline: number, onDrained: () => void): void {
    if (this.#state === 'closed') {
      onDrained();
      return;
    }
    this.#onDrained.push(onDrained);
    this.#drainDeadline = Math.min(this.#drainDeadline, deadline);
    if (this.#state !== 'draining') this.#changeState('draining');
    if (this.#drainDeadline < this.#armedAt) this.#arm(this.#drainDeadline);
    this.#pump();
  }

  // ---- what the dialer answers ------------------------------------------------------------------------------------

  dialed(dial: Dial<C>, connection: C): void {
    const now = this.#clock.now();
    const was = this.#dials.answered(dial);
    if (was !== 'dialing') {
      this.#closeLate(dial, connection, now);
      return;
    }
    this.#breaker.succeeded();
    const expiresAt = now + drawLifetime(this.policy, this.#random);
    const pooled = new PooledConnection(connection, ++this.#lastId, now, expiresAt, dial.approval.commit());
    pooled.aliveAt = now;
    if (expiresAt !== never) this.#watchExpiry(pooled, expiresAt - this.policy.guardWindow);
    this.#all.add(pooled);
    this.#tally.opened++;
    this.#listener?.opened(pooled, now - dial.startedAt);
    const reason = this.#reasonNotToKeep();
    if (reason === undefined) this.#becomeIdle(pooled, now);
    else this.#retire(pooled, reason);
    this.#pump();
  }

  dialFailed(dial: Dial<C>, error: Error): void {
    const was = this.#dials.answered(dial);
    if (was === 'lost') return;
    if (was === 'abandoned') dial.slot?.free();
    else {
      dial.approval.rollback();
      this.#noteFailedDial(dial, error);
    }
    this.#pump();
  }

  /** The socket of a closing connection is gone. */
  closed(connection: PooledConnection<C>): void {
    if (connection.state !== 'closing') return;
    this.#closing.remove(connection);
    connection.state = 'gone';
    connection.slot?.free();
    this.#tally.closed++;
    this.#listener?.closed(connection);
    this.#pump();
  }

  checked(connection: PooledConnection<C>, error?: Error): void {
    if (connection.state !== 'checking') return;
    const now = this.#clock.now();
    this.#checking.remove(connection);
    if (error !== undefined) this.#retire(connection, 'failed_check');
    else {
      connection.aliveAt = now;
      const reason = now >= connection.expiresAt ? 'max_lifetime' : this.#reasonNotToKeep();
      if (reason !== undefined) this.#retire(connection, reason);
      else {
        this.#idle.putBack(connection);
        this.#planKeepalive(now);
      }
    }
    this.#pump();
  }

  /** A connection failed by itself. One that is lent is retired when it comes back. */
  broken(connection: PooledConnection<C>, error: Error): void {
    if (connection.state === 'lent') {
      connection.broken = error;
      return;
    }
    if (connection.state === 'idle') this.#idle.remove(connection);
    else if (connection.state === 'checking') this.#checking.remove(connection);
    else return;
    this.#retire(connection, 'broken');
    this.#pump();
  }

  // ---- what can be seen -------------------------------------------------------------------------------------------

  get state(): PoolState {
    return this.#state;
  }

  get limit(): number {
    return this.#ledger.limit;
  }

  get pending(): number {
    return this.#ledger.pending;
  }

  get live(): number {
    return this.#ledger.live;
  }

  get idle(): number {
    return this.#idle.size;
  }

  get lent(): number {
    return this.#lent;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** How many slots are free. */
  get room(): number {
    return this.#ledger.room;
  }

  /** Why the last dial failed, while dialing is failing. */
  get lastDialError(): Error | undefined {
    return this.#breaker.lastError;
  }

  counts(): PoolCounts {
    const { limit, pending, live, closing } = this.#ledger;
    const { idle, lent, waiting } = this;
    return { limit, pending, live, closing, idle, lent, checking: this.#checking.size, waiting };
  }

  stats(): PoolStats {
    return {
      ...this.counts(),
      state: this.#state,
      breaker: this.#breaker.state(this.#clock.now()),
      peak: this.#ledger.peak,
      totals: this.#tally.snapshot(),
    };
  }

  /** The live connections, in the order in which they were opened. */
  connections(): IterableIterator<PooledConnection<C>> {
    return this.#all.values();
  }

  // ---- serving and growing ----------------------------------------------------------------------------------------

  /** The one place where waiting callers and missing connections are seen to. Safe to call at any time. */
  #pump(): void {
    if (this.#isQuiet()) return;
    if (this.#pumping) {
      this.#pumpAgain = true;
      return;
    }
    this.#pumping = true;
    try {
      do {
        this.#pumpAgain = false;
        if (this.#waiters.size > 0) this.#serve();
        this.#grow();
        if (this.#state === 'draining') this.#closeUnneeded();
      } while (this.#pumpAgain);
    } finally {
      this.#pumping = false;
    }
    this.#readiness.settle(this.#ledger.live, Number.NEGATIVE_INFINITY);
    if (this.#state === 'draining') this.#finishDraining();
  }

  /** Nobody waits and nothing is missing: the usual case, when a connection comes back. */
  #isQuiet(): boolean {
    return (
      this.#waiters.size === 0 &&
      this.#state === 'open' &&
      this.#idle.spares >= this.policy.minIdle &&
      this.#readiness.size === 0
    );
  }

  #serve(): void {
    if (this.#state === 'paused') return;
    const now = this.#clock.coarse();
    while (this.#waiters.size > 0) {
      const connection = this.#nextUsable(now);
      if (connection === undefined) return;
      const waiter = this.#waiters.shift() as Waiter<C>;
      const waitMs = Math.max(0, now - waiter.enqueuedAt);
      this.#tally.waited++;
      this.#tally.waitedMs += waitMs;
      this.#idle.remove(connection);
      this.#lend(connection, now, waitMs, undefined);
      waiter.granted(connection);
    }
  }

  /** The next idle connection that can be lent as it is. Those past their end are retired on the way. */
  #nextUsable(now: number): PooledConnection<C> | undefined {
    for (;;) {
      const connection = this.#idle.next;
      if (connection === undefined) return undefined;
      if (now >= connection.expiresAt) {
        this.#idle.remove(connection);
        this.#retire(connection, 'max_lifetime');
        this.#pump();
      } else if (now - connection.aliveAt > this.policy.checkAfterIdle) {
        // As many checks as there are callers for their outcome, and one for a caller that is just asking.
        if (this.#checking.size >= Math.max(1, this.#waiters.size)) return this.#nextFresh(now);
        this.#beginCheck(connection, now);
      } else {
        return connection;
      }
    }
  }

  /** The next idle connection that needs no check, wherever it stands. */
  #nextFresh(now: number): PooledConnection<C> | undefined {
    return this.#idle.find((c) => now < c.expiresAt && now - c.aliveAt <= this.policy.checkAfterIdle);
  }

  #lend(connection: PooledConnection<C>, now: number, waitMs: number, holder: unknown): void {
    connection.state = 'lent';
    connection.generation++;
    connection.lentAt = now;
    this.#lent++;
    this.#tally.acquired++;
    if (this.#findsLeaks) {
      connection.holder = holder;
      connection.leakReported = false;
      this.#arm(now + this.policy.leakThreshold);
    }
    if (this.#listener?.wantsAcquires) this.#listener.acquired(connection, waitMs);
  }

  #becomeIdle(connection: PooledConnection<C>, now: number): void {
    connection.aliveAt = now;
    this.#idle.add(connection, now);
    const { idleTimeout, keepalive, idleKeepsProcessAlive } = this.policy;
    if (now + idleTimeout < this.#armedAt || this.#armedKeepsProcessAlive !== idleKeepsProcessAlive) {
      this.#arm(now + idleTimeout, idleKeepsProcessAlive && this.#isReapable());
    }
    if (now + keepalive < this.#nextKeepaliveAt) this.#planKeepalive(now);
  }

  /** A connection that has just shown that it works is due again after the interval. */
  #planKeepalive(aliveAt: number): void {
    this.#nextKeepaliveAt = Math.min(this.#nextKeepaliveAt, aliveAt + this.policy.keepalive);
    this.#arm(this.#nextKeepaliveAt);
  }

  #grow(): void {
    if (this.#state === 'paused' || this.#state === 'closed') return;
    for (;;) {
      const purpose = this.#reasonToDial();
      if (purpose === undefined || !this.#tryDial(purpose)) return;
    }
  }

  #reasonToDial(): 'caller' | 'spare' | undefined {
    const waiting = this.#waiters.size;
    const underWay = this.#dials.underWay + this.#checking.size;
    if (waiting > 0 && trickle(waiting, underWay) > 0) return 'caller';
    if (this.#state === 'draining') return undefined;
    const { minIdle } = this.policy;
    if (minIdle > 0 && bulk(minIdle, this.#idle.spares, waiting, underWay) > 0) return 'spare';
    const readyTarget = this.#readiness.target;
    if (readyTarget > 0 && readyTarget > this.#ledger.live + this.#dials.underWay) return 'spare';
    return undefined;
  }

  #tryDial(purpose: 'caller' | 'spare'): boolean {
    if (this.#dials.underWay >= this.policy.dialLimit || this.#ledger.room === 0) return false;
    const now = this.#clock.now();
    // Where a failure is the caller's own answer, only dials that nobody asked for are held back after one.
    const heldBack = this.policy.onDialFailure === 'retry' || purpose === 'spare';
    if (heldBack && !this.#breaker.allows(now, this.#dials.underWay)) {
      if (now < this.#breaker.retryAt) this.#arm(this.#breaker.retryAt);
      return false;
    }
    // Last, because a permit can't be given back.
    const waitMs = this.policy.rateLimiter?.take(now) ?? 0;
    if (waitMs > 0) {
      this.#arm(now + waitMs);
      return false;
    }
    const approval = this.#ledger.approve();
    if (approval === undefined) return false;
    const dial = this.#dials.begin(approval, now);
    if (!heldBack) this.#assign(dial);
    if (dial.deadline < this.#armedAt) this.#arm(dial.deadline);
    this.#dialer.dial(dial);
    return true;
  }

  /** Notes on whose behalf a dial is made: the first in the queue for whom none is under way. */
  #assign(dial: Dial<C>): void {
    let waiter = this.#waiters.first;
    while (waiter !== undefined && waiter.dial?.state === 'dialing') waiter = waiter.next;
    if (waiter === undefined) return;
    waiter.dial = dial;
    dial.waiter = waiter;
  }

  // ---- failures ---------------------------------------------------------------------------------------------------

  #noteFailedDial(dial: Dial<C>, error: Error): void {
    const now = this.#clock.now();
    this.#breaker.failed(error, now);
    this.#tally.dialsFailed++;
    this.#listener?.dialFailed(error, this.#breaker.failures, now - dial.startedAt);
    if (this.policy.onDialFailure === 'reject') {
      // The error is for the caller on whose behalf the dial was made, if that one still waits, and for nobody else.
      const { waiter } = dial;
      if (waiter?.queued) {
        this.#waiters.remove(waiter);
        waiter.failed(error);
      }
    } else if (this.#isHopeless(now)) {
      const failure = this.#connectFailed(now);
      for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift()) {
        waiter.failed(failure);
      }
    }
  }

  /** Dialing keeps failing, and there is no connection that could come back to serve a caller. */
  #isHopeless(now: number): boolean {
    return (
      this.policy.onDialFailure === 'retry' &&
      this.#state !== 'paused' &&
      this.#ledger.live === 0 &&
      this.#dials.underWay === 0 &&
      this.#breaker.state(now) === 'open'
    );
  }

  #connectFailed(now: number): ConnectFailedError {
    const { failures, retryAt, lastError } = this.#breaker;
    return new ConnectFailedError(failures, Math.max(0, retryAt - now), lastError as Error);
  }

  #closeLate(dial: Dial<C>, connection: C, now: number): void {
    const pooled = new PooledConnection(connection, ++this.#lastId, now, never, dial.slot);
    this.#tally.opened++;
    this.#tally.discarded.late_dial++;
    pooled.reason = 'late_dial';
    this.#listener?.discarded(pooled, 'late_dial');
    // The slot that a dial holds after it was abandoned is freed with the connection; a lost dial has none left.
    pooled.state = 'closing';
    pooled.deadline = now + this.policy.closeTimeout;
    this.#closing.pushTail(pooled);
    if (dial.slot === undefined) {
      this.#dialer.destroy(pooled);
      this.closed(pooled);
      return;
    }
    this.#arm(pooled.deadline);
    this.#dialer.close(pooled);
  }

  // ---- retiring ---------------------------------------------------------------------------------------------------

  #reasonToRetire(connection: PooledConnection<C>, now: number, error: unknown): DiscardReason | undefined {
    if (error !== undefined) return 'released_with_error';
    if (connection.broken !== undefined) return 'broken';
    if (connection.generation >= this.policy.maxUses) return 'max_uses';
    if (now >= connection.expiresAt) return 'max_lifetime';
    return this.#reasonNotToKeep();
  }

  /** What the pool as a whole has against one more idle connection. */
  #reasonNotToKeep(): DiscardReason | undefined {
    if (this.#state === 'draining' && this.#waiters.size === 0) return 'drained';
    return this.#isOverLimit() ? 'over_limit' : undefined;
  }

  /** Without what is being closed already: that will go by itself. */
  #isOverLimit(): boolean {
    return this.#ledger.pending + this.#ledger.live > this.#ledger.limit;
  }

  /** Begins to close a connection that has just left its list. It counts until it is gone. */
  #retire(connection: PooledConnection<C>, reason: DiscardReason): void {
    this.#markClosing(connection, reason);
    if (connection.deadline < this.#armedAt) this.#arm(connection.deadline);
    this.#dialer.close(connection);
  }

  #destroy(connection: PooledConnection<C>, reason: DiscardReason): void {
    this.#markClosing(connection, reason);
    this.#dialer.destroy(connection);
    this.closed(connection);
  }

  #markClosing(connection: PooledConnection<C>, reason: DiscardReason): void {
    this.#all.delete(connection);
    this.#expiries.remove(connection);
    connection.state = 'closing';
    connection.reason = reason;
    connection.deadline = this.#clock.now() + this.policy.closeTimeout;
    connection.slot?.beginClosing();
    this.#closing.pushTail(connection);
    this.#tally.discarded[reason]++;
    this.#listener?.discarded(connection, reason);
  }

  #beginCheck(connection: PooledConnection<C>, now: number): void {
    this.#idle.remove(connection);
    connection.state = 'checking';
    connection.deadline = now + this.policy.checkTimeout;
    this.#checking.pushTail(connection);
    this.#arm(connection.deadline);
    this.#dialer.check(connection);
  }

  #watchExpiry(connection: PooledConnection<C>, at: number): void {
    connection.heapKey = at;
    this.#expiries.push(connection);
    this.#arm(at);
  }

  // ---- closing down -----------------------------------------------------------------------------------------------

  #changeState(state: PoolState): void {
    this.#state = state;
    this.#listener?.stateChanged(state);
  }

  /** While draining: what no caller in the queue can have any more. */
  #closeUnneeded(): void {
    if (this.#waiters.size > 0) return;
    for (let c = this.#idle.longestIdle; c !== undefined; c = this.#idle.longestIdle) {
      this.#idle.remove(c);
      this.#retire(c, 'drained');
    }
    for (let dial = this.#dials.first(); dial !== undefined; dial = this.#dials.first()) {
      this.#dials.abandon(dial, this.#clock.now());
      this.#arm(dial.deadline);
      this.#dialer.abandon(dial);
    }
  }

  #finishDraining(): void {
    if (this.#waiters.size > 0 || this.#ledger.total > 0) return;
    this.#changeState('closed');
    this.#readiness.settle(0, never);
    this.#alarm.clear();
    for (const onDrained of this.#onDrained.splice(0)) onDrained();
  }

  #endDrainingNow(): void {
    this.#drainDeadline = never;
    for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift()) {
      waiter.failed(new PoolClosedError(': its deadline passed before a connection was free'));
    }
    for (const connection of [...this.#all]) {
      if (connection.state !== 'lent') continue;
      this.#lent--;
      this.#destroy(connection, 'drain_deadline');
    }
  }

  // ---- time -------------------------------------------------------------------------------------------------------

  /** Makes sure that the alarm rings at `at` or before. It may ring early; then it is set again. */
  #arm(at: number, keepsProcessAlive = false): void {
    if (this.#state === 'closed' || at === never) return;
    if (at >= this.#armedAt && (!keepsProcessAlive || this.#armedKeepsProcessAlive)) return;
    this.#armedAt = Math.min(at, this.#armedAt);
    this.#armedKeepsProcessAlive ||= keepsProcessAlive;
    this.#alarm.set(this.#armedAt, this.#armedKeepsProcessAlive);
  }

  #tick(): void {
    // Timers count in whole milliseconds: one that rings a fraction early is on time.
    const now = Math.max(this.#clock.now(), this.#armedAt);
    this.#armedAt = never;
    this.#armedKeepsProcessAlive = false;
    this.#timeOutWaiters(now);
    this.#timeOutDials(now);
    this.#timeOutChecks(now);
    this.#timeOutClosing(now);
    this.#turnExpiring(now);
    this.#reapIdle(now);
    this.#keepAlive(now);
    this.#reportLeaks(now);
    this.#readiness.settle(this.#ledger.live, now);
    if (now >= this.#drainDeadline) this.#endDrainingNow();
    this.#pump();
    this.#rearm();
  }

  #timeOutWaiters(now: number): void {
    for (let waiter = this.#waiters.shiftExpired(now); waiter; waiter = this.#waiters.shiftExpired(now)) {
      const waitMs = now - waiter.enqueuedAt;
      this.#tally.timedOut++;
      this.#tally.waitedMs += waitMs;
      this.#listener?.timedOut(waitMs);
      waiter.failed(new AcquireTimeoutError(waitMs, this.counts(), this.#breaker.lastError));
    }
  }

  #timeOutDials(now: number): void {
    for (let dial = this.#dials.nextOverdue(now); dial; dial = this.#dials.nextOverdue(now)) {
      this.#dials.abandon(dial, now);
      this.#noteFailedDial(dial, new DialTimeoutError(this.policy.dialTimeout));
      this.#dialer.abandon(dial);
    }
    this.#dials.loseOverdue(now);
  }

  #timeOutChecks(now: number): void {
    for (let c = this.#checking.head; c !== undefined && c.deadline <= now; c = this.#checking.head) {
      this.checked(c, new CheckTimeoutError(this.policy.checkTimeout));
    }
  }

  #timeOutClosing(now: number): void {
    for (let c = this.#closing.head; c !== undefined && c.deadline <= now; c = this.#closing.head) {
      this.#dialer.destroy(c);
      this.closed(c);
    }
  }

  #turnExpiring(now: number): void {
    for (let c = this.#expiries.peek(); c !== undefined && c.heapKey <= now; c = this.#expiries.peek()) {
      this.#expiries.remove(c);
      if (now < c.expiresAt) {
        if (c.state === 'idle') this.#idle.markExpiring(c);
        else c.expiring = true;
        this.#watchExpiry(c, c.expiresAt);
      } else if (c.state === 'idle') {
        this.#idle.remove(c);
        this.#retire(c, 'max_lifetime');
      }
    }
  }

  #isReapable(): boolean {
    return (
      this.#idle.spares > this.policy.minIdle &&
      this.#ledger.pending + this.#ledger.live > this.policy.idleFloor
    );
  }

  #reapIdle(now: number): void {
    for (let c = this.#idle.longestIdle; c !== undefined && this.#isReapable(); c = this.#idle.longestIdle) {
      if (c.idleSince + this.policy.idleTimeout > now) return;
      this.#idle.remove(c);
      this.#retire(c, 'idle_timeout');
    }
  }

  #keepAlive(now: number): void {
    if (now < this.#nextKeepaliveAt) return;
    const due = [...this.#idle].filter((connection) => connection.aliveAt + this.policy.keepalive <= now);
    for (const connection of due) {
      // The answer to an earlier check may have changed what this one is doing.
      if (connection.state === 'idle') this.#beginCheck(connection, now);
    }
    this.#nextKeepaliveAt = never;
    for (const connection of this.#idle) this.#planKeepalive(connection.aliveAt);
  }

  #reportLeaks(now: number): void {
    if (!this.#findsLeaks) return;
    for (const connection of this.#all) {
      const heldMs = now - connection.lentAt;
      if (connection.state !== 'lent' || connection.leakReported) continue;
      if (heldMs < this.policy.leakThreshold) {
        this.#arm(connection.lentAt + this.policy.leakThreshold);
        continue;
      }
      connection.leakReported = true;
      this.#tally.leaks++;
      this.#listener?.leaked(connection, heldMs);
    }
  }

  /**
   * After the alarm rang: the next time at which anything is due. What holds a dial back has been armed by `#grow`, the
   * next leak by `#reportLeaks`.
   */
  #rearm(): void {
    this.#arm(this.#waiters.nextDeadline);
    this.#arm(this.#dials.nextDeadline);
    this.#arm(this.#checking.head?.deadline ?? never);
    this.#arm(this.#closing.head?.deadline ?? never);
    this.#arm(this.#expiries.peek()?.heapKey ?? never);
    this.#arm(this.#nextKeepaliveAt);
    this.#arm(this.#readiness.nextDeadline);
    this.#arm(this.#drainDeadline);
    const longestIdle = this.#idle.longestIdle;
    if (longestIdle !== undefined && this.#isReapable()) {
      this.#arm(longestIdle.idleSince + this.policy.idleTimeout, this.policy.idleKeepsProcessAlive);
    }
  }
}

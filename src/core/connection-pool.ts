/**
 * The engine: who gets which connection, and when one is opened and closed. It decides and does nothing else; time,
 * randomness and dialing are handed in, and their answers come back as calls.
 *
 * The rules it lives by:
 * - Counts change in the ledger alone; a dial starts only with an approval in hand.
 * - Every event that could help a caller ends in `#pump()`, which serves the queue and then opens what is missing.
 * - After `#pump()`: no one waits while a usable connection is idle, and if someone waits while there is room, a dial is
 *   under way or the alarm is set for the moment when one may begin.
 */
import type { AlarmFactory, Clock, LongTurnListener } from '../kernel/clock.js';
import type { Random } from '../kernel/random.js';
import type { DialFailureCause } from './breaker.js';
import type { Dial, Dialer } from './dialer.js';
import { Dialing } from './dialing.js';
import { hangsAfterMs } from './dials.js';
import {
  AcquireTimeoutError,
  DialTimeoutError,
  DoubleReleaseError,
  PoolClosedError,
  ReservoirEmptyError,
} from './errors.js';
import { Fleet } from './fleet.js';
import { LeaseAccount } from './lease-account.js';
import type { LeaseHolder } from './leases.js';
import { Ledger } from './ledger.js';
import { drawLifetime } from './lifetime.js';
import type { FillProgress, PoolListener } from './pool-listener.js';
import type { AdjustablePolicy, PoolPolicy } from './pool-policy.js';
import type { PoolCounts, PoolState, PoolStats } from './pool-stats.js';
import type { PooledConnection } from './pooled-connection.js';
import { Readiness, type ReadyRequest } from './readiness.js';
import type { DiscardReason, RefillCause } from './reasons.js';
import { type DialPurpose, Refiller } from './refiller.js';
import type { ReservoirPolicy } from './reservoir.js';
import { ScanSituation } from './scan-situation.js';
import { Tally } from './tally.js';
import { type CallerQueue, type Waiter, Waiters } from './waiters.js';
import { WakeUp } from './wake-up.js';

export interface PoolParts<C> {
  readonly policy: PoolPolicy;
  readonly dialer: Dialer<C>;
  readonly clock: Clock;
  readonly alarm: AlarmFactory;
  readonly random: Random;
  readonly listener?: PoolListener<C> | undefined;
  /** Names the pool where it asks for leases. */
  readonly name?: string | undefined;
  /** An empty queue for the callers. Default: the longest wait comes first. */
  readonly queue?: CallerQueue<C> | undefined;
}

const never = Number.POSITIVE_INFINITY;

export class ConnectionPool<C> implements LongTurnListener, LeaseHolder {
  readonly name: string;
  readonly policy: PoolPolicy;
  readonly #adjustable: { -readonly [Name in keyof PoolPolicy]: PoolPolicy[Name] };
  readonly #dialer: Dialer<C>;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #listener: PoolListener<C> | undefined;
  readonly #findsLeaks: boolean;
  /** With so many ready, the next that comes back is one too many. */
  readonly #enoughReady: number;

  readonly #leases: LeaseAccount;
  readonly #ledger: Ledger;
  readonly #wakeUp: WakeUp;
  readonly #fleet: Fleet<C>;
  readonly #dialing: Dialing<C>;
  readonly #refiller: Refiller;
  readonly #situation: ScanSituation<C>;
  readonly #waiters: CallerQueue<C>;
  readonly #readiness = new Readiness();
  readonly #tally = new Tally();

  #state: PoolState = 'open';
  #lent = 0;
  /** The highest lent + waiting since it was last asked for. Only a checkout and an arrival in the queue raise the sum. */
  #demandPeak = 0;
  /** A reservoir is being filled for the first time, or is about to be. */
  #isFilling: boolean;
  #fillDeadline = never;
  #drainDeadline = never;
  #onDrained: (() => void)[] = [];
  #openedAt: number | undefined;
  /** In service, within the limit, and nobody asked for more connections: then a release is a simple thing. */
  #isOrdinary = true;
  #pumping = false;
  #pumpAgain = false;

  constructor(parts: PoolParts<C>) {
    const { dialer, clock, random, listener } = parts;
    this.name = parts.name ?? 'pool';
    // All parts of the engine have this one, and none of them keeps a number of it that can be adjusted.
    this.policy = this.#adjustable = { ...parts.policy };
    const { policy } = this;
    this.#dialer = dialer;
    this.#clock = clock;
    this.#random = random;
    this.#waiters = parts.queue ?? new Waiters<C>();
    this.#listener = listener;
    this.#openedAt = undefined;
    this.#findsLeaks = policy.leakThreshold !== never;
    this.#isFilling = policy.reservoir !== undefined;
    this.#enoughReady = policy.reservoir?.targetReady ?? never;
    this.#leases = new LeaseAccount(policy.leases, this);
    this.#ledger = new Ledger(policy.max, () => {
      if (this.#leases.slotFreed()) this.#dialing.leaseGivenBack();
    });
    this.#wakeUp = new WakeUp(parts.alarm, () => this.#tick());
    this.#refiller = new Refiller(policy);
    this.#dialing = new Dialing<C>({
      policy,
      ledger: this.#ledger,
      leases: this.#leases,
      wakeUp: this.#wakeUp,
      random,
      heldBack: (cause, error, failures) => this.#noteRefillFailure(cause, error, failures),
    });
    this.#fleet = new Fleet<C>({ policy, dialer, clock, wakeUp: this.#wakeUp, tally: this.#tally, listener });
    this.#situation = new ScanSituation<C>(policy, this.#ledger, this.#fleet, this.#dialing);
  }

  // ---- what callers ask -------------------------------------------------------------------------------------------

  /** Opens the first spares, if any are wanted. Call once, when the dialer is ready to dial. */
  start(): void {
    if (this.#isEnding()) return;
    const now = this.#clock.now();
    const warmup = this.#refiller.start(now, this.#random);
    if (warmup !== undefined) {
      this.#isOrdinary = false;
      this.#listener?.filling(warmup);
    }
    this.#wakeUp.by(this.#refiller.nextTickAt);
    if (this.policy.reservoir !== undefined) this.#fill(now);
    this.#pump();
  }

  /** The first fill of the reservoir: callers may wait for it longer than for anything later. */
  #fill(now: number): void {
    const { lowWatermark: target, initialFillTimeout } = this.policy.reservoir as ReservoirPolicy;
    const tell = (phase: FillProgress['phase']): void => {
      const elapsedMs = this.#clock.now() - now;
      const failed = this.#tally.dialsFailed;
      this.#listener?.filling({ kind: 'reservoir', phase, size: this.live, target, failed, elapsedMs });
    };
    const end = (phase: FillProgress['phase']): void => {
      this.#isFilling = false;
      if (!this.#isEnding()) tell(phase);
    };
    this.#fillDeadline = now + initialFillTimeout;
    tell('started');
    this.whenReady({
      target,
      deadline: this.#fillDeadline,
      reached: () => end('complete'),
      missed: () => end('timeout'),
    });
  }

  /** How long a caller waits who says nothing about it. */
  get usualTimeoutMs(): number {
    const { acquireTimeout, reservoir } = this.policy;
    if (!this.#isFilling) return acquireTimeout;
    const { initialFillTimeout } = reservoir as ReservoirPolicy;
    return Math.max(acquireTimeout, Math.min(initialFillTimeout, this.#fillDeadline - this.#clock.now()));
  }

  /** A ready connection, at once, or none. `holder` says who takes it, for the report of a leak. */
  tryTake(holder?: unknown): PooledConnection<C> | undefined {
    const { idle } = this.#fleet;
    // Who is in the queue comes first, even while it is being served.
    if (idle.size === 0 || this.#waiters.size > 0 || this.#state !== 'open') {
      this.#noteEmpty();
      return undefined;
    }
    const now = this.#clock.coarse();
    let connection = idle.next;
    if (connection === undefined || !this.#fleet.isFresh(connection, now)) {
      connection = this.#fleet.nextUsable(now, 1);
    }
    if (connection !== undefined) {
      idle.remove(connection);
      this.#lend(connection, now, 0, holder);
    } else {
      this.#noteEmpty();
    }
    if (idle.spares < this.policy.minIdle && this.#ledger.room > 0) this.#pump();
    return connection;
  }

  #noteEmpty(): void {
    this.#tally.foundEmpty++;
    if (this.policy.reservoir !== undefined) this.#listener?.foundEmpty();
  }

  /** Puts a caller into the queue. Whatever happens, the waiter gets exactly one answer. */
  enqueue(waiter: Waiter<C>, timeoutMs: number): void {
    if (this.#isEnding()) {
      waiter.failed(new PoolClosedError());
      return;
    }
    // Nothing to serve with and no room to grow: only someone who gives back can help.
    const isFull = this.#fleet.idle.size === 0 && this.#ledger.room === 0 && this.#ledger.live > 0;
    const now = isFull ? this.#clock.arrival(this) : this.#clock.now();
    const deadline = now + timeoutMs;
    this.#waiters.add(waiter, now, deadline);
    const demand = this.#lent + this.#waiters.size;
    if (demand > this.#demandPeak) this.#demandPeak = demand;
    if (deadline < this.#wakeUp.at) this.#wakeUp.by(deadline);
    if (isFull) {
      this.#wakeUp.setAwaited(true);
      return;
    }
    // The same moment for the caller and for its dial: with equal timeouts, both end together.
    this.#pump(now);
    if (waiter.queued && !waiter.isPatient && this.#isHopeless(now)) {
      this.#waiters.remove(waiter);
      waiter.failed(this.#dialing.connectFailed(now));
      this.#pump();
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

  /** Takes a caller out of the queue that was served in another way; false when it has had its answer already. */
  withdraw(waiter: Waiter<C>): boolean {
    if (!waiter.queued) return false;
    this.#waiters.remove(waiter);
    this.#pump();
    return true;
  }

  /** Takes all callers out of the queue, in the order in which they would have been served. None of them is answered. */
  withdrawAll(): Waiter<C>[] {
    const callers: Waiter<C>[] = [];
    for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift())
      callers.push(waiter);
    this.#pump();
    return callers;
  }

  /** Ends the checkout that `generation` names. With an error the connection is not used again. */
  release(connection: PooledConnection<C>, generation: number, error?: unknown): void {
    if (connection.state !== 'lent' || connection.generation !== generation) {
      refuseRelease(connection, generation);
      return;
    }
    const now = this.#clock.coarse();
    this.#lent--;
    if (this.#listener?.wantsReleases) this.#listener.released(connection, now - connection.lentAt);
    const reason =
      error === undefined &&
      this.#isOrdinary &&
      this.#fleet.idle.spares < this.#enoughReady &&
      isKeepable(connection, now, this.policy.maxUses)
        ? undefined
        : this.#reasonToRetire(connection, now, error);
    if (reason !== undefined) this.#fleet.retire(connection, reason);
    else if (this.#waiters.size > 0 && this.#state !== 'paused' && !this.#pumping) {
      this.#handOver(connection, now);
      return;
    } else {
      this.#fleet.becomeIdle(connection, now);
      if (this.#isOrdinary && this.#waiters.size === 0) return;
    }
    this.#pump();
  }

  /** Whether a lent connection would be closed if it came back now. For those who may keep it for as long as they like. */
  wouldRetire(connection: PooledConnection<C>): boolean {
    return this.#reasonToRetire(connection, this.#clock.coarse(), undefined) !== undefined;
  }

  /** A lent connection that the pool itself uses can't be forgotten: it is no leak, however long it takes. */
  exemptFromLeaks(connection: PooledConnection<C>): void {
    connection.leakReported = true;
  }

  /** A new limit. What is above it is closed: idle connections now, lent ones when they come back. */
  resize(limit: number): void {
    this.#ledger.setLimit(limit);
    this.#shed('over_limit');
  }

  /** Closes what there is too much of: idle connections now, lent ones when they come back. */
  #shed(reason: DiscardReason): void {
    this.#isOrdinary = false;
    const { idle } = this.#fleet;
    for (let c = idle.longestIdle; c !== undefined && this.#isOverLimit(); c = idle.longestIdle) {
      idle.remove(c);
      this.#fleet.retire(c, reason);
    }
    this.#giveUpHangingDials(this.#clock.now());
    this.#pump();
  }

  /** A dial that has been under way for long may never arrive, and others have a better use for its place. */
  #giveUpHangingDials(now: number): void {
    const { dials } = this.#dialing;
    for (let dial = dials.oldest; dial !== undefined && this.#owesHanging(); dial = dials.oldest) {
      const hangsAt = dial.startedAt + hangsAfterMs;
      if (now < hangsAt) {
        this.#wakeUp.by(hangsAt);
        return;
      }
      dials.abandon(dial, now);
      this.#leases.hanging--;
      this.#refiller.dialWithdrawn(dial.purpose, dial.failedBefore);
      this.#wakeUp.by(dial.deadline);
      this.#dialer.abandon(dial);
    }
  }

  /** For so many of what others have a claim to, dials may be given up. */
  #owesHanging(): boolean {
    return this.#leases.hanging > 0 && this.#isRecalled();
  }

  /** Others have a claim to more of its leases than are being given back. */
  #isOwed(): boolean {
    return this.#isInDebt() || this.#isRecalled();
  }

  /**
   * Caps the size that it is kept at (`keeper`), and below which nothing is closed for idleness (`idleFloor`): others may keep
   * the rest, or nobody needs it now. What there is too much of goes by its own timeouts.
   */
  keepAtMost(count: number): void {
    this.#refiller.keepAtMost(count);
    if (this.#state !== 'closed') this.#fleet.rearm(this.#isReapable());
  }

  /** Other numbers hold from now on, for the connections that there are, too. */
  adjust(numbers: AdjustablePolicy): void {
    const { idleFloor, dialLimit, idleTimeout, maxUses, checkAfterIdle, idleOrder, base, cap, keeper } =
      numbers;
    Object.assign(this.#adjustable, {
      idleFloor,
      dialLimit,
      idleTimeout,
      maxUses,
      checkAfterIdle,
      idleOrder,
      base,
      cap,
      keeper,
    });
    this.#fleet.idle.order = idleOrder;
    this.#refiller.adjusted(this.#clock.now());
    if (this.#state === 'closed') return;
    this.#rearm();
    this.#pump();
  }

  /** Hands out nothing and opens nothing until `resume()`. Callers queue, and their deadlines run on. */
  pause(): void {
    if (this.#state !== 'open') return;
    this.#changeState('paused');
    this.#dialing.wantsNone();
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#changeState('open');
    this.#pump();
  }

  /** Opens connections until `request.target` exist, and answers. */
  whenReady(request: ReadyRequest): void {
    if (this.#isEnding()) {
      request.missed();
      return;
    }
    this.#readiness.add(request);
    this.#isOrdinary = false;
    this.#wakeUp.by(request.deadline);
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
    this.#wakeUp.by(this.#drainDeadline);
    this.#pump();
  }

  // ---- what the dialer answers ------------------------------------------------------------------------------------

  dialed(dial: Dial<C>, connection: C): void {
    const now = this.#clock.now();
    const dialMs = now - dial.startedAt;
    if (this.#dialing.dials.answered(dial) !== 'dialing') {
      this.#fleet.closeLate(connection, now, dial.slot);
      this.#pump();
      return;
    }
    this.#dialing.succeeded(now, dialMs);
    this.#openedAt = now;
    if (dial.purpose === 'keeper') this.#tally.toppedUp++;
    const lifetime = drawLifetime(this.policy, this.#random);
    const pooled = this.#fleet.open(connection, now, lifetime, dial.approval.commit());
    this.#listener?.opened(pooled, dialMs);
    const reason = this.#reasonNotToKeep();
    if (reason === undefined) this.#fleet.becomeIdle(pooled, now);
    else this.#fleet.retire(pooled, reason);
    this.#lendAtOnce(pooled);
    this.#settleWarmup(now);
    this.#pump();
  }

  /** `cause`: what kind of failure it was, where the dialer knows. */
  dialFailed(dial: Dial<C>, error: Error, cause: DialFailureCause = 'connection_open'): void {
    const was = this.#dialing.dials.answered(dial);
    if (was === 'abandoned') dial.slot?.free();
    if (was === 'dialing') {
      dial.approval.rollback();
      this.#noteFailedDial(dial, error, cause);
    }
    this.#pump();
  }

  /**
   * It failed, but what made it fail is gone: another is made in its place, which takes a lease and a permit of its own.
   * False when this one was a second chance already: then it has failed.
   */
  dialAgain(dial: Dial<C>): boolean {
    if (dial.isSecondChance || dial.state !== 'dialing') return false;
    this.#dialing.dials.answered(dial);
    dial.approval.rollback();
    this.#refiller.dialWithdrawn(dial.purpose, dial.failedBefore);
    this.#dialing.grantSecondChance();
    this.#pump();
    this.#settleWarmup(this.#clock.now());
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
    return this.#leases.offer(count, () => {
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
    this.#leases.lost(count);
    this.#shed('lease_lost');
  }

  leasesRecalled(count: number, hanging = 0): void {
    this.#leases.recalled = count;
    this.#leases.hanging = hanging;
    this.#shed('lease_recalled');
  }

  /** The socket of a closing connection is gone. */
  closed(connection: PooledConnection<C>): void {
    this.#fleet.closed(connection);
    this.#pump();
  }

  checked(connection: PooledConnection<C>, error?: Error): void {
    this.#fleet.checked(connection, error, this.#reasonNotToKeep());
    this.#lendAtOnce(connection);
    this.#pump();
  }

  /** To the first in the queue: by the time that it is looked for, it might have to be checked once more, and again. */
  #lendAtOnce(connection: PooledConnection<C>): void {
    const canServe = this.#waiters.size > 0 && this.#state !== 'paused' && !this.#pumping;
    if (connection.state !== 'idle' || !canServe) return;
    this.#fleet.idle.remove(connection);
    this.#handOver(connection, this.#clock.now());
  }

  /** A connection failed by itself. One that is lent is retired when it comes back. */
  broken(connection: PooledConnection<C>, error: Error): void {
    this.#fleet.broken(connection, error);
    this.#pump();
  }

  // ---- what the clock tells ---------------------------------------------------------------------------------------

  turnWasLong(turnBegan: number, turnEnded: number): void {
    this.#waiters.postpone(turnBegan, turnEnded);
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
    return this.#fleet.idle.size;
  }

  get lent(): number {
    return this.#lent;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** Connections that are lent, and callers that wait for one. */
  get demand(): number {
    return this.#lent + this.#waiters.size;
  }

  /** Connections wanted ready on top of `demand`, as far as the limit leaves room: reservoir, `minIdle`, warmup, keeper. */
  get readyDemand(): number {
    if (this.#isEnding()) return 0;
    const { demand } = this;
    const { size, spares } = this.#fleet.idle;
    const wanted = Math.max(this.#refiller.wantedSize(demand, size - spares), this.#readiness.target);
    return Math.max(0, Math.min(wanted, this.limit) - demand);
  }

  /** How many slots are free. */
  get room(): number {
    return this.#ledger.room;
  }

  /** Since when the connection is idle that nobody has used for longest. */
  get longestIdleSince(): number | undefined {
    return this.#fleet.idle.longestIdle?.idleSince;
  }

  /** Since when the dial is under way that takes longest; undefined where none is. */
  get dialingSince(): number | undefined {
    return this.#dialing.dials.oldest?.startedAt;
  }

  /** When a dial succeeded last; undefined where none ever did. */
  get openedAt(): number | undefined {
    return this.#openedAt;
  }

  /**
   * The most connections that were lent or waited for at one moment, since this was last asked. Those that still are
   * count for the next answer too: a long transaction is demand for as long as it lasts.
   */
  takeDemandPeak(): number {
    const peak = this.#demandPeak;
    this.#demandPeak = this.demand;
    return peak;
  }

  /** Dials that failed since the last that did not. */
  get failedDials(): number {
    return this.#dialing.failures;
  }

  /** Why the last dial failed, while dialing is failing. */
  get lastDialError(): Error | undefined {
    return this.#dialing.lastError;
  }

  counts(): PoolCounts {
    const { limit, pending, live, closing } = this.#ledger;
    const { idle, lent, waiting } = this;
    return { limit, pending, live, closing, idle, lent, checking: this.#fleet.checking, waiting };
  }

  stats(): PoolStats {
    const { reservoir, warmup, keeper, minIdle, maxLifetime, guardWindow } = this.policy;
    return {
      ...this.counts(),
      minIdle,
      reservoir: reservoir && {
        targetReady: reservoir.targetReady,
        lowWatermark: reservoir.lowWatermark,
        baseLifetimeMs: maxLifetime,
        guardWindowMs: guardWindow,
        isFilled: !this.#isFilling,
      },
      warmup: warmup && { target: warmup.target, isOver: !this.#refiller.isWarmingUp },
      keeper: keeper && { target: keeper.target, intervalMs: keeper.interval, perTick: keeper.perTick },
      leased: this.#leases.held,
      state: this.#state,
      breaker: this.#dialing.breakerState(this.#clock.now()),
      peak: this.#ledger.peak,
      totals: this.#tally.snapshot(),
    };
  }

  /** The live connections, in the order in which they were opened. */
  connections(): IterableIterator<PooledConnection<C>> {
    return this.#fleet.all();
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
    this.#pumping = true;
    try {
      do {
        this.#pumpAgain = false;
        if (this.#waiters.size > 0) this.#serve();
        this.#grow(now);
        if (this.#state === 'draining') this.#closeUnneeded();
      } while (this.#pumpAgain);
    } finally {
      this.#pumping = false;
    }
    this.#readiness.settle(this.#ledger.live, Number.NEGATIVE_INFINITY);
    this.#isOrdinary =
      this.#state === 'open' && this.#readiness.size === 0 && !this.#refiller.isBusy && !this.#isOverLimit();
    this.#wakeUp.setAwaited(this.#waiters.size > 0 || this.#readiness.size > 0 || this.#state === 'draining');
    if (this.#state === 'draining') this.#finishDraining();
  }

  /** Nobody waits and nothing is missing: the usual case, when a connection comes back. */
  #isQuiet(): boolean {
    if (!this.#isOrdinary || this.#waiters.size > 0) return false;
    return this.#fleet.idle.spares >= this.policy.minIdle || this.#ledger.room === 0;
  }

  #serve(): void {
    if (this.#state === 'paused') return;
    const now = this.#clock.coarse();
    while (this.#waiters.size > 0) {
      const connection = this.#fleet.nextUsable(now, this.#waiters.size);
      if (connection === undefined) return;
      this.#fleet.idle.remove(connection);
      this.#grantToFirst(connection, now);
    }
  }

  /** From the one who gives back straight to the first in the queue. What that one does at once is seen to afterwards. */
  #handOver(connection: PooledConnection<C>, now: number): void {
    this.#pumping = true;
    this.#pumpAgain = false;
    try {
      connection.aliveAt = now;
      this.#grantToFirst(connection, now);
    } finally {
      this.#pumping = false;
    }
    if (this.#pumpAgain || this.#waiters.size === 0) this.#pump();
  }

  #grantToFirst(connection: PooledConnection<C>, now: number): void {
    const waiter = this.#waiters.shift() as Waiter<C>;
    const waitMs = Math.max(0, now - waiter.enqueuedAt);
    this.#tally.waited++;
    this.#tally.waitedMs += waitMs;
    this.#lend(connection, now, waitMs, undefined);
    waiter.granted(connection);
  }

  #lend(connection: PooledConnection<C>, now: number, waitMs: number, holder: unknown): void {
    connection.state = 'lent';
    connection.generation++;
    connection.lentAt = now;
    this.#lent++;
    const demand = this.#lent + this.#waiters.size;
    if (demand > this.#demandPeak) this.#demandPeak = demand;
    this.#tally.acquired++;
    if (this.#findsLeaks) {
      connection.holder = holder;
      connection.leakReported = false;
      this.#wakeUp.by(now + this.policy.leakThreshold);
    }
    if (this.#listener?.wantsAcquires) this.#listener.acquired(connection, waitMs);
  }

  // ---- growing ----------------------------------------------------------------------------------------------------

  #grow(now: number | undefined): void {
    const mayDial = this.#ledger.room > 0 && this.#state !== 'paused' && this.#state !== 'closed';
    let purpose = mayDial ? this.#reasonToDial() : undefined;
    for (; purpose !== undefined; purpose = this.#reasonToDial()) {
      const dial = this.#dialing.tryBegin(purpose, this.#waiters, now ?? this.#clock.now(), this.#isUrgent());
      if (dial === undefined) return;
      dial.failedBefore = this.#refiller.dialBegun(purpose);
      this.#dialer.dial(dial);
      // A dial that was answered at once is for whoever waits; only then is it clear what is missing yet.
      if (this.#pumpAgain) return;
    }
    this.#dialing.wantsNone();
  }

  #reasonToDial(): DialPurpose | undefined {
    const supply = {
      waiting: this.#waiters.size,
      live: this.#ledger.live,
      dialing: this.#dialing.dials.underWay,
      checking: this.#fleet.checking,
      spares: this.#fleet.idle.spares,
      wanted: this.#readiness.target,
    };
    return this.#refiller.reasonToDial(supply, this.#state === 'draining');
  }

  /** Fewer connections than it takes to be of use. */
  #isUrgent(): boolean {
    const { reservoir } = this.policy;
    return reservoir === undefined ? this.#ledger.live === 0 : this.#ledger.live < reservoir.lowWatermark;
  }

  #noteFailedDial(dial: Dial<C>, error: Error, cause: DialFailureCause): void {
    const now = this.#clock.now();
    this.#dialing.failed(error, now, cause);
    this.#tally.dialsFailed++;
    if (dial.purpose === 'keeper') this.#tally.topUpsFailed++;
    this.#listener?.dialFailed(error, this.#dialing.failures, now - dial.startedAt);
    this.#noteRefillFailure(cause, error, this.#dialing.failures);
    this.#refiller.dialFailed(dial.purpose, dial.failedBefore);
    this.#settleWarmup(now);
    // The error is for the caller on whose behalf the dial was made, if that one still waits, and for nobody else.
    const { waiter } = dial;
    if (waiter?.queued) {
      this.#waiters.remove(waiter);
      waiter.failed(error);
    }
    if (this.#isHopeless(now)) this.#failImpatient(() => this.#dialing.connectFailed(now));
  }

  #noteRefillFailure(cause: RefillCause, error: Error, failuresInARow: number): void {
    this.#tally.refillFailures[cause]++;
    this.#listener?.refillFailed(cause, error, failuresInARow);
  }

  #settleWarmup(now: number): void {
    const progress = this.#refiller.settleWarmup(now, this.#ledger.live, this.#dialing.dials.underWay);
    if (progress === undefined) return;
    this.#wakeUp.by(this.#refiller.nextTickAt);
    this.#listener?.filling(progress);
  }

  /** No connection is left that could come back to serve a caller, and a new one can't be had. */
  #isHopeless(now: number): boolean {
    return this.#ledger.live === 0 && this.#state !== 'paused' && this.#dialing.isHopeless(now);
  }

  /** Those who are patient stay where they are in the queue. */
  #failImpatient(makeError: () => Error): void {
    const patient: Waiter<C>[] = [];
    for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift()) {
      if (waiter.isPatient) patient.push(waiter);
      else waiter.failed(makeError());
    }
    for (const waiter of patient) this.#waiters.add(waiter, waiter.enqueuedAt, waiter.heapKey);
  }

  #failWaiters(makeError: () => Error): void {
    for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift()) {
      waiter.failed(makeError());
    }
  }

  // ---- retiring ---------------------------------------------------------------------------------------------------

  #reasonToRetire(connection: PooledConnection<C>, now: number, error: unknown): DiscardReason | undefined {
    if (error !== undefined) return 'released_with_error';
    if (connection.broken !== undefined) return 'broken';
    if (connection.generation >= this.policy.maxUses) return 'max_uses';
    if (now >= connection.lendUntil) return this.#fleet.tooOld(connection, now, 'return');
    if (this.#fleet.idle.spares >= this.#enoughReady && this.#waiters.size === 0) return 'reservoir_full';
    return this.#reasonNotToKeep();
  }

  /** What the pool as a whole has against one more idle connection. */
  #reasonNotToKeep(): DiscardReason | undefined {
    if (this.#state === 'draining' && this.#waiters.size === 0) return 'drained';
    if (!this.#isOverLimit()) return undefined;
    if (this.#isInDebt()) return 'lease_lost';
    return this.#isRecalled() ? 'lease_recalled' : 'over_limit';
  }

  /** Without what is being closed already: that will go by itself. */
  #isOverLimit(): boolean {
    const { pending, live, limit } = this.#ledger;
    return pending + live > limit || this.#isOwed();
  }

  /** More connections have lost their leases than are being closed. */
  #isInDebt(): boolean {
    return this.#leases.debt > this.#ledger.closing;
  }

  /** Others have a better claim to more of its leases than are being given back. What was lost comes first. */
  #isRecalled(): boolean {
    return this.#leases.debt + this.#leases.recalled > this.#ledger.closing;
  }

  /** Whether there are more connections than must be kept. */
  #isReapable(): boolean {
    const { minIdle } = this.policy;
    const floor = Math.min(this.policy.idleFloor, this.#refiller.mostKept);
    return this.#ledger.pending + this.#ledger.live > floor && this.#fleet.idle.spares > minIdle;
  }

  // ---- closing down -----------------------------------------------------------------------------------------------

  #isEnding(): boolean {
    return this.#state === 'draining' || this.#state === 'closed';
  }

  #changeState(state: PoolState): void {
    this.#state = state;
    this.#isOrdinary = false;
    this.#listener?.stateChanged(state);
  }

  /** While draining: what no caller in the queue can have any more. */
  #closeUnneeded(): void {
    if (this.#waiters.size > 0) return;
    const { idle } = this.#fleet;
    for (let c = idle.longestIdle; c !== undefined; c = idle.longestIdle) {
      idle.remove(c);
      this.#fleet.retire(c, 'drained');
    }
    // A dial given up half-way may leave a session behind for a moment; one that arrives is closed in good order.
    this.#dialing.dials.hurry(this.#clock.now() + this.policy.closeTimeout);
    this.#wakeUp.by(this.#dialing.dials.nextDeadline);
  }

  #finishDraining(): void {
    if (this.#waiters.size > 0 || this.#ledger.total > 0) return;
    this.#changeState('closed');
    this.#readiness.settle(0, never);
    this.#wakeUp.stop();
    for (const onDrained of this.#onDrained.splice(0)) onDrained();
  }

  #endDrainingNow(): void {
    this.#drainDeadline = never;
    this.#failWaiters(() => new PoolClosedError(': its deadline passed before a connection was free'));
    for (const connection of [...this.#fleet.all()]) {
      if (connection.state !== 'lent') continue;
      this.#lent--;
      this.#fleet.destroy(connection, 'drain_deadline');
    }
    this.#dialing.dials.hurry(this.#clock.now());
  }

  // ---- time -------------------------------------------------------------------------------------------------------

  #tick(): void {
    const now = this.#wakeUp.rang(this.#clock.now());
    // Dials first: a caller who learns that its time is up finds the dial's slot given back.
    this.#timeOutDials(now);
    this.#timeOutWaiters(now);
    this.#fleet.timeOut(now);
    this.#fleet.turn(now, this.#situation);
    this.#fleet.reap(now, () => this.#isReapable());
    this.#fleet.keepAlive(now);
    this.#reportLeaks(now);
    this.#topUp(now);
    this.#readiness.settle(this.#ledger.live, now);
    if (now >= this.#drainDeadline) this.#endDrainingNow();
    this.#pump();
    if (this.#state !== 'closed') this.#rearm();
  }

  #topUp(now: number): void {
    const { pending, live } = this.#ledger;
    // While nothing may be opened, nothing is missing.
    const size = this.#state === 'open' ? pending + live : never;
    const count = this.#refiller.tick(now, size);
    if (count === 0) return;
    this.#isOrdinary = false;
    this.#listener?.toppingUp(count, live, this.#refiller.keeperTarget);
  }

  #timeOutWaiters(now: number): void {
    for (let waiter = this.#waiters.shiftExpired(now); waiter; waiter = this.#waiters.shiftExpired(now)) {
      const waitMs = this.#clock.now() - waiter.enqueuedAt;
      this.#tally.timedOut++;
      this.#tally.waitedMs += waitMs;
      this.#listener?.timedOut(waitMs);
      const TimeoutError = this.policy.reservoir === undefined ? AcquireTimeoutError : ReservoirEmptyError;
      waiter.failed(new TimeoutError(waitMs, this.counts(), this.#dialing.lastError));
    }
  }

  #timeOutDials(now: number): void {
    const { dials } = this.#dialing;
    for (let dial = dials.nextOverdue(now); dial; dial = dials.nextOverdue(now)) {
      dials.abandon(dial, now);
      if (!dial.isUnwanted)
        this.#noteFailedDial(dial, new DialTimeoutError(this.policy.dialTimeout), 'connection_open');
      this.#dialer.abandon(dial);
    }
    dials.loseOverdue(now);
    this.#giveUpHangingDials(now);
  }

  #reportLeaks(now: number): void {
    if (!this.#findsLeaks) return;
    for (const connection of this.#fleet.all()) {
      if (connection.state !== 'lent' || connection.leakReported) continue;
      const reportAt = connection.lentAt + this.policy.leakThreshold;
      if (reportAt > now) {
        this.#wakeUp.by(reportAt);
        continue;
      }
      connection.leakReported = true;
      this.#tally.leaks++;
      this.#listener?.leaked(connection, now - connection.lentAt);
    }
  }

  /**
   * After the alarm rang: the next time at which anything is due. What holds a dial back has been set by `#grow`, the
   * next leak by `#reportLeaks`.
   */
  #rearm(): void {
    this.#wakeUp.by(this.#waiters.nextDeadline);
    this.#wakeUp.by(this.#dialing.dials.nextDeadline);
    this.#wakeUp.by(this.#readiness.nextDeadline);
    this.#wakeUp.by(this.#drainDeadline);
    this.#wakeUp.by(this.#refiller.nextTickAt);
    this.#fleet.rearm(this.#isReapable());
  }
}

/** What no life and no accident speaks against. */
function isKeepable<C>(connection: PooledConnection<C>, now: number, maxUses: number): boolean {
  return connection.broken === undefined && now < connection.lendUntil && connection.generation < maxUses;
}

function refuseRelease<C>(connection: PooledConnection<C>, generation: number): void {
  // The pool itself may have ended the checkout, when the deadline of its draining passed.
  if (connection.reason === 'drain_deadline' && connection.generation === generation) return;
  throw new DoubleReleaseError();
}

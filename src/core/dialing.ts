/** Decides when a dial may begin, for whom it is made, and what its failure means for the next one. */
import type { Random } from '../kernel/random.js';
import { Backoff } from './backoff.js';
import { Breaker, type BreakerState, type DialFailureCause } from './breaker.js';
import type { Dial } from './dialer.js';
import { Dials } from './dials.js';
import { ConnectFailedError } from './errors.js';
import type { LeaseAccount } from './lease-account.js';
import type { Ledger } from './ledger.js';
import { PermitWaits } from './permit-waits.js';
import type { PoolPolicy } from './pool-policy.js';
import type { DialPurpose, RefillCause } from './reasons.js';
import type { CallerQueue } from './waiters.js';
import type { WakeUp } from './wake-up.js';

export interface DialingParts {
  readonly policy: PoolPolicy;
  readonly ledger: Ledger;
  readonly leases: LeaseAccount;
  readonly wakeUp: WakeUp;
  readonly random: Random;
  /** A dial that was wanted could not begin. */
  readonly heldBack: (cause: RefillCause, error: Error, failuresInARow: number) => void;
}

/** Assumed duration of a dial until the first has ended. */
const usualDialMs = 100;
/** Each dial moves the mean by this part of its difference from it. */
const dialMemory = 1 / 8;

export class Dialing<C> {
  readonly dials: Dials<C>;
  readonly permitWaits = new PermitWaits();
  readonly #policy: PoolPolicy;
  readonly #ledger: Ledger;
  readonly #leases: LeaseAccount;
  readonly #wakeUp: WakeUp;
  readonly #heldBack: DialingParts['heldBack'];
  readonly #breaker: Breaker;
  readonly #leaseBackoff: Backoff;
  readonly #limiterBackoff: Backoff;
  /** Dials that may be repeated at once. */
  #secondChances = 0;
  /** An urgent request to the rate limiter was told to wait: a permit may have been kept for it. */
  #isAwaitedUrgently = false;
  #meanDialMs = usualDialMs;

  constructor(parts: DialingParts) {
    const { policy, random } = parts;
    this.#policy = policy;
    this.#ledger = parts.ledger;
    this.#leases = parts.leases;
    this.#wakeUp = parts.wakeUp;
    this.#heldBack = parts.heldBack;
    this.#breaker = new Breaker(policy, random);
    this.#leaseBackoff = new Backoff(policy, random);
    this.#limiterBackoff = new Backoff(policy, random);
    this.dials = new Dials<C>(policy.dialTimeout, policy.closeTimeout);
  }

  /** The error of the last wanted connection, while none can be had. */
  get lastError(): Error | undefined {
    return this.#breaker.lastError ?? this.#leaseBackoff.lastError ?? this.#limiterBackoff.lastError;
  }

  /** Dials that failed since the last that did not. */
  get failures(): number {
    return this.#breaker.failures;
  }

  /** Milliseconds, as of the last few. */
  get meanDialMs(): number {
    return this.#meanDialMs;
  }

  breakerState(now: number): BreakerState {
    return this.#breaker.state(now);
  }

  /** A dial failed, and the next attempt is not due yet. */
  isBackingOff(now: number): boolean {
    return now < this.#breaker.retryAt;
  }

  /**
   * Begins a dial if one is allowed now; otherwise an event or the alarm tells when to try again. Conditions, in this
   * order: a free slot, the limit of dials at the same time, the breaker, a lease of the budget above, a permit of the
   * rate limiter (last, because it can't be given back), the slot.
   */
  tryBegin(
    purpose: DialPurpose,
    waiters: CallerQueue<C>,
    now: number,
    isUrgent: boolean,
  ): Dial<C> | undefined {
    if (this.dials.underWay >= this.#policy.dialLimit || this.#ledger.room === 0) return undefined;
    if (purpose === 'keeper' && !this.#leases.isOneFree) return undefined;
    // Where the caller gets the failure itself, only dials that no caller asked for are held back after one.
    const isOwnAnswer = purpose === 'caller' && this.#policy.onDialFailure === 'reject';
    if (!isOwnAnswer && !this.#breaker.allows(now, this.dials.underWay)) {
      if (now < this.#breaker.retryAt) this.#wakeUp.by(this.#breaker.retryAt);
      return undefined;
    }
    if (!this.#hasLease(now) || !this.#hasPermit(now, isUrgent)) return undefined;
    const approval = this.#ledger.approve();
    if (approval === undefined) return undefined;
    this.#leases.use();
    const dial = this.dials.begin(approval, now);
    dial.purpose = purpose;
    if (this.#secondChances > 0) {
      this.#secondChances--;
      dial.isSecondChance = true;
    }
    this.#wakeUp.by(dial.deadline);
    if (purpose === 'caller') assign(dial, waiters);
    dial.answersWaiter = isOwnAnswer;
    return dial;
  }

  #hasLease(now: number): boolean {
    if (now < this.#leaseBackoff.retryAt) {
      this.#wakeUp.by(this.#leaseBackoff.retryAt);
      return false;
    }
    const answer = this.#leases.reserve();
    if (answer === true) {
      if (this.#leaseBackoff.failures > 0) this.#leaseBackoff.succeeded();
      return true;
    }
    if (answer instanceof Error) this.leaseRefused(answer, now);
    else if (answer !== false) this.leaseDelayed(answer.reason);
    return false;
  }

  /** The last wanted lease could not be had. */
  get isShortOfLeases(): boolean {
    return this.#leaseBackoff.failures > 0;
  }

  #hasPermit(now: number, isUrgent: boolean): boolean {
    const limiter = this.#policy.rateLimiter;
    if (limiter === undefined) return true;
    let waitMs = this.#limiterBackoff.retryAt - now;
    if (!(waitMs > 0)) {
      try {
        const asksUrgently = isUrgent || this.#isAwaitedUrgently;
        waitMs = limiter.take(now, asksUrgently);
        this.#isAwaitedUrgently = asksUrgently && waitMs > 0;
        if (this.#limiterBackoff.failures > 0) this.#limiterBackoff.succeeded();
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown : new Error(String(thrown));
        this.#limiterBackoff.failed(error, now);
        this.#heldBack('rate_limit', error, this.#limiterBackoff.failures);
        this.#wakeUp.by(this.#limiterBackoff.retryAt);
        return false;
      }
    }
    if (!(waitMs > 0)) {
      this.permitWaits.granted(now);
      return true;
    }
    this.#wakeUp.by(now + waitMs);
    const longWait = this.permitWaits.refused(now, waitMs);
    // A limiter that failed was counted when it did.
    const { failures } = this.#limiterBackoff;
    if (longWait !== undefined && failures === 0) this.#heldBack('rate_limit', longWait, failures);
    return false;
  }

  /** No dial is wanted at present. */
  wantsNone(): void {
    this.#secondChances = 0;
    this.#isAwaitedUrgently = false;
    this.permitWaits.forgotten();
    this.#leases.putBack();
  }

  leaseRefused(error: Error, now: number): void {
    this.#leases.answered();
    this.#leaseBackoff.failed(error, now);
    this.#heldBack('lease_acquire', error, this.#leaseBackoff.failures);
    this.#wakeUp.by(this.#leaseBackoff.retryAt);
  }

  /** The request waits in the budget's queue: no alarm is set, since a grant will come. */
  leaseDelayed(reason: Error): void {
    this.#leases.delayed();
    this.#leaseBackoff.suspended(reason);
    this.#heldBack('lease_acquire', reason, this.#leaseBackoff.failures);
  }

  /** One of this pool's own leases is free again, for this pool and for any other. */
  leaseGivenBack(): void {
    this.#leaseBackoff.hurry();
  }

  leasesAvailable(): void {
    this.#leases.answered();
    this.#leaseBackoff.hurry();
  }

  succeeded(now: number, dialMs: number): void {
    this.#meanDialMs += (dialMs - this.#meanDialMs) * dialMemory;
    this.#breaker.succeeded();
    this.#policy.rateLimiter?.opened?.(now);
  }

  /** The server finds that connections are opened too fast. */
  rateExceeded(now: number): void {
    this.#policy.rateLimiter?.refused?.(now);
  }

  failed(error: Error, now: number, cause: DialFailureCause): void {
    this.#breaker.failed(error, now, cause);
  }

  /** The reason of a failure no longer exists: the next dial is its second chance, with its own lease and permit. */
  grantSecondChance(): void {
    this.#secondChances++;
  }

  /** Dials keep failing, and the next attempt is not due yet. */
  isHopeless(now: number): boolean {
    return (
      this.#policy.onDialFailure === 'retry' &&
      this.dials.underWay === 0 &&
      this.#breaker.state(now) === 'open'
    );
  }

  connectFailed(now: number): ConnectFailedError {
    const { failures, retryAt, lastError } = this.#breaker;
    return new ConnectFailedError(failures, Math.max(0, retryAt - now), lastError as Error);
  }
}

/** Assigns the dial to the first waiter without a dial under way. */
function assign<C>(dial: Dial<C>, waiters: CallerQueue<C>): void {
  let waiter = waiters.first;
  while (waiter !== undefined && waiter.dial?.state === 'dialing') waiter = waiter.next;
  if (waiter === undefined) return;
  waiter.dial = dial;
  dial.waiter = waiter;
}

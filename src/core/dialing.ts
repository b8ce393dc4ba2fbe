/** When a dial may begin, on whose behalf it is made, and what its failure means for the next. */
import type { Random } from '../kernel/random.js';
import { Breaker, type BreakerState } from './breaker.js';
import type { Dial } from './dialer.js';
import { Dials } from './dials.js';
import { ConnectFailedError } from './errors.js';
import type { Ledger } from './ledger.js';
import type { PoolPolicy } from './pool-policy.js';
import type { Waiters } from './waiters.js';
import type { WakeUp } from './wake-up.js';

export class Dialing<C> {
  readonly dials: Dials<C>;
  readonly #policy: PoolPolicy;
  readonly #ledger: Ledger;
  readonly #wakeUp: WakeUp;
  readonly #breaker: Breaker;

  constructor(policy: PoolPolicy, ledger: Ledger, wakeUp: WakeUp, random: Random) {
    this.#policy = policy;
    this.#ledger = ledger;
    this.#wakeUp = wakeUp;
    this.#breaker = new Breaker(policy, random);
    this.dials = new Dials<C>(policy.dialTimeout, policy.closeTimeout);
  }

  /** Why the last dial failed, while dialing is failing. */
  get lastError(): Error | undefined {
    return this.#breaker.lastError;
  }

  /** Dials that failed since the last that did not. */
  get failures(): number {
    return this.#breaker.failures;
  }

  breakerState(now: number): BreakerState {
    return this.#breaker.state(now);
  }

  /**
   * A dial that may begin now, or none; then an event or the alarm will tell when to try again. What it takes, in this
   * order: room, one of the dials at the same time, leave of the breaker, a permit of the rate limiter (last, because it
   * can't be given back), the slot.
   */
  tryBegin(purpose: 'caller' | 'spare', waiters: Waiters<C>, now: number): Dial<C> | undefined {
    if (this.dials.underWay >= this.#policy.dialLimit || this.#ledger.room === 0) return undefined;
    // Where a failure is the caller's own answer, only dials that nobody asked for are held back after one.
    const isOwnAnswer = purpose === 'caller' && this.#policy.onDialFailure === 'reject';
    if (!isOwnAnswer && !this.#breaker.allows(now, this.dials.underWay)) {
      if (now < this.#breaker.retryAt) this.#wakeUp.by(this.#breaker.retryAt);
      return undefined;
    }
    const waitMs = this.#policy.rateLimiter?.take(now) ?? 0;
    if (waitMs > 0) {
      this.#wakeUp.by(now + waitMs);
      return undefined;
    }
    const approval = this.#ledger.approve();
    if (approval === undefined) return undefined;
    const dial = this.dials.begin(approval, now);
    this.#wakeUp.by(dial.deadline);
    if (isOwnAnswer) assign(dial, waiters);
    return dial;
  }

  succeeded(now: number): void {
    this.#breaker.succeeded();
    this.#policy.rateLimiter?.opened?.(now);
  }

  /** The server finds that connections are opened too fast. */
  rateExceeded(now: number): void {
    this.#policy.rateLimiter?.refused?.(now);
  }

  failed(error: Error, now: number): void {
    this.#breaker.failed(error, now);
  }

  /** Dialing keeps failing, and the next attempt is yet to come. */
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

/** The dial is for the first in the queue for whom none is under way: its failure will be that one's answer. */
function assign<C>(dial: Dial<C>, waiters: Waiters<C>): void {
  let waiter = waiters.first;
  while (waiter !== undefined && waiter.dial?.state === 'dialing') waiter = waiter.next;
  if (waiter === undefined) return;
  waiter.dial = dial;
  dial.waiter = waiter;
}

/** The ends of dials: connected, failed, late or given up; and their consequences. */
import type { Clock } from '../kernel/clock.js';
import type { Random } from '../kernel/random.js';
import type { DialFailureCause } from './breaker.js';
import type { Dial, Dialer } from './dialer.js';
import type { Dialing } from './dialing.js';
import { hangsAfterMs } from './dials.js';
import { DialTimeoutError } from './errors.js';
import type { Excess } from './excess.js';
import type { LeaseAccount } from './lease-account.js';
import type { Ledger } from './ledger.js';
import { drawLifetime } from './lifetime.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolListener } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import type { PooledConnection } from './pooled-connection.js';
import type { RefillCause } from './reasons.js';
import type { Refiller } from './refiller.js';
import type { Retention } from './retention.js';
import type { ServiceState } from './service-state.js';
import type { Serving } from './serving.js';
import type { Tally } from './tally.js';
import type { CallerQueue } from './waiters.js';
import type { WakeUp } from './wake-up.js';

export interface DialOutcomesParts<C> {
  readonly policy: PoolPolicy;
  readonly clock: Clock;
  readonly random: Random;
  readonly dialer: Dialer<C>;
  readonly wakeUp: WakeUp;
  readonly service: ServiceState<C>;
  readonly ledger: Ledger;
  readonly leases: LeaseAccount;
  readonly excess: Excess;
  readonly waiters: CallerQueue<C>;
  readonly connections: LiveConnections<C>;
  readonly dialing: Dialing<C>;
  readonly refiller: Refiller;
  readonly retention: Retention<C>;
  readonly serving: Serving<C>;
  readonly tally: Tally;
  readonly listener: PoolListener<C> | undefined;
}

export class DialOutcomes<C> {
  readonly #parts: DialOutcomesParts<C>;
  #openedAt: number | undefined;

  constructor(parts: DialOutcomesParts<C>) {
    this.#parts = parts;
  }

  /** Time of the last successful dial; undefined before the first. */
  get openedAt(): number | undefined {
    return this.#openedAt;
  }

  /** The new connection, idle or on its way out; undefined where it came too late. */
  succeeded(dial: Dial<C>, connection: C): PooledConnection<C> | undefined {
    const { policy, clock, random, connections, dialing, retention, tally, listener } = this.#parts;
    const now = clock.now();
    const dialMs = now - dial.startedAt;
    // The code that opened the connection may keep the dial for as long as the connection lives.
    dial.waiter = undefined;
    if (dialing.dials.answered(dial) !== 'dialing') {
      connections.closeLate(connection, now, dial.slot);
      return undefined;
    }
    dialing.succeeded(now, dialMs);
    this.#openedAt = now;
    if (dial.purpose === 'keeper') tally.toppedUp++;
    const pooled = connections.open(connection, now, drawLifetime(policy, random), dial.approval.commit());
    listener?.opened(pooled, dialMs);
    const reason = retention.reasonNotToKeep();
    if (reason === undefined) connections.becomeIdle(pooled, now);
    else connections.retire(pooled, reason);
    return pooled;
  }

  failed(dial: Dial<C>, error: Error, cause: DialFailureCause): void {
    const was = this.#parts.dialing.dials.answered(dial);
    if (was === 'abandoned') dial.slot?.free();
    if (was !== 'dialing') return;
    dial.approval.rollback();
    this.#noteFailure(dial, error, cause);
  }

  /** Allows another dial in place of this one; false if this one was already a second chance. */
  grantSecondChance(dial: Dial<C>): boolean {
    if (dial.isSecondChance || dial.state !== 'dialing') return false;
    const { dialing, refiller } = this.#parts;
    dialing.dials.answered(dial);
    dial.approval.rollback();
    refiller.dialWithdrawn(dial.purpose, dial.failedBefore);
    dialing.grantSecondChance();
    return true;
  }

  /** Ends the dials that time out, and frees the slots of abandoned ones that were never answered. */
  timeOut(now: number): void {
    const { policy, dialer, dialing } = this.#parts;
    const { dials } = dialing;
    for (let dial = dials.nextOverdue(now); dial; dial = dials.nextOverdue(now)) {
      dials.abandon(dial, now);
      if (!dial.isUnwanted)
        this.#noteFailure(dial, new DialTimeoutError(policy.dialTimeout), 'connection_open');
      dialer.abandon(dial);
    }
    dials.loseOverdue(now);
    this.giveUpHanging(now);
  }

  /** A dial that has been under way for long may never arrive, and others have a better use for its lease. */
  giveUpHanging(now: number): void {
    const { dialer, wakeUp, leases, excess, dialing, refiller } = this.#parts;
    const { dials } = dialing;
    for (let dial = dials.oldest; dial !== undefined && excess.claimsHangingDials; dial = dials.oldest) {
      const hangsAt = dial.startedAt + hangsAfterMs;
      if (now < hangsAt) {
        wakeUp.by(hangsAt);
        return;
      }
      dials.abandon(dial, now);
      leases.hanging--;
      refiller.dialWithdrawn(dial.purpose, dial.failedBefore);
      wakeUp.by(dial.deadline);
      dialer.abandon(dial);
    }
  }

  /** A connection that is wanted is not opened: its dial failed, or could not begin. */
  noteRefillFailure(cause: RefillCause, error: Error, failuresInARow: number): void {
    const { tally, listener } = this.#parts;
    tally.refillFailures[cause]++;
    listener?.refillFailed(cause, error, failuresInARow);
  }

  /** Ends the warmup if no retry is left. */
  settleWarmup(): void {
    const { clock, wakeUp, ledger, dialing, refiller, listener } = this.#parts;
    const progress = refiller.settleWarmup(clock.now(), ledger.live, dialing.dials.underWay);
    if (progress === undefined) return;
    wakeUp.by(refiller.nextTickAt);
    listener?.filling(progress);
  }

  /** No connection is left that could be released to a caller, and none can be opened. */
  isHopeless(now: number): boolean {
    const { service, ledger, dialing } = this.#parts;
    return ledger.live === 0 && service.current !== 'paused' && dialing.isHopeless(now);
  }

  #noteFailure(dial: Dial<C>, error: Error, cause: DialFailureCause): void {
    const { clock, waiters, dialing, refiller, serving, tally, listener } = this.#parts;
    const now = clock.now();
    dialing.failed(error, now, cause);
    tally.dialsFailed++;
    if (dial.purpose === 'keeper') tally.topUpsFailed++;
    listener?.dialFailed(error, dialing.failures, now - dial.startedAt);
    this.noteRefillFailure(cause, error, dialing.failures);
    refiller.dialFailed(dial.purpose, dial.failedBefore);
    this.settleWarmup();
    // The error goes only to the caller for whom the dial was made, if it still waits.
    const { waiter } = dial;
    if (dial.answersWaiter && waiter?.queued) {
      waiters.remove(waiter);
      waiter.failed(error);
    }
    if (this.isHopeless(now)) serving.failImpatient(() => dialing.connectFailed(now));
  }
}

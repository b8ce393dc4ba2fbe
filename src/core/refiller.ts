/**
 * Decides whether to open another connection, and for what purpose. Waiters come first. Connections that no caller waits
 * for are opened to keep spares ready (the reservoir, `minIdle`, or a `ready()` call), to reach a size at the start, or
 * to keep it.
 *
 * Sets no pace: while there is a reason, the next dial begins as soon as `Dialing` allows it.
 */
import type { Random } from '../kernel/random.js';
import { bulk, trickle } from './growth.js';
import { Keeper } from './keeper.js';
import type { FillProgress } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import type { DialPurpose } from './reasons.js';
import { Warmup } from './warmup.js';

/** The connections of a pool, and the demand for them. */
export interface Supply {
  readonly waiting: number;
  readonly live: number;
  readonly dialing: number;
  readonly checking: number;
  readonly spares: number;
  /** Connections that must exist before a request is answered. */
  readonly wanted: number;
}

export class Refiller {
  readonly #policy: PoolPolicy;
  #warmup: Warmup | undefined;
  #keeper: Keeper | undefined;
  /** Before this time, no connection is opened that no caller waits for. */
  #beginsAt: number;
  #isHeldBack: boolean;
  #hasStarted = false;
  #mostKept = Infinity;

  constructor(policy: PoolPolicy) {
    this.#policy = policy;
    this.#isHeldBack = policy.startJitter > 0;
    this.#beginsAt = this.#isHeldBack ? Infinity : -Infinity;
  }

  /** Draws the time of its beginning, and returns the progress of a warmup that has begun. */
  start(now: number, random: Random): FillProgress | undefined {
    const { startJitter, warmup, keeper } = this.#policy;
    this.#hasStarted = true;
    if (this.#isHeldBack) this.#beginsAt = now + random.next() * startJitter;
    if (warmup !== undefined) this.#warmup = new Warmup(warmup, now);
    if (keeper !== undefined) this.#keeper = new Keeper(keeper, now);
    this.keepAtMost(this.#mostKept);
    return this.#warmup && progressOf(this.#warmup, 'started', 0, now);
  }

  /** The policy has become another one. */
  adjusted(now: number): void {
    if (!this.#hasStarted) return;
    const { keeper } = this.#policy;
    this.#keeper = keeper && new Keeper(keeper, now);
    this.keepAtMost(this.#mostKept);
  }

  /** Caps the size to keep, and with it the number of idle connections that are kept. */
  keepAtMost(count: number): void {
    this.#mostKept = count;
    if (this.#keeper !== undefined) this.#keeper.most = count;
  }

  get mostKept(): number {
    return this.#mostKept;
  }

  reasonToDial(supply: Supply, isDraining: boolean): DialPurpose | undefined {
    const { waiting, live, dialing, checking, spares } = supply;
    if (waiting > 0 && trickle(waiting, dialing + checking) > 0) return 'caller';
    if (isDraining || this.#isHeldBack) return undefined;
    const { minIdle } = this.#policy;
    if (minIdle > 0 && bulk(minIdle, spares, waiting, dialing + checking) > 0) return 'spare';
    const size = live + dialing;
    if (size < supply.wanted) return 'spare';
    if (this.#warmup?.wants(size)) return 'warmup';
    if (this.#keeper?.wants(size)) return 'keeper';
    return undefined;
  }

  /** Number of earlier failures of this connection, where that is counted. */
  dialBegun(purpose: DialPurpose): number {
    if (purpose === 'keeper') this.#keeper?.dialBegun();
    return purpose === 'warmup' ? (this.#warmup?.dialBegun() ?? 0) : 0;
  }

  /** The dial will be repeated, as if it had not begun. */
  dialWithdrawn(purpose: DialPurpose, failedBefore: number): void {
    if (purpose === 'keeper') this.#keeper?.dialWithdrawn();
    if (purpose === 'warmup') this.#warmup?.dialWithdrawn(failedBefore);
  }

  dialFailed(purpose: DialPurpose, failedBefore: number): void {
    if (purpose === 'warmup') this.#warmup?.dialFailed(failedBefore);
  }

  /** Ends the warmup when it is over, and returns its outcome. The keeper takes over. */
  settleWarmup(now: number, live: number, dialing: number): FillProgress | undefined {
    const outcome = this.#warmup?.outcome(live, dialing);
    if (outcome === undefined) return undefined;
    const progress = progressOf(this.#warmup as Warmup, outcome, live, now);
    this.#warmup = undefined;
    return progress;
  }

  /** Runs the keeper's check, if it is due. Returns the number of dials that it has just asked for; `size` includes dials under way. */
  tick(now: number, size: number): number {
    if (now >= this.#beginsAt) this.#isHeldBack = false;
    if (this.#keeper === undefined || this.#isHeldBack || this.#warmup !== undefined) return 0;
    return this.#keeper.tick(now, size);
  }

  /** Connections may be wanted that neither callers nor spares ask for. */
  get isBusy(): boolean {
    return this.#warmup !== undefined || (this.#keeper?.isBusy ?? false);
  }

  /** True from construction on, if there is a warmup. */
  get isWarmingUp(): boolean {
    return this.#warmup !== undefined || (!this.#hasStarted && this.#policy.warmup !== undefined);
  }

  get keeperTarget(): number {
    return this.#keeper?.target ?? 0;
  }

  /**
   * The size up to which connections are opened that no caller waits for. `inUse`: in use or waited for. `expiring`:
   * idle, and to be replaced before they end.
   */
  wantedSize(inUse: number, expiring: number): number {
    if (this.#isHeldBack) return 0;
    const warm = this.#warmup?.target ?? 0;
    const { minIdle } = this.#policy;
    const spare = minIdle > 0 ? inUse + minIdle + expiring : 0;
    return Math.max(spare, warm, this.keeperTarget);
  }

  get nextTickAt(): number {
    if (this.#isHeldBack) return this.#beginsAt;
    if (this.#warmup !== undefined) return Infinity;
    return this.#keeper?.nextTickAt ?? Infinity;
  }
}

function progressOf(warmup: Warmup, phase: FillProgress['phase'], size: number, now: number): FillProgress {
  const { target, givenUp, startedAt } = warmup;
  return { kind: 'warmup', phase, size, target, failed: givenUp, elapsedMs: now - startedAt };
}

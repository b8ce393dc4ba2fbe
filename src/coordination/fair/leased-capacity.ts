/**
 * The capacity of a budget that is itself leased from one above, for example a machine's part of a cluster's budget. It
 * asks for more when a member waits, releases leases that were free for a while, and shrinks when leases are lost or
 * recalled. Released leases leave the budget first, so that they can't be granted here meanwhile.
 */
import { LeaseRequest } from '../../core/lease-request.js';
import type { LeaseHolder, Leases } from '../../core/leases.js';
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';

/** The budget with this capacity. */
export interface LeasedBudget {
  resize(capacity: number): void;
  /** Leases that are held; and members that wait. */
  readonly held: number;
  readonly waiting: number;
  /** The most that were held at one moment, since this was last asked. */
  takeHeldPeak(): number;
}

export interface LeasedCapacityParts {
  readonly name: string;
  readonly source: Leases;
  /** Demand of this process. A source that shares by need asks for it. */
  readonly demand?: (() => number) | undefined;
  /** Users behind it, by weight. Called by a source that shares fairly between users. Default: one. */
  readonly claimants?: (() => number) | undefined;
  /** Upper bound of the capacity. */
  readonly most: number;
  /** Leases that were free for this long are released. */
  readonly spareMs: number;
  /** Delay before asking again after a refusal, unless the source signals earlier that leases are available. */
  readonly retryMs: number;
  readonly clock: Clock;
  readonly alarm: AlarmFactory;
}

const never = Number.POSITIVE_INFINITY;

export class LeasedCapacity implements LeaseHolder {
  readonly name: string;
  readonly #parts: LeasedCapacityParts;
  readonly #alarm: Alarm;
  readonly #budget: LeasedBudget;
  #most: number;
  #leased = 0;
  /** Number of those leases that the source has recalled. */
  #recalled = 0;
  readonly #request: LeaseRequest;
  #retryAt = 0;
  #refusal: Error | undefined;
  /** When to count leases unused since the last release. */
  #spareAt = never;
  #isLooking = false;
  #lookAgain = false;

  constructor(parts: LeasedCapacityParts, budget: LeasedBudget) {
    this.#parts = parts;
    this.name = parts.name;
    this.#most = parts.most;
    this.#budget = budget;
    this.#request = new LeaseRequest(parts.source, this);
    this.#alarm = parts.alarm(() => this.look());
  }

  isOf(budget: object): boolean {
    return budget === this.#budget;
  }

  /** Leases of the source. */
  get leased(): number {
    return this.#leased;
  }

  /** Undefined if no demand is known. */
  get demand(): number | undefined {
    return this.#parts.demand?.();
  }

  get claimants(): number | undefined {
    return this.#parts.claimants?.();
  }

  /** The reason for which the last lease could not be had; undefined if it was granted. */
  get refusal(): Error | undefined {
    return this.#refusal;
  }

  change(most: number): void {
    this.#most = most;
    this.look();
  }

  /** Asks for no more leases. Free leases are released now, the rest when they come back. */
  stop(): void {
    this.change(0);
  }

  /** A member waits, or a lease was released. Safe to call at any time. */
  look(): void {
    this.#lookAgain = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    // A listener may ask for more, or give some back, before this is over.
    while (this.#lookAgain) {
      this.#lookAgain = false;
      const now = this.#parts.clock.now();
      this.#ask(now);
      this.#giveBack(now);
      this.#planNextLook(now);
    }
    this.#isLooking = false;
  }

  /** Leases that must go back to the source. */
  get #owed(): number {
    return Math.max(this.#recalled, this.#leased - this.#most, 0);
  }

  /** Leases that may be used here. */
  get #usable(): number {
    return this.#leased - this.#owed;
  }

  #ask(now: number): void {
    while (this.#lacks > 0 && now >= this.#retryAt) {
      const answer = this.#request.ask();
      if (answer === true) {
        this.#leased++;
        this.#refusal = undefined;
        continue;
      }
      if (answer instanceof Error) this.#noteRefusal(answer, now);
      else if (answer !== false) this.#refusal = answer.reason;
      break;
    }
    this.#budget.resize(this.#usable);
  }

  /** Leases that members wait for and that it may ask for. While others have a better claim, they would be recalled at once. */
  get #lacks(): number {
    const { waiting, held } = this.#budget;
    if (this.#recalled > 0) return 0;
    return Math.min(waiting - (this.#usable - held), this.#most - this.#leased);
  }

  #noteRefusal(error: Error, now: number): void {
    this.#refusal = error;
    this.#retryAt = now + this.#parts.retryMs;
  }

  #giveBack(now: number): void {
    const free = this.#leased - this.#budget.held;
    const count = Math.min(free, Math.max(this.#owed, this.#spare(now)));
    if (count <= 0) return;
    this.#leased -= count;
    this.#recalled = Math.max(0, this.#recalled - count);
    this.#budget.resize(this.#usable);
    this.#request.released();
    this.#parts.source.release(count, this);
    this.#lookAgain = true;
  }

  /** Number of leases that were free for a while. */
  #spare(now: number): number {
    const { waiting, held } = this.#budget;
    if (waiting > 0 || this.#leased <= held) {
      this.#spareAt = never;
      return 0;
    }
    const isDue = now >= this.#spareAt;
    if (!isDue && this.#spareAt !== never) return 0;
    const peak = this.#budget.takeHeldPeak();
    this.#spareAt = now + this.#parts.spareMs;
    return isDue ? this.#leased - peak : 0;
  }

  #planNextLook(now: number): void {
    if (this.#leased <= this.#budget.held) this.#spareAt = never;
    const retryAt = this.#budget.waiting > 0 && now < this.#retryAt ? this.#retryAt : never;
    const at = Math.min(retryAt, this.#spareAt);
    if (at === never) this.#alarm.clear();
    else this.#alarm.set(at, false);
  }

  // ---- calls from the source --------------------------------------------------------------------------------------

  leasesAvailable(): void {
    this.#request.answered();
    this.#retryAt = 0;
    this.look();
  }

  leasesGranted(count: number): number {
    this.#request.answered();
    const taken = Math.max(0, Math.min(count, this.#lacks));
    this.#leased += taken;
    if (taken > 0) this.#refusal = undefined;
    this.#retryAt = 0;
    this.look();
    return taken;
  }

  leasesDelayed(reason: Error): void {
    this.#request.delayed();
    this.#refusal = reason;
  }

  leasesRefused(error: Error): void {
    this.#request.answered();
    this.#noteRefusal(error, this.#parts.clock.now());
    this.look();
  }

  /** Connections of lost leases are closed; these leases are not released any more. */
  leasesLost(count: number): void {
    this.#leased = Math.max(0, this.#leased - count);
    this.#recalled = Math.min(this.#recalled, this.#leased);
    this.look();
  }

  leasesRecalled(count: number): void {
    this.#recalled = Math.min(count, this.#leased);
    this.look();
  }
}

/**
 * The pool of a user in a database over all workers. To the budgets it is one pool; what it holds of them, its workers share
 * fairly. A slot that no worker takes goes back to the budgets at once.
 */
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import { FairLeases } from '../../coordination/fair/fair-leases.js';
import type { FairMember } from '../../coordination/fair/fair-members.js';
import { usualPolicy } from '../../coordination/fair/fair-policy.js';
import { systemAlarm, systemClock } from '../../runtime/system.js';
import type { BudgetLeases } from '../tenants/server-budgets.js';

/** The part of a worker. */
export interface PoolPart extends FairHolder {
  /** Asked for, and not granted yet. */
  readonly wanted: number;
  /** As `takeDemandPeak()`, which is for the other workers; this one is for other pools. */
  takeOuterPeak(): number;
  /** So many connections are to be kept by this worker. */
  toKeep(count: number): void;
}

/** How often it is looked whether more can be kept, while the budgets have not enough. */
const keepingIntervalMs = 1_000;

export class SharedPool implements FairHolder {
  readonly name: string;
  readonly #budgets: BudgetLeases;
  readonly #workers = new FairLeases({
    policy: { ...usualPolicy, capacity: 0 },
    clock: systemClock,
    alarm: systemAlarm,
  });
  /** What each worker takes for the size of the pool: with the reserve, one may take more than another. */
  readonly #limits = new Map<PoolPart, number>();
  /** By the worker that has it in use: the size at which it is to stay, and what that keeps of it. */
  readonly #keepers = new Map<PoolPart, { size: number; part: number }>();
  #limit = 0;
  /** Slots that it has of the budgets, those that its workers hold, and the most that these ever were. */
  #granted = 0;
  #held = 0;
  #peak = 0;
  /** Of those granted: to be given back to others. */
  #recalled = 0;
  #keepingTimer: NodeJS.Timeout | undefined;

  constructor(name: string, budgets: BudgetLeases) {
    this.name = name;
    this.#budgets = budgets;
    this.#keepingTimer = undefined;
  }

  /** Its size. */
  get limit(): number {
    return this.#limit;
  }

  get peak(): number {
    return this.#peak;
  }

  /** Nobody has a part of it, and nothing is held. */
  get isOver(): boolean {
    return this.#limits.size === 0 && this.#held === 0;
  }

  // ---- what workers do --------------------------------------------------------------------------------------------

  /** A worker has such a pool. */
  join(part: PoolPart, worker: number): FairMember {
    this.#limits.set(part, 0);
    return this.#workers.join({ user: String(worker), database: '' });
  }

  /** What fairness gives to it, of the budgets and among the workers. */
  shareOf(member: FairMember): number {
    return Math.min(this.#budgets.share, member.share || Number.POSITIVE_INFINITY);
  }

  setLimit(part: PoolPart, limit: number): void {
    if (!this.#limits.has(part) || this.#limits.get(part) === limit) return;
    this.#limits.set(part, limit);
    this.#limitChanged();
  }

  /** One slot for a worker, now; false: it will be told. */
  take(part: PoolPart, member: FairMember): boolean {
    if (member.acquire(1, part) !== 'granted') {
      this.#askForMore();
      return false;
    }
    this.#held++;
    this.#peak = Math.max(this.#peak, this.#held);
    return true;
  }

  release(part: PoolPart, member: FairMember, count: number): void {
    this.#held -= count;
    member.release(count, part);
    this.#giveBackUnneeded();
  }

  /** A worker takes part in keeping the pool at this size; 0: no longer. */
  keep(part: PoolPart, size: number): void {
    if (size === 0) {
      if (this.#keepers.delete(part)) part.toKeep(0);
    } else this.#keepers.set(part, { size, part: this.#keepers.get(part)?.part ?? 0 });
    this.#shareOutKeeping();
  }

  /** As even as can be, and together exactly the size, as far as that takes nothing from others. */
  #shareOutKeeping(): void {
    const keepers = [...this.#keepers];
    const size = Math.max(0, ...keepers.map(([, keeper]) => keeper.size));
    const { reach = size } = this.#budgets;
    let left = Math.min(size, reach);
    clearTimeout(this.#keepingTimer);
    if (left < size)
      this.#keepingTimer = setTimeout(() => this.#shareOutKeeping(), keepingIntervalMs).unref();
    for (const [index, [part, keeper]] of keepers.entries()) {
      const count = Math.ceil(left / (keepers.length - index));
      left -= count;
      if (count === keeper.part) continue;
      keeper.part = count;
      part.toKeep(count);
    }
  }

  /** The worker asks for nothing any more. What it holds comes back by `release()`. */
  left(part: PoolPart, member: FairMember): void {
    this.#limits.delete(part);
    if (this.#keepers.delete(part)) this.#shareOutKeeping();
    member.leave();
    this.#limitChanged();
  }

  /** No worker has it any more. */
  close(): void {
    clearTimeout(this.#keepingTimer);
    this.#budgets.leave();
    this.#workers.stop();
  }

  #limitChanged(): void {
    this.#limit = Math.max(0, ...this.#limits.values());
    this.#resize();
    this.#giveBackUnneeded();
    if (this.#wanted > 0) this.#askForMore();
  }

  // ---- what budgets ask and say -----------------------------------------------------------------------------------

  get demand(): number {
    let demand = 0;
    for (const part of this.#limits.keys()) demand += part.demand;
    return demand;
  }

  takeDemandPeak(): number {
    let peak = 0;
    for (const part of this.#limits.keys()) peak += part.takeOuterPeak();
    return peak;
  }

  get longestIdleSince(): number | undefined {
    let longest: number | undefined;
    for (const { longestIdleSince: since } of this.#limits.keys())
      if (since !== undefined) longest = Math.min(since, longest ?? since);
    return longest;
  }

  get pending(): number {
    let pending = 0;
    for (const part of this.#limits.keys()) pending += part.pending ?? 0;
    return pending;
  }

  leasesAvailable(): void {
    this.#askForMore();
  }

  /** They are asked again with the next question of a worker. */
  leasesRefused(): void {}

  /** The connections go as they come back, and are then nobody's. */
  leasesLost(count: number): void {
    this.#granted = Math.max(0, this.#granted - count);
    this.#resize();
  }

  leasesRecalled(count: number): void {
    this.#recalled = count;
    this.#resize();
    this.#shareOutKeeping();
    // Not from the middle of their decision.
    process.nextTick(() => this.#giveBackUnneeded());
  }

  // ---- between the two --------------------------------------------------------------------------------------------

  get #wanted(): number {
    let wanted = 0;
    for (const part of this.#limits.keys()) wanted += part.wanted;
    return wanted;
  }

  /** What workers may hold together. */
  get #capacity(): number {
    return Math.min(this.#limit, Math.max(0, this.#granted - this.#recalled));
  }

  #resize(): void {
    const capacity = this.#capacity;
    if (capacity !== this.#workers.capacity) this.#workers.resize(capacity);
  }

  /** As many as are wanted, one after the other. */
  #askForMore(): void {
    while (this.#granted < this.#limit && this.#granted - this.#held < this.#wanted) {
      if (this.#budgets.acquire(1, this) !== 'granted') return;
      this.#granted++;
      this.#recalled = Math.max(0, this.#recalled - 1);
      this.#resize();
    }
  }

  #giveBackUnneeded(): void {
    const room = Math.max(0, this.#capacity - this.#held);
    const kept = Math.min(this.#wanted, room);
    const unneeded = this.#granted - this.#held - kept;
    if (unneeded <= 0) return;
    this.#granted -= unneeded;
    this.#recalled = Math.max(0, this.#recalled - unneeded);
    this.#resize();
    this.#budgets.release(unneeded, this);
  }
}

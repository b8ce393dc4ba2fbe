/** Speaks in the supervisor for a pool of a worker: what that asks for, holds, needs, and is told. */
import type { FairMember } from '../../coordination/fair/fair-members.js';
import type { FromSupervisor, PoolReport, ServerNote } from './messages.js';
import type { PoolPart, SharedPool } from './shared-pool.js';

export interface RemotePoolParts {
  readonly worker: number;
  readonly number: number;
  readonly user: string;
  readonly database: string;
  /** The pool of the user in the database, over all workers. */
  readonly shared: SharedPool;
  readonly clock: { now(): number };
  readonly send: (message: FromSupervisor) => void;
}

export class RemotePool implements PoolPart {
  readonly name: string;
  /** By the worker's number for it: server connections that are there. */
  readonly servers = new Map<number, ServerNote>();
  readonly #parts: RemotePoolParts;
  readonly #member: FairMember;
  #demand = 0;
  #peak = 0;
  #outerPeak = 0;
  #idleSince: number | undefined;
  #held = 0;
  #wanted = 0;
  /** Slots that were ever granted. */
  #sent = 0;
  #told = 0;
  #isGone = false;
  #share = Number.POSITIVE_INFINITY;

  constructor(parts: RemotePoolParts) {
    this.#parts = parts;
    this.name = `${parts.user}@${parts.database} of worker ${parts.worker}`;
    this.#idleSince = undefined;
    this.#member = parts.shared.join(this, parts.worker);
  }

  get user(): string {
    return this.#parts.user;
  }

  get database(): string {
    return this.#parts.database;
  }

  get held(): number {
    return this.#held;
  }

  get wanted(): number {
    return this.#wanted;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  // ---- what budgets ask -------------------------------------------------------------------------------------------

  get demand(): number {
    return this.#demand;
  }

  takeDemandPeak(): number {
    const peak = Math.max(this.#peak, this.#demand);
    this.#peak = this.#demand;
    return peak;
  }

  takeOuterPeak(): number {
    const peak = Math.max(this.#outerPeak, this.#demand);
    this.#outerPeak = this.#demand;
    return peak;
  }

  get longestIdleSince(): number | undefined {
    return this.#idleSince;
  }

  /** What it holds a slot for, and has not told of yet. */
  get pending(): number {
    return Math.max(0, this.#held - this.servers.size);
  }

  // ---- what the worker says ---------------------------------------------------------------------------------------

  reported({ demand, peak, idleForMs, limit, wanted, seen }: PoolReport): void {
    if (this.#isGone) return;
    this.#demand = demand;
    this.#peak = Math.max(this.#peak, peak);
    this.#outerPeak = Math.max(this.#outerPeak, peak);
    this.#idleSince = idleForMs === undefined ? undefined : this.#parts.clock.now() - idleForMs;
    // What is on its way to it counts as granted.
    this.#wanted = Math.max(0, wanted - (this.#sent - seen));
    this.#parts.shared.setLimit(this, limit);
    this.#tellShare();
    this.#take();
  }

  /** The worker has its own use for what is fair: between the two classes of a pool's work. */
  #tellShare(): void {
    const { shared, number, send } = this.#parts;
    const share = shared.shareOf(this.#member);
    if (share === this.#share) return;
    this.#share = share;
    send({ kind: 'share', pool: number, share: Number.isFinite(share) ? share : undefined });
  }

  keeps(size: number): void {
    if (!this.#isGone) this.#parts.shared.keep(this, size);
  }

  released(count: number): void {
    const given = Math.min(count, this.#held);
    if (given === 0) return;
    this.#held -= given;
    this.#told = Math.max(0, this.#told - given);
    this.#parts.shared.release(this, this.#member, given);
  }

  /** The worker, or the pool, is no more: it asks for nothing. What it holds is given back one by one. */
  gone(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#wanted = 0;
    this.#demand = 0;
    this.#idleSince = undefined;
    this.#parts.shared.left(this, this.#member);
  }

  // ---- what it is told --------------------------------------------------------------------------------------------

  leasesAvailable(): void {
    this.#take();
  }

  toKeep(count: number): void {
    this.#parts.send({ kind: 'keep', pool: this.#parts.number, count });
  }

  /** Those who share fairly never say so. */
  leasesRefused(): void {}
  leasesLost(): void {}

  leasesRecalled(count: number): void {
    if (this.#isGone || count === this.#told) return;
    this.#told = count;
    this.#parts.send({ kind: 'recalled', pool: this.#parts.number, count });
  }

  /** As many as are wanted and there. */
  #take(): void {
    const { shared, number, send } = this.#parts;
    while (this.#wanted > 0 && shared.take(this, this.#member)) {
      this.#wanted--;
      this.#held++;
      this.#sent++;
      this.#told = Math.max(0, this.#told - 1);
      send({ kind: 'granted', pool: number });
    }
  }
}

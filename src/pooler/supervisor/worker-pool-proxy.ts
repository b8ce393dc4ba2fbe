/** Speaks in the supervisor for a pool of a worker: what that asks for, holds, needs, and is told. */
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import { LeaseRequest } from '../../core/lease-request.js';
import type { PoolLeases } from '../budgets/server-budgets.js';
import type { DialNote, FromSupervisor, PoolReport, ServerNote } from '../messages/messages.js';
import type { PoolPart, SharedPool } from './shared-pool.js';

export interface WorkerPoolProxyParts {
  readonly worker: number;
  readonly number: number;
  readonly user: string;
  readonly database: string;
  /** The pool of the user in the database, over all workers. */
  readonly shared: SharedPool;
  /** A slot is of that pool's size, and of every budget above it. */
  readonly leases: (holder: WorkerPoolProxy) => PoolLeases;
  readonly clock: { now(): number };
  readonly send: (message: FromSupervisor) => void;
}

export class WorkerPoolProxy implements FairHolder, PoolPart {
  readonly name: string;
  /** By the worker's number for it: server connections that are there. */
  readonly servers = new Map<number, ServerNote>();
  /** By the same number: server connections that are being opened, and have a socket. */
  readonly dials = new Map<number, DialNote>();
  readonly #parts: WorkerPoolProxyParts;
  readonly #leases: PoolLeases;
  #report: PoolReport | undefined;
  #reportedAt = 0;
  #peak = 0;
  #held = 0;
  #wanted = 0;
  readonly #request: LeaseRequest;
  /** Slots that were ever granted. */
  #sent = 0;
  #told = 0;
  #isGone = false;
  #share = Number.POSITIVE_INFINITY;
  #shortage: string | undefined;

  constructor(parts: WorkerPoolProxyParts) {
    this.#parts = parts;
    this.name = `${parts.user}@${parts.database} of worker ${parts.worker}`;
    this.#report = undefined;
    this.#shortage = undefined;
    this.#leases = parts.leases(this);
    this.#request = new LeaseRequest(this.#leases, this);
    parts.shared.join(this);
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

  get isGone(): boolean {
    return this.#isGone;
  }

  // ---- what budgets ask -------------------------------------------------------------------------------------------

  get demand(): number {
    return this.#report?.demand ?? 0;
  }

  takeDemandPeak(): number {
    const peak = Math.max(this.#peak, this.demand);
    this.#peak = this.demand;
    return peak;
  }

  get longestIdleSince(): number | undefined {
    return this.#since(this.#report?.idleForMs);
  }

  get dialingSince(): number | undefined {
    return this.#since(this.#report?.dialingForMs);
  }

  get openedAt(): number | undefined {
    return this.#since(this.#report?.openedForMs);
  }

  /** Clocks differ, ages do not. */
  #since(ageMs: number | undefined): number | undefined {
    return ageMs === undefined ? undefined : this.#reportedAt - ageMs;
  }

  /** Until the worker has said something, it is taken to have some. */
  get hasClients(): boolean {
    return this.#report?.hasClients !== false;
  }

  get spare(): number {
    return this.#leases.spareBeside(this.#parts.shared.size);
  }

  /** What it holds a slot for, and has not told of yet. */
  get pending(): number {
    return Math.max(0, this.#held - this.servers.size);
  }

  // ---- what the worker says ---------------------------------------------------------------------------------------

  reported(report: PoolReport): void {
    if (this.#isGone) return;
    const { peak, limit, wanted, seen } = report;
    this.#report = report;
    this.#reportedAt = this.#parts.clock.now();
    this.#peak = Math.max(this.#peak, peak);
    // What is on its way to it counts as granted.
    this.#wanted = Math.max(0, wanted - (this.#sent - seen));
    this.#parts.shared.setLimit(this, limit);
    this.#ask();
    this.#tellShare();
  }

  /** The worker has its own use for what is fair, between the two classes of a pool's work; and it tells its clients what is missing. */
  #tellShare(): void {
    const { number, send } = this.#parts;
    const { share, shortage } = this.#leases;
    if (share === this.#share && (shortage === undefined) === (this.#shortage === undefined)) return;
    this.#share = share;
    this.#shortage = shortage;
    send({ kind: 'share', pool: number, share: Number.isFinite(share) ? share : undefined, shortage });
  }

  keeps(size: number): void {
    if (!this.#isGone) this.#parts.shared.keep(this, size);
  }

  released(count: number): void {
    const given = Math.min(count, this.#held);
    if (given === 0) return;
    this.#held -= given;
    this.#told = Math.max(0, this.#told - given);
    this.#leases.release(given, this);
  }

  /** The worker, or the pool, is no more: it asks for nothing. What it holds is given back one by one. */
  gone(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#wanted = 0;
    this.#report = undefined;
    this.#leases.leave();
    this.#parts.shared.left(this);
  }

  // ---- what it is told --------------------------------------------------------------------------------------------

  leasesGranted(count: number): number {
    this.#request.answered();
    const taken = Math.min(count, this.#wanted);
    for (let n = 0; n < taken; n++) this.#pass();
    this.#ask();
    return taken;
  }

  /** Budgets that are shared fairly hand out leases, and never say that one should ask. */
  leasesAvailable(): void {}

  toKeep(count: number): void {
    this.#parts.send({ kind: 'keep', pool: this.#parts.number, count });
  }

  /** Budgets that are shared fairly never refuse, nor lose anything. */
  leasesRefused(): void {}
  leasesLost(): void {}

  leasesRecalled(count: number, hanging: number): void {
    if (this.#isGone || (count === this.#told && hanging === 0)) return;
    this.#told = count;
    this.#parts.send({ kind: 'recalled', pool: this.#parts.number, count, hanging });
    // Not from the middle of their decision.
    process.nextTick(() => this.#parts.shared.shareOutAgain());
  }

  /** As many as are wanted, one after the other. */
  #ask(): void {
    while (this.#wanted > 0 && this.#request.ask() === true) this.#pass();
  }

  /** One more is the worker's. */
  #pass(): void {
    this.#wanted--;
    this.#held++;
    this.#sent++;
    this.#told = Math.max(0, this.#told - 1);
    this.#parts.send({ kind: 'granted', pool: this.#parts.number });
  }
}

/** A worker's pool in the supervisor: its requests, slots and demand, and the messages to it. */
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
  /** Leases for a slot: in the size of that pool, and in every budget above it. */
  readonly leases: (holder: WorkerPoolProxy) => PoolLeases;
  readonly clock: { now(): number };
  readonly send: (message: FromSupervisor) => void;
}

export class WorkerPoolProxy implements FairHolder, PoolPart {
  readonly name: string;
  /** Open server connections, by the worker's number for them. */
  readonly servers = new Map<number, ServerNote>();
  /** Server connections that are being opened and have a socket, by the same number. */
  readonly dials = new Map<number, DialNote>();
  readonly #parts: WorkerPoolProxyParts;
  readonly #leases: PoolLeases;
  #report: PoolReport | undefined;
  #reportedAt = 0;
  #peak = 0;
  #held = 0;
  #wanted = 0;
  readonly #request: LeaseRequest;
  /** Number of slots ever granted. */
  #sent = 0;
  #told = 0;
  #isGone = false;
  #share = Number.POSITIVE_INFINITY;
  #shortage: string | undefined;

  constructor(parts: WorkerPoolProxyParts) {
    this.#parts = parts;
    this.name = `${parts.user}@${parts.database} of worker ${parts.worker}`;
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

  // ---- called by budgets ------------------------------------------------------------------------------------------

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

  /** Ages are sent instead of times, because the clocks differ. */
  #since(ageMs: number | undefined): number | undefined {
    return ageMs === undefined ? undefined : this.#reportedAt - ageMs;
  }

  /** True until the worker has reported. */
  get hasClients(): boolean {
    return this.#report?.hasClients !== false;
  }

  get spare(): number {
    return this.#leases.spareBeside(this.#parts.shared.size);
  }

  /** Slots held for connections that the worker has not reported yet. */
  get pending(): number {
    return Math.max(0, this.#held - this.servers.size);
  }

  // ---- messages from the worker -----------------------------------------------------------------------------------

  reported(report: PoolReport): void {
    if (this.#isGone) return;
    const { peak, limit, wanted, seen } = report;
    this.#report = report;
    this.#reportedAt = this.#parts.clock.now();
    this.#peak = Math.max(this.#peak, peak);
    // Slots on their way to the worker count as granted.
    this.#wanted = Math.max(0, wanted - (this.#sent - seen));
    this.#parts.shared.setLimit(this, limit);
    this.#ask();
    this.#tellShare();
  }

  /** Sends share and shortage. The worker uses the share for the two classes of a pool's work, and tells its clients the shortage. */
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

  /** The worker or the pool has ended: it asks for nothing more. Its slots are given back one by one. */
  gone(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#wanted = 0;
    this.#report = undefined;
    this.#leases.leave();
    this.#parts.shared.left(this);
  }

  // ---- messages to the worker -------------------------------------------------------------------------------------

  leasesGranted(count: number): number {
    this.#request.answered();
    const taken = Math.min(count, this.#wanted);
    for (let n = 0; n < taken; n++) this.#pass();
    this.#ask();
    return taken;
  }

  /** Fairly shared budgets hand out leases, and never invite to ask. */
  leasesAvailable(): void {}

  toKeep(count: number): void {
    this.#parts.send({ kind: 'keep', pool: this.#parts.number, count });
  }

  /** Fairly shared budgets never refuse and never lose leases. */
  leasesRefused(): void {}
  leasesLost(): void {}

  leasesRecalled(count: number, hanging: number): void {
    if (this.#isGone || (count === this.#told && hanging === 0)) return;
    this.#told = count;
    this.#parts.send({ kind: 'recalled', pool: this.#parts.number, count, hanging });
    // Deferred, because the budgets are in the middle of a decision.
    process.nextTick(() => this.#parts.shared.shareOutAgain());
  }

  /** Asks for the wanted slots, one by one. */
  #ask(): void {
    while (this.#wanted > 0 && this.#request.ask() === true) this.#pass();
  }

  /** Passes one slot to the worker. */
  #pass(): void {
    this.#wanted--;
    this.#held++;
    this.#sent++;
    this.#told = Math.max(0, this.#told - 1);
    this.#parts.send({ kind: 'granted', pool: this.#parts.number });
  }
}

/**
 * The leases that a pool holds of the budget above it: one for each of its slots, from before the dial until the socket
 * is closed. Each granted lease ends exactly once: released, or lost.
 */
import { LeaseRequest } from './lease-request.js';
import type { LeaseHolder, Leases, LeaseWait } from './leases.js';

export class LeaseAccount {
  readonly #leases: Leases | undefined;
  readonly #holder: LeaseHolder;
  #held = 0;
  /** Granted, but the rate limiter was not ready: kept for the next attempt. */
  #hasOneInHand = false;
  /** Leases offered to this pool and not taken yet. */
  #offered = 0;
  /** Connections that exist without a lease, because it was lost. */
  #debt = 0;
  /** Leases recalled by the budget and not given back yet. */
  recalled = 0;
  /** Number of recalled leases for which hanging dials may be given up. */
  hanging = 0;
  readonly #request: LeaseRequest | undefined;

  constructor(leases: Leases | undefined, holder: LeaseHolder) {
    this.#leases = leases;
    this.#holder = holder;
    this.#request = leases && new LeaseRequest(leases, holder);
  }

  get held(): number {
    return this.#held;
  }

  get debt(): number {
    return this.#debt;
  }

  /** True if a lease can be had without taking it from others, as far as that is known. */
  get isOneFree(): boolean {
    return this.#hasOneInHand || this.#leases?.isFree?.(1) !== false;
  }

  /** Reserves a lease for one dial. True: reserved. False: not now. Otherwise the reason; a wait in the budget's queue is returned once. */
  reserve(): boolean | LeaseWait | Error {
    if (this.#request === undefined || this.#hasOneInHand) return true;
    // Debts come first: a new lease would be for a connection that must go.
    if (this.#debt > 0) return false;
    if (this.#offered > 0) {
      this.#offered--;
      return this.#take();
    }
    const answer = this.#request.ask();
    return answer === true ? this.#take() : answer;
  }

  #take(): true {
    this.#held++;
    this.#hasOneInHand = true;
    // A lease granted is one less to give back.
    if (this.recalled > 0) this.recalled--;
    return true;
  }

  /** Leases that are taken while `use` runs, or not at all. Returns how many were. */
  offer(count: number, use: () => void): number {
    this.answered();
    this.#offered = count;
    use();
    const taken = count - this.#offered;
    this.#offered = 0;
    return taken;
  }

  /** The reserved lease now belongs to a slot. */
  use(): void {
    this.#hasOneInHand = false;
  }

  /** No dial is wanted: releases the reserved lease. */
  putBack(): void {
    if (!this.#hasOneInHand) return;
    this.#hasOneInHand = false;
    this.#giveBack();
  }

  /** A slot is free, and its lease not needed any more. Returns whether one was given back. */
  slotFreed(): boolean {
    if (this.#leases === undefined) return false;
    if (this.#debt > 0) {
      this.#debt--;
      return false;
    }
    this.#giveBack();
    return true;
  }

  /** The request has been granted or refused. */
  answered(): void {
    this.#request?.answered();
  }

  /** The request waits in the budget's queue. */
  delayed(): void {
    this.#request?.delayed();
  }

  lost(count: number): void {
    let lost = Math.min(count, this.#held);
    this.#held -= lost;
    if (lost > 0 && this.#hasOneInHand) {
      this.#hasOneInHand = false;
      lost--;
    }
    this.#debt += lost;
  }

  #giveBack(): void {
    this.#held--;
    if (this.recalled > 0) this.recalled--;
    this.#request?.released();
    try {
      this.#leases?.release(1, this.#holder);
    } catch {
      // `release` must not throw. This pool has released the lease as far as it can, and goes on.
    }
  }
}

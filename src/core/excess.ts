/** Finds out if a pool has more connections than its limit, or more than its share of leases. */
import type { LeaseAccount } from './lease-account.js';
import type { Ledger } from './ledger.js';
import type { DiscardReason } from './reasons.js';

export class Excess {
  readonly #ledger: Ledger;
  readonly #leases: LeaseAccount;

  constructor(ledger: Ledger, leases: LeaseAccount) {
    this.#ledger = ledger;
    this.#leases = leases;
  }

  /** Connections that are being closed don't count: they go in any case. */
  get exists(): boolean {
    const { pending, live, limit } = this.#ledger;
    return pending + live > limit || this.#owesLeases;
  }

  /** Why one more connection is not kept; undefined where it is. */
  get reason(): DiscardReason | undefined {
    if (!this.exists) return undefined;
    // Leases that were lost come before leases that others have a better claim to.
    if (this.#leases.debt > this.#ledger.closing) return 'lease_lost';
    return this.#owesLeases ? 'lease_recalled' : 'over_limit';
  }

  /** True to give up a hanging dial because its lease has a better use elsewhere. */
  get claimsHangingDials(): boolean {
    return this.#leases.hanging > 0 && this.#owesLeases;
  }

  /** More leases are lost or recalled than connections are being closed. */
  get #owesLeases(): boolean {
    return this.#leases.debt + this.#leases.recalled > this.#ledger.closing;
  }
}

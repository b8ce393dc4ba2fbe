// A pool of a worker whose figures are set by hand.
import type { FairHolder } from '../../../src/coordination/fair/fair-holder.js';
import type { SupervisorLeases } from '../../../src/pooler/worker/supervisor-leases.js';

export class FiguredEngine implements FairHolder {
  readonly name = 'engine';
  readonly limit = 20;
  readonly #leases: SupervisorLeases;
  held = 0;
  demand = 0;
  /** Since it was last asked; the demand where it is less. */
  peak = 0;
  longestIdleSince: number | undefined;
  /** How often it was looked at. */
  looks = 0;

  constructor(leases: SupervisorLeases, demand = 0) {
    this.#leases = leases;
    this.demand = demand;
  }

  ask(): void {
    if (this.demand > this.held && this.#leases.acquire(1, this) === 'granted') this.held++;
  }

  giveBack(): void {
    this.held--;
    this.#leases.release(1, this);
  }

  takeDemandPeak(): number {
    this.looks++;
    return Math.max(this.peak, this.demand);
  }

  leasesAvailable(): void {
    this.ask();
  }

  leasesGranted(count: number): number {
    const taken = Math.min(count, Math.max(0, this.demand - this.held));
    this.held += taken;
    return taken;
  }

  leasesRefused(): void {}
  leasesLost(): void {}
  leasesRecalled(): void {}
}

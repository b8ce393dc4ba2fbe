/**
 * Who hands out leases, and the network to it. The leases are the product's own; here they are only carried: each
 * message takes half of a round trip, and during an outage it is lost.
 *
 * Who was refused keeps its place in the line of the leases. When its turn comes, the lease is sent to it.
 */
import { LocalLeases } from '../coordination/local-leases.js';
import type { LeaseHolder, Leases } from '../core/leases.js';
import type { Random } from '../kernel/random.js';
import { draw } from './chance.js';
import { CutOff } from './cut-off.js';
import type { Laws } from './laws.js';
import { LeaseClient } from './lease-client.js';
import type { LeaseKeeper } from './process-leases.js';
import type { CoordinatorRecord } from './result.js';
import type { CoordinatorPlan } from './scenario.js';
import type { ServiceProcess } from './service-process.js';
import type { Timeline } from './timeline.js';

export class Coordinator implements LeaseKeeper {
  readonly plan: CoordinatorPlan;
  readonly timeline: Timeline;
  readonly #laws: Laws;
  readonly #leases: Leases;
  readonly #cutOff = new CutOff();
  /** Granted and not given back, as counted here: by what was said, not by what the leases believe. */
  #outstanding = 0;
  #peak = 0;

  constructor(
    plan: CoordinatorPlan,
    timeline: Timeline,
    laws: Laws,
    leases: Leases = new LocalLeases({ limit: plan.leaseLimit }),
  ) {
    this.plan = plan;
    this.timeline = timeline;
    this.#laws = laws;
    this.#leases = leases;
  }

  clientFor(process: ServiceProcess, random: Random): LeaseClient {
    return new LeaseClient(process, this, random);
  }

  record(): CoordinatorRecord {
    return { leaseLimit: this.plan.leaseLimit, peakLeases: this.#peak, leases: this.#outstanding };
  }

  /** Carries a message from or to a service. */
  carry(service: string, random: Random, arrived: () => void, lost: () => void): void {
    const arrivesAt = this.timeline.now + draw(this.plan.latency, random) / 2;
    const isLost = this.#cutOff.has(service);
    this.timeline.plan(arrivesAt, isLost ? lost : () => (this.#cutOff.has(service) ? lost() : arrived()));
  }

  /** The answer of the leases: none is an error, which says why. */
  grant(count: number, holder: RemoteHolder): Error | undefined {
    const answer = this.#leases.acquire(count, holder);
    if (answer !== 'granted')
      return answer instanceof Error ? answer : new Error('The leases did not answer.');
    this.#outstanding += count;
    this.#peak = Math.max(this.#peak, this.#outstanding);
    this.#laws.checkLeases(this.#outstanding, this.plan.leaseLimit);
    return undefined;
  }

  takeBack(count: number, holder: RemoteHolder): void {
    this.#outstanding -= count;
    this.#leases.release(count, holder);
  }

  cutOff(service: string): void {
    this.#cutOff.add(service);
  }

  reconnect(service: string): void {
    this.#cutOff.remove(service);
  }
}

/** A process, as the leases know it. */
export class RemoteHolder implements LeaseHolder {
  readonly name: string;
  readonly #client: LeaseClient;

  constructor(name: string, client: LeaseClient) {
    this.name = name;
    this.#client = client;
  }

  /** It is this one's turn: what it was refused is taken for it at once, or the next in line would be told. */
  leasesAvailable(): void {
    this.#client.sendDeferred();
  }

  leasesRefused(error: Error): void {
    this.#client.sendRefusal(error);
  }

  leasesLost(count: number): void {
    this.#client.sendLoss(count);
  }
}

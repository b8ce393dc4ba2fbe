/**
 * A coordinator such as a service of one's own, and the network to it. The processes have the product's own way of talking to it;
 * here it counts leases, and does once what is sent again. Each message takes half of a round trip, and is lost during an outage.
 */
import type { GiveUp, LeaseChannel, Reply } from '../../coordination/lease-channel.js';
import type { Random } from '../../kernel/random.js';
import type { Laws } from '../laws.js';
import type { CoordinatorRecord } from '../result.js';
import type { CoordinatorPlan } from '../scenario/scenario.js';
import { CutOff } from '../server/cut-off.js';
import { draw } from '../time/chance.js';
import type { Timeline } from '../time/timeline.js';
import { CoordinatorClient } from './coordinator-client.js';
import type { LeaseOwnership } from './lease-ownership.js';
import type { LeaseKeeper, LeasingProcess } from './process-leases.js';

/** True if so many leases may be held. */
export type MayGrant = (held: number, limit: number) => boolean;

export class Coordinator implements LeaseKeeper {
  readonly plan: CoordinatorPlan;
  readonly timeline: Timeline;
  readonly #laws: Laws;
  readonly #mayGrant: MayGrant;
  readonly #cutOff = new CutOff();
  #leases = 0;
  #peak = 0;

  constructor(
    plan: CoordinatorPlan,
    timeline: Timeline,
    laws: Laws,
    mayGrant: MayGrant = (held, limit) => held <= limit,
  ) {
    this.plan = plan;
    this.timeline = timeline;
    this.#laws = laws;
    this.#mayGrant = mayGrant;
  }

  clientFor(process: LeasingProcess, random: Random): CoordinatorClient {
    return new CoordinatorClient(process, this, random);
  }

  record(): CoordinatorRecord {
    return { leaseLimit: this.plan.leaseLimit, peakLeases: this.#peak, leases: this.#leases };
  }

  /** A process's way to it. Answers come in as everything that happens in a process does. */
  channelFor(process: LeasingProcess, owner: LeaseOwnership, random: Random): LeaseChannel {
    const call = <T>(effect: () => T, answer: (reply: Reply<T>) => void): GiveUp => {
      this.#carry(process.name, random, () => {
        const value = effect();
        this.#carry(process.name, random, () => process.deliver(() => answer({ value })));
      });
      return () => {};
    };
    return {
      acquire: (count, id, answer) => call(() => this.#acquire(count, id, owner), answer),
      release: (count, id, answer) => call(() => this.#release(count, id, owner), answer),
      cancel: (_count, id, answer) => call(() => this.#cancel(id, owner), answer),
    };
  }

  /** Known to have arrived only when it does. */
  #carry(service: string, random: Random, arrived: () => void): void {
    const wasLost = this.#cutOff.has(service);
    this.timeline.plan(this.timeline.now + draw(this.plan.latency, random) / 2, () => {
      if (!wasLost && !this.#cutOff.has(service)) arrived();
    });
  }

  #acquire(count: number, id: string, owner: LeaseOwnership): boolean {
    const { leaseLimit } = this.plan;
    if (owner.done.has(id) || !this.#mayGrant(this.#leases + count, leaseLimit)) return false;
    owner.granted.set(id, count);
    this.#add(count, owner);
    return true;
  }

  #release(count: number, id: string, owner: LeaseOwnership): void {
    if (owner.done.has(id)) return;
    owner.done.add(id);
    this.#add(-count, owner);
  }

  #cancel(id: string, owner: LeaseOwnership): void {
    if (owner.done.has(id)) return;
    owner.done.add(id);
    this.#add(-(owner.granted.get(id) ?? 0), owner);
  }

  #add(count: number, owner: LeaseOwnership): void {
    owner.leases += count;
    this.#leases += count;
    this.#peak = Math.max(this.#peak, this.#leases);
    this.#laws.checkLeases(this.#leases, this.plan.leaseLimit);
  }

  cutOff(service: string): void {
    this.#cutOff.add(service);
  }

  reconnect(service: string): void {
    this.#cutOff.remove(service);
  }
}

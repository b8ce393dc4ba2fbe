/** The leases of one process, of a coordinator: the product's own, and what the world wants to know of them. */
import { CoordinatedLeases } from '../../coordination/coordinated-leases.js';
import type { LeaseChannel } from '../../coordination/lease-channel.js';
import type { LeaseAnswer, LeaseHolder } from '../../core/leases.js';
import type { Random } from '../../kernel/random.js';
import type { CoordinatorPlan } from '../scenario/scenario.js';
import type { Timeline } from '../time/timeline.js';
import { LeaseOwnership } from './lease-ownership.js';
import type { LeasingProcess, ProcessLeases } from './process-leases.js';

/** The coordinator, as a process reaches it. */
export interface LeaseSource {
  readonly timeline: Timeline;
  readonly plan: CoordinatorPlan;
  channelFor(process: LeasingProcess, owner: LeaseOwnership, random: Random): LeaseChannel;
}

/** A program that ends waits so long until the coordinator has everything back. */
const finishMs = 30_000;

export class CoordinatorClient implements ProcessLeases {
  readonly #process: LeasingProcess;
  readonly #leases: CoordinatedLeases;
  readonly #owner = new LeaseOwnership();
  #isAbandoned = false;

  constructor(process: LeasingProcess, coordinator: LeaseSource, random: Random) {
    const { timeline, plan } = coordinator;
    this.#process = process;
    this.#leases = new CoordinatedLeases(
      coordinator.channelFor(process, this.#owner, random),
      {
        clock: process.clock,
        alarm: process.alarmFactory,
        random,
        timeoutMs: plan.timeoutMs,
        soon: (run) => void timeline.plan(timeline.now, () => process.deliver(run)),
      },
      () => {},
    );
  }

  get held(): number {
    return this.#leases.held;
  }

  get isAsking(): boolean {
    return this.#leases.isAsking;
  }

  /** One that could not give back in time has left it to others. */
  get outstanding(): number {
    return this.#isAbandoned ? 0 : this.#owner.leases;
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    return this.#leases.acquire(count, holder);
  }

  release(count: number, holder: LeaseHolder): void {
    this.#leases.release(count, holder);
  }

  finish(onFinished: () => void): void {
    const stopWaiting = this.#leases.whenQuiet(onFinished);
    this.#process.later(finishMs, () => {
      if (this.#leases.isQuiet) return;
      stopWaiting();
      this.#isAbandoned = true;
      onFinished();
    });
  }

  /** Its leases stay held for ever, as far as the coordinator knows. */
  processCrashed(): void {}

  /** The coordinator is not told. */
  sessionsGone(): void {}
}

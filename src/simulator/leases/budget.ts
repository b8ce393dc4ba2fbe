/**
 * One budget that the pools of all services share fairly, as those of users behind one pooler do: the product's own. The
 * services are its users. There is no network in between: it lives where the pools are.
 */
import type { FairBudget } from '../../coordination/fair/fair-budget.js';
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import type { FairMember } from '../../coordination/fair/fair-member.js';
import { usualPolicy, usualTerms } from '../../coordination/fair/fair-policy.js';
import { FairQueue } from '../../coordination/fair/fair-queue.js';
import type { LeaseAnswer, LeaseHolder } from '../../core/leases.js';
import type { AlarmFactory } from '../../kernel/clock.js';
import type { Laws } from '../laws.js';
import type { BudgetRecord } from '../result.js';
import type { BudgetPlan } from '../scenario/scenario.js';
import type { Server } from '../server/server.js';
import { ServiceClock } from '../time/service-clock.js';
import { Planned, type Timeline } from '../time/timeline.js';
import type { LeasingProcess, ProcessLeases } from './process-leases.js';

export class Budget {
  readonly plan: BudgetPlan;
  readonly #queue: FairQueue;
  readonly #budget: FairBudget;
  readonly #clock: ServiceClock;
  readonly #server: Server;
  readonly #laws: Laws;
  #peak = 0;

  /** `weights`: of each service that has one. */
  constructor(
    plan: BudgetPlan,
    weights: ReadonlyMap<string, number>,
    timeline: Timeline,
    server: Server,
    laws: Laws,
  ) {
    const { capacity, turnMs, rebalanceIntervalMs, demandWindowMs, foresees } = plan;
    this.plan = plan;
    this.#server = server;
    this.#laws = laws;
    this.#clock = new ServiceClock(timeline, 0, 0);
    const alarm: AlarmFactory = (ring) => {
      const planned = new Planned(0, ring);
      return {
        granularityMs: 0,
        set: (at) => timeline.replan(planned, timeline.now + (at - this.#clock.now())),
        keepProcessAlive: () => {},
        clear: () => timeline.cancel(planned),
      };
    };
    this.#queue = new FairQueue({
      policy: {
        ...usualPolicy,
        turn: turnMs,
        rebalanceInterval: rebalanceIntervalMs,
        demandWindow: demandWindowMs,
        foresees,
      },
      clock: this.#clock,
      alarm,
    });
    this.#budget = this.#queue.addBudget({
      name: 'budget',
      capacity,
      termsOf: (user) => ({ ...usualTerms, weight: weights.get(user) ?? 1 }),
    });
  }

  join(process: LeasingProcess): BudgetClient {
    const { name: user } = process;
    const member = this.#queue.join({ user, database: 'all' }, [{ budget: this.#budget, user }]);
    return new BudgetClient(process, member, this.#clock, () => this.#granted());
  }

  /** Judged by what the server has, and by what was given out. */
  #granted(): void {
    const { capacity, held } = this.#budget;
    this.#peak = Math.max(this.#peak, held);
    this.#laws.checkLeases(held, capacity);
    this.#laws.checkLeases(this.#server.size, capacity);
  }

  shares(): ReadonlyMap<string, number> {
    return new Map(this.#budget.stats().users.map(({ user, share }) => [user, share]));
  }

  record(): BudgetRecord {
    const { capacity, recalls, rebalances } = this.#budget.stats();
    return { capacity, peak: this.#peak, recalls, rebalances };
  }

  stop(): void {
    this.#queue.stop();
  }
}

/** Speaks for one process, so that all that it is told happens in it. */
export class BudgetClient implements ProcessLeases, FairHolder {
  readonly name: string;
  readonly #process: LeasingProcess;
  readonly #member: FairMember;
  readonly #clock: ServiceClock;
  readonly #granted: () => void;

  constructor(process: LeasingProcess, member: FairMember, clock: ServiceClock, granted: () => void) {
    this.name = process.name;
    this.#process = process;
    this.#member = member;
    this.#clock = clock;
    this.#granted = granted;
  }

  get held(): number {
    return this.#member.held;
  }

  get outstanding(): number {
    return this.#member.held;
  }

  get isAsking(): boolean {
    return this.#member.isWaiting;
  }

  // ---- what the engine asks ---------------------------------------------------------------------------------------

  acquire(count: number, _holder: LeaseHolder): LeaseAnswer {
    const answer = this.#member.acquire(count, this);
    if (answer === 'granted') this.#granted();
    return answer;
  }

  release(count: number, _holder: LeaseHolder): void {
    this.#member.release(count, this);
  }

  // ---- what the budget asks and says ------------------------------------------------------------------------------

  get demand(): number {
    return this.#process.pool.demand;
  }

  takeDemandPeak(): number {
    return this.#process.pool.takeDemandPeak();
  }

  get longestIdleSince(): number | undefined {
    const { pool, clockNow } = this.#process;
    const since = pool.longestIdleSince;
    return since === undefined ? undefined : this.#clock.now() - (clockNow - since);
  }

  /** A process that stands still takes what it is given, and gives back later what it has no use for. */
  leasesGranted(count: number): number {
    const { pool, isGone } = this.#process;
    let taken = isGone ? 0 : count;
    let isLate = false;
    this.#process.deliver(() => {
      taken = pool.leasesGranted(count);
      if (isLate && taken < count) this.#member.release(count - taken, this);
    });
    isLate = true;
    if (taken > 0) this.#granted();
    return taken;
  }

  leasesAvailable(): void {
    this.#process.deliver(() => this.#process.pool.leasesAvailable());
  }

  leasesRefused(error: Error): void {
    this.#process.deliver(() => this.#process.pool.leasesRefused(error));
  }

  leasesLost(count: number): void {
    this.#process.deliver(() => this.#process.pool.leasesLost(count));
  }

  leasesRecalled(count: number, hanging: number): void {
    this.#process.deliver(() => this.#process.pool.leasesRecalled(count, hanging));
  }

  // ---- how it ends ------------------------------------------------------------------------------------------------

  finish(onFinished: () => void): void {
    this.#member.leave();
    onFinished();
  }

  /** Its connections are there until the server has noticed. */
  processCrashed(): void {
    this.#member.leave();
  }

  sessionsGone(): void {
    this.#member.release(this.#member.held, this);
  }
}

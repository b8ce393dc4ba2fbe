/** One service of the scenario: one process after the other, and what all of them together have done. */
import type { PoolPolicy } from '../../core/pool-policy.js';
import { type DiscardReason, discardReasons, type RefillCause, refillCauses } from '../../core/reasons.js';
import type { Random } from '../../kernel/random.js';
import { SlidingWindow } from '../measures/sliding-window.js';
import { WorkTally } from '../measures/work-tally.js';
import type { ServicePlan } from '../scenario/scenario.js';
import type { Chance } from '../time/chance.js';
import type { MakeLimiter } from './limiters.js';
import { zeros } from './process-tally.js';
import { policyOf, ServiceProcess, type Surroundings } from './service-process.js';

/** Totals of a service since the beginning. */
export interface ServiceTotals {
  readonly checkouts: number;
  readonly emptyEvents: number;
  /** Empty events before a process had all it wants for the first time. */
  readonly earlyEmptyEvents: number;
  readonly refills: number;
  readonly refillFailures: Readonly<Record<RefillCause, number>>;
  readonly limiterDenies: number;
  readonly discards: Readonly<Record<DiscardReason, number>>;
}

export class Service {
  readonly plan: ServicePlan;
  readonly policy: PoolPolicy;
  readonly work = new WorkTally();
  /** The times at which the server accepted its connections. */
  readonly accepts = new SlidingWindow();
  readonly #surroundings: Surroundings;
  readonly #makeLimiter: MakeLimiter;
  readonly #chance: Chance;
  readonly #network: Random;
  /** Processes that ended in good order, with leases to account for. */
  readonly #ended: ServiceProcess[] = [];
  #starts = 0;
  /** Totals of the processes that have ended. */
  #past: ServiceTotals | undefined;
  #pastPeak = 0;
  #process: ServiceProcess | undefined;
  /** Empty events of the present process before it was full for the first time. */
  #earlyEmptyEvents: number | undefined;
  #isOver = false;

  constructor(surroundings: Surroundings, plan: ServicePlan, makeLimiter: MakeLimiter, chance: Chance) {
    this.plan = plan;
    this.policy = policyOf(plan);
    this.#surroundings = surroundings;
    this.#makeLimiter = makeLimiter;
    this.#chance = chance;
    this.#network = chance.stream(`${plan.name}/network`);
  }

  /** The one that runs, or is on its way out. */
  get process(): ServiceProcess | undefined {
    return this.#process;
  }

  /** Leases that its processes should have given back by now. What a crashed one had is beyond reach. */
  get unreturnedLeases(): number {
    return this.#ended.reduce((sum, { leases }) => sum + (leases?.outstanding ?? 0), 0);
  }

  /** How many connections it may ever have. */
  get limit(): number {
    return this.policy.max + (this.plan.reserve?.size ?? 0);
  }

  /** How many connections it wants to have, those in use included, whatever its callers do. */
  get wanted(): number {
    const { max, minIdle, warmup, keeper } = this.policy;
    return Math.min(max, Math.max(minIdle, warmup?.target ?? 0, keeper?.target ?? 0));
  }

  /** How many it has, as both it and the server see it. */
  get has(): number {
    const process = this.#process;
    return process === undefined ? 0 : process.pool.live - process.lostSessions;
  }

  start(): void {
    if (this.#process !== undefined || this.#isOver) return;
    const { plan, accepts } = this;
    const engine = this.#chance.stream(`${plan.name}/engine/${this.#starts++}`);
    const parts = { plan, makeLimiter: this.#makeLimiter, network: this.#network, engine, accepts };
    this.#process = new ServiceProcess(this.#surroundings, parts);
    this.#earlyEmptyEvents = undefined;
    this.#process.start();
  }

  crash(): void {
    const process = this.#process;
    this.#rememberProcess();
    process?.crash();
  }

  /** Ends the process that runs in good order, but within `deadlineMs`. Should it crash on the way, that is all. */
  stop(deadlineMs: number, onStopped: () => void): void {
    const process = this.#process;
    if (!process?.takesCallers) return;
    process.drain(deadlineMs, () => {
      this.#rememberProcess();
      if (process.leases !== undefined) this.#ended.push(process);
      onStopped();
    });
  }

  /** As `stop`, and nothing is started any more. */
  stopForGood(deadlineMs: number): void {
    this.#isOver = true;
    this.stop(deadlineMs, () => {});
  }

  /** Has had all it wants for the first time since its process started. */
  filled(): void {
    this.#earlyEmptyEvents = this.#process?.tally.emptyEvents;
  }

  totals(): ServiceTotals {
    const process = this.#process;
    if (process === undefined) return this.#past ?? nothing;
    return this.#withPast(totalsOf(process, this.#earlyEmptyEvents ?? 0));
  }

  /** The most connections that it ever had, by its own account. */
  get peak(): number {
    return Math.max(this.#pastPeak, this.#process?.pool.stats().peak ?? 0);
  }

  #rememberProcess(): void {
    const process = this.#process;
    if (process === undefined) return;
    // Gone before it was full: all that it found empty was before that.
    const early = this.#earlyEmptyEvents ?? process.tally.emptyEvents;
    this.#past = this.#withPast(totalsOf(process, early));
    this.#pastPeak = this.peak;
    this.#process = undefined;
  }

  #withPast(now: ServiceTotals): ServiceTotals {
    return this.#past === undefined ? now : sum(this.#past, now);
  }
}

const nothing: ServiceTotals = {
  checkouts: 0,
  emptyEvents: 0,
  earlyEmptyEvents: 0,
  refills: 0,
  refillFailures: zeros(refillCauses),
  limiterDenies: 0,
  discards: zeros(discardReasons),
};

function totalsOf({ tally, limiter }: ServiceProcess, earlyEmptyEvents: number): ServiceTotals {
  const { checkouts, emptyEvents, refills, refillFailures, discards } = tally;
  const limiterDenies = limiter?.denies ?? 0;
  return { checkouts, emptyEvents, earlyEmptyEvents, refills, refillFailures, limiterDenies, discards };
}

function sum(a: ServiceTotals, b: ServiceTotals): ServiceTotals {
  return {
    checkouts: a.checkouts + b.checkouts,
    emptyEvents: a.emptyEvents + b.emptyEvents,
    earlyEmptyEvents: a.earlyEmptyEvents + b.earlyEmptyEvents,
    refills: a.refills + b.refills,
    refillFailures: sumOf(refillCauses, a.refillFailures, b.refillFailures),
    limiterDenies: a.limiterDenies + b.limiterDenies,
    discards: sumOf(discardReasons, a.discards, b.discards),
  };
}

type Counts<Word extends string> = Readonly<Record<Word, number>>;

function sumOf<Word extends string>(
  words: readonly Word[],
  a: Counts<Word>,
  b: Counts<Word>,
): Record<Word, number> {
  const total = zeros(words);
  for (const word of words) total[word] = a[word] + b[word];
  return total;
}

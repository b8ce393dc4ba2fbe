/**
 * The callers of all services. They come whether or not those before them have been served, as long as their service is
 * up: they belong to its process, and none come while that is down or shutting down.
 */
import type { Random } from '../../kernel/random.js';
import type { Laws } from '../laws.js';
import { RecentWaits, WaitHistogram } from '../measures/wait-histogram.js';
import { TenantTally } from '../measures/work-tally.js';
import type { Service } from '../process/service.js';
import type { ServiceProcess } from '../process/service-process.js';
import type { CallerEnds } from '../result.js';
import type { ArrivalPlan, Scenario } from '../scenario/scenario.js';
import { type Chance, draw, exponential } from '../time/chance.js';
import type { Timeline } from '../time/timeline.js';
import { Caller, type CallerDiary } from './caller.js';
import { ClosedLoop } from './closed-loop.js';
import { Presences } from './presences.js';

export class Workload {
  readonly waits = new WaitHistogram();
  readonly recentWaits = new RecentWaits();
  readonly #timeline: Timeline;
  readonly #laws: Laws;
  readonly #endsAt: number;
  /** In the order of the scenario. */
  readonly #tenants = new Map<string, TenantTally>();
  /** Callers of each service, by its name. */
  readonly #presences = new Map<string, ReadonlyMap<string, Presences>>();
  readonly #loops = new Map<string, readonly ClosedLoop[]>();

  constructor(scenario: Scenario, timeline: Timeline, laws: Laws) {
    this.#timeline = timeline;
    this.#laws = laws;
    this.#endsAt = scenario.durationMs;
    for (const { workload } of scenario.services) {
      for (const { tenant } of workload?.arrivals ?? []) {
        if (!this.#tenants.has(tenant)) this.#tenants.set(tenant, new TenantTally(tenant));
      }
    }
  }

  get tenants(): TenantTally[] {
    return [...this.#tenants.values()];
  }

  /** Each caller who came is in exactly one of the others in the end. */
  readonly callers = { came: 0, served: 0, failed: 0, gone: 0 };

  /** Outcomes of callers besides waiting. */
  get ends(): CallerEnds {
    const sum = (count: (tenant: TenantTally) => number): number =>
      this.tenants.reduce((total, tenant) => total + count(tenant), 0);
    return { cutOff: sum((tenant) => tenant.cutOff), keptAway: sum((tenant) => tenant.keptAway) };
  }

  begin(service: Service, chance: Chance): void {
    const presences = new Map<string, Presences>();
    this.#presences.set(service.plan.name, presences);
    for (const [index, plan] of (service.plan.workload?.arrivals ?? []).entries()) {
      const ofTenant = presences.get(plan.tenant) ?? new Presences();
      presences.set(plan.tenant, ofTenant);
      const random = chance.stream(`${service.plan.name}/arrivals/${index}`);
      const tenant = this.#tenants.get(plan.tenant) as TenantTally;
      const diary = this.#diary(service, tenant);
      const keptAway = (holdMs: number): void => {
        tenant.keptAway++;
        tenant.askedMs += holdMs;
      };
      if (plan.clients === undefined) {
        new Arrivals(this.#timeline, service, plan, random, diary, ofTenant, keptAway).begin(this.#endsAt);
        continue;
      }
      const loop = new ClosedLoop(this.#timeline, service, plan, random, diary, ofTenant);
      this.#loops.set(service.plan.name, [...(this.#loops.get(service.plan.name) ?? []), loop]);
      loop.begin(this.#endsAt);
    }
  }

  /** Counts the outcomes of callers anew. */
  forget(): void {
    this.waits.forget();
    for (const tenant of this.tenants) tenant.forget();
  }

  /** With a process that crashes, those who wait in it are gone, without an answer. */
  crashed(process: ServiceProcess): void {
    this.callers.gone += process.pool.waiting;
    this.noneServed(process);
  }

  /** No caller has a connection of this process any more, released or not. */
  noneServed(process: ServiceProcess): void {
    for (const [name, presences] of this.#presences.get(process.name) ?? []) {
      const tenant = this.#tenants.get(name) as TenantTally;
      tenant.inUse.change(-presences.endServed(process), this.#timeline.now);
    }
    for (const loop of this.#loops.get(process.name) ?? []) loop.processEnded(process);
  }

  #diary(service: Service, tenant: TenantTally): CallerDiary {
    const { work } = service;
    const record = (waitMs: number, hasFailed: boolean): void => {
      this.waits.record(waitMs, hasFailed);
      this.recentWaits.record(waitMs);
      work.recentWaits.record(waitMs);
      tenant.waits.record(waitMs, hasFailed);
    };
    return {
      came: (caller) => {
        this.callers.came++;
        work.started++;
        caller.presence.count++;
        tenant.askedMs += caller.holdMs;
      },
      served: (caller, waitMs) => {
        this.callers.served++;
        tenant.givenMs += caller.holdMs;
        caller.presence.served++;
        tenant.inUse.change(1, this.#timeline.now);
        record(waitMs, false);
      },
      failed: (_caller, waitMs) => {
        this.callers.failed++;
        record(waitMs, true);
      },
      cutOff: () => {
        tenant.cutOff++;
      },
      gaveBack: ({ presence }) => {
        // A pool that has to end takes connections away: who then gives one back was not counted any more.
        if (presence.served === 0) return;
        presence.served--;
        tenant.inUse.change(-1, this.#timeline.now);
      },
      left: (caller, isDone) => {
        caller.presence.count--;
        if (!isDone) return;
        work.completed++;
        tenant.completed++;
      },
      answeredTwice: () => {
        this.#laws.report('answer', service.plan.name, 'a caller was given a second answer');
      },
    };
  }
}

/** One kind of caller of one service. */
class Arrivals {
  readonly #timeline: Timeline;
  readonly #service: Service;
  readonly #plan: ArrivalPlan;
  readonly #random: Random;
  readonly #diary: CallerDiary;
  readonly #presences: Presences;
  readonly #keptAway: (holdMs: number) => void;
  #endsAt = 0;

  constructor(
    timeline: Timeline,
    service: Service,
    plan: ArrivalPlan,
    random: Random,
    diary: CallerDiary,
    presences: Presences,
    keptAway: (holdMs: number) => void,
  ) {
    this.#timeline = timeline;
    this.#service = service;
    this.#plan = plan;
    this.#random = random;
    this.#diary = diary;
    this.#presences = presences;
    this.#keptAway = keptAway;
  }

  begin(worldEndsAt: number): void {
    const { fromMs, untilMs, perSecond, everyMs } = this.#plan;
    this.#endsAt = Math.min(worldEndsAt, untilMs);
    if (perSecond !== undefined) this.#planNext(fromMs + this.#gapMs(perSecond));
    else if (everyMs !== undefined) this.#planNext(fromMs);
  }

  #gapMs(perSecond: number): number {
    return exponential(1_000 / perSecond, this.#random);
  }

  #planNext(at: number): void {
    if (at >= this.#endsAt) return;
    this.#timeline.plan(at, () => {
      const { perSecond, everyMs, burst } = this.#plan;
      for (let n = perSecond === undefined ? burst : 1; n > 0; n--) this.#arrive();
      this.#planNext(perSecond === undefined ? at + (everyMs as number) : at + this.#gapMs(perSecond));
    });
  }

  #arrive(): void {
    const { process } = this.#service;
    // Drawn even if no process takes callers, so that the random numbers of later callers stay the same.
    const holdMs = draw(this.#plan.hold, this.#random);
    if (process === undefined || !process.takesCallers) return;
    const presence = this.#presences.in(process);
    const { queryTimeoutMs } = this.#plan;
    const caller = new Caller(process, this.#timeline, this.#diary, presence, holdMs, queryTimeoutMs);
    process.deliver(() => {
      if (presence.count < this.#plan.maxInUse) caller.come(this.#plan.maxWaitMs);
      else this.#keptAway(holdMs);
    });
  }
}

/**
 * The callers of all services. They come whether or not those before them have been served, as long as their service is
 * up: they belong to its process, and while that is down or on its way out nobody comes.
 */
import type { Random } from '../kernel/random.js';
import { Caller, type CallerDiary, type Presence } from './caller.js';
import { type Chance, draw, exponential } from './chance.js';
import type { Laws } from './laws.js';
import type { CallerEnds, TenantResult } from './result.js';
import type { ArrivalPlan, Scenario } from './scenario.js';
import type { Service } from './service.js';
import type { ServiceProcess } from './service-process.js';
import { LentMeter } from './tenant-series.js';
import type { Timeline } from './timeline.js';
import { RecentWaits, WaitHistogram } from './wait-histogram.js';

/** Outcomes of the callers of one tenant, in all services. */
export class TenantTally {
  readonly name: string;
  readonly waits = new WaitHistogram();
  readonly lent = new LentMeter();
  completed = 0;
  cutOff = 0;
  keptAway = 0;
  /** Connection time that its callers asked for, those kept away among them, and that they were given, in milliseconds. */
  askedMs = 0;
  givenMs = 0;

  constructor(name: string) {
    this.name = name;
  }

  result(): TenantResult {
    const { name, completed, cutOff, keptAway } = this;
    return { tenant: name, ...this.waits.summary(), completed, cutOff, keptAway };
  }
}

/** Outcomes of the callers of one service. */
export class WorkTally {
  started = 0;
  completed = 0;
  readonly recentWaits = new RecentWaits();
}

export class Workload {
  readonly waits = new WaitHistogram();
  readonly recentWaits = new RecentWaits();
  readonly #timeline: Timeline;
  readonly #laws: Laws;
  readonly #endsAt: number;
  /** In the order of the scenario. */
  readonly #tenants = new Map<string, TenantTally>();
  /** Of each service, by its name. */
  readonly #presences = new Map<string, ReadonlyMap<string, Presences>>();

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

  /** What became of callers besides waiting. */
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
      new Arrivals(this.#timeline, service, plan, random, diary, ofTenant, keptAway).begin(this.#endsAt);
    }
  }

  /** With a process that crashes, those who wait in it are gone, without an answer. */
  crashed(process: ServiceProcess): void {
    this.callers.gone += process.pool.waiting;
    this.noneServed(process);
  }

  /** Nobody has a connection of this process any more, also those who did not give one back. */
  noneServed(process: ServiceProcess): void {
    for (const [name, presences] of this.#presences.get(process.name) ?? []) {
      const tenant = this.#tenants.get(name) as TenantTally;
      tenant.lent.change(-presences.endServed(process), this.#timeline.now);
    }
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
        tenant.lent.change(1, this.#timeline.now);
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
        tenant.lent.change(-1, this.#timeline.now);
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

/** How many of a tenant are in a service: those of an earlier process do not count. */
class Presences {
  #process: ServiceProcess | undefined;
  #presence: Presence = { count: 0, served: 0 };

  in(process: ServiceProcess): Presence {
    if (process !== this.#process) {
      this.#process = process;
      this.#presence = { count: 0, served: 0 };
    }
    return this.#presence;
  }

  /** How many of them had a connection until now. */
  endServed(process: ServiceProcess): number {
    if (process !== this.#process) return 0;
    const { served } = this.#presence;
    this.#presence.served = 0;
    return served;
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
    // Drawn even if nobody is there to come to, so that the luck of those who come later stays the same.
    const holdMs = draw(this.#plan.hold, this.#random);
    if (process === undefined || !process.takesCallers) return;
    const presence = this.#presences.in(process);
    const caller = new Caller(process, this.#timeline, this.#diary, presence, holdMs);
    process.deliver(() => {
      if (presence.count < this.#plan.maxInUse) caller.come(this.#plan.maxWaitMs);
      else this.#keptAway(holdMs);
    });
  }
}

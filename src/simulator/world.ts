/** Puts a scenario's world together, lets it run, ends it in good order, and tells what came of it. */

import { type RefillCause, refillCauses } from '../core/reasons.js';
import { Workload } from './callers/workload.js';
import { Faults, stopDeadlineMs } from './faults.js';
import { Laws } from './laws.js';
import { Budget } from './leases/budget.js';
import { Coordinator, type MayGrant } from './leases/coordinator.js';
import { DynamoCoordinator } from './leases/dynamodb/dynamo-coordinator.js';
import type { LeaseKeeper } from './leases/process-leases.js';
import { jainOf } from './measures/fairness.js';
import { toMicroseconds } from './measures/wait-histogram.js';
import { limiterFactory } from './process/limiters.js';
import { Service } from './process/service.js';
import type { MakePool, ServiceProcess, Surroundings } from './process/service-process.js';
import type { ServiceResult, SimulationResult } from './result.js';
import type { Scenario } from './scenario/scenario.js';
import { DialTrouble } from './server/dial-trouble.js';
import { type Door, Server } from './server/server.js';
import { Chance } from './time/chance.js';
import { Timeline } from './time/timeline.js';
import { judge } from './watch/assertions.js';
import { FillWatch } from './watch/fill-watch.js';
import { Sampler } from './watch/sampler.js';

/** Other parts than the real ones, to find out whether a wrong one would be noticed. */
export interface Sabotage {
  readonly makePool?: MakePool;
  readonly door?: Door;
  readonly connectionLimit?: number;
  readonly mayGrant?: MayGrant;
}

/** Far more than any timeout or delay that a scenario can have. */
const endsWithinMs = 4 * 3_600_000;

export class World {
  readonly #scenario: Scenario;
  readonly #timeline = new Timeline();
  readonly #laws: Laws;
  readonly #server: Server;
  readonly #coordinator: LeaseKeeper | undefined;
  readonly #budget: Budget | undefined;
  readonly #workload: Workload;
  readonly #services: readonly Service[];
  readonly #byName: ReadonlyMap<string, Service>;
  readonly #fills: FillWatch;
  readonly #faults: Faults;
  readonly #sampler: Sampler;
  /** Failures that are not counted. */
  readonly #failuresBefore = new Map<Service, Readonly<Record<RefillCause, number>>>();

  constructor(scenario: Scenario, sabotage: Sabotage = {}) {
    const timeline = this.#timeline;
    const laws = new Laws(timeline, scenario.coordinator?.leaseLimit);
    this.#laws = laws;
    const chance = new Chance(scenario.seed);
    const { coordinator: coordinatorPlan, durationMs, sampleMs } = scenario;
    this.#scenario = scenario;
    this.#server = new Server(scenario.server, timeline, laws, sabotage.door, sabotage.connectionLimit);
    const server = this.#server;
    const trouble = new DialTrouble();
    const { table } = coordinatorPlan ?? {};
    const dynamo =
      coordinatorPlan && table && new DynamoCoordinator({ ...coordinatorPlan, table }, timeline, laws);
    const coordinator =
      dynamo ?? (coordinatorPlan && new Coordinator(coordinatorPlan, timeline, laws, sabotage.mayGrant));
    this.#coordinator = coordinator;
    this.#budget = budgetOf(scenario, timeline, server, laws);
    const surroundings: Surroundings = {
      timeline,
      server,
      coordinator,
      budget: this.#budget,
      trouble,
      laws,
      makePool: sabotage.makePool,
      happened: (process) => this.#happened(process),
    };
    const makeLimiter = limiterFactory(scenario.limiter, timeline, dynamo);
    this.#services = scenario.services.map((plan) => {
      const own = scenario.limiter === undefined && plan.limiter;
      const make = own ? limiterFactory({ ...own, scope: 'perService' }, timeline, dynamo) : makeLimiter;
      return new Service(surroundings, plan, make, chance);
    });
    this.#byName = new Map(this.#services.map((service) => [service.plan.name, service]));
    const services = this.#services;
    this.#workload = new Workload(scenario, timeline, laws);
    this.#fills = new FillWatch(timeline, services, scenario.assertions.stableForMs ?? 0);
    this.#faults = new Faults(scenario.faults, {
      timeline,
      server,
      coordinator,
      trouble,
      services,
      workload: this.#workload,
      fills: this.#fills,
      chance,
    });
    const budget = this.#budget;
    const shares = budget && (() => budget.shares());
    this.#sampler = new Sampler(timeline, server, this.#workload, services, durationMs, sampleMs, shares);
    this.#begin(chance);
  }

  get events(): number {
    return this.#timeline.events;
  }

  #begin(chance: Chance): void {
    this.#sampler.begin();
    // A fault that begins together with a service finds it about to start.
    this.#faults.begin();
    for (const service of this.#services)
      this.#timeline.plan(service.plan.startDelayMs, () => service.start());
    for (const service of this.#services) this.#workload.begin(service, chance);
  }

  #happened(process: ServiceProcess): void {
    this.#laws.check(process);
    if (process.pool.state !== 'open' && process.pool.inUse === 0) this.#workload.noneServed(process);
    const service = this.#byName.get(process.name) as Service;
    if (service.process === process) this.#fills.note(service);
  }

  /** Counts callers, refusals and connections from then on, as if there had been none before. Assertions do, too. */
  countFrom(timeMs: number): void {
    this.#timeline.plan(timeMs, () => {
      this.#workload.forget();
      this.#server.forget();
      for (const service of this.#services)
        this.#failuresBefore.set(service, service.totals().refillFailures);
    });
  }

  runUntil(timeMs: number): void {
    this.#timeline.runUntil(timeMs);
  }

  /** The result. Then all services end in good order, to see whether anything is left over. */
  finish(): SimulationResult {
    const { durationMs } = this.#scenario;
    this.runUntil(durationMs);
    const samples = this.#sampler.all;
    const tenantSamples = this.#sampler.tenants;
    const services = this.#services.map((service) => this.#resultOf(service));
    const faults = this.#faults.records(durationMs);
    const tenants = this.#workload.tenants;
    const waits = this.#workload.waits.summary();
    const server = this.#server.record();
    const coordinator = this.#coordinator?.record();
    const budget = this.#budget?.record();
    const assertions = judge(this.#scenario.assertions, {
      durationMs,
      peakPerSecond: server.peakPerSecond,
      accepted: server.accepted,
      fills: this.#fills,
      services: this.#services,
      faults,
      waits: this.#workload.waits,
      tenants,
    });
    const tenantResults = tenants.map((tenant) => tenant.result());
    this.#end();
    const laws = this.#laws.breaches;
    return {
      scenario: this.#scenario.name,
      seed: this.#scenario.seed,
      durationMs,
      events: this.#timeline.events,
      services,
      samples,
      faults,
      assertions,
      laws,
      waits,
      ends: this.#workload.ends,
      tenants: tenantResults,
      jain: tenants.length < 2 ? undefined : jainOf(tenants),
      tenantSamples,
      server,
      coordinator,
      budget,
      passed: laws.length === 0 && assertions.every(({ passed }) => passed),
    };
  }

  #resultOf(service: Service): ServiceResult {
    const { name, group } = service.plan;
    const { refillFailures } = service.totals();
    const firstFullAt = this.#fills.firstFullAt(service);
    return {
      name,
      group,
      samples: this.#sampler.of(service),
      convergedAtMs: firstFullAt === undefined ? undefined : toMicroseconds(firstFullAt),
      refillFailures: without(refillFailures, this.#failuresBefore.get(service)),
      peak: service.peak,
      limit: service.limit,
    };
  }

  #end(): void {
    this.#faults.stop();
    for (const service of this.#services) service.stopForGood(stopDeadlineMs);
    // Ended services plan nothing any more, so this is over at once, unless something does not end.
    this.#timeline.runUntil(this.#scenario.durationMs + endsWithinMs);
    this.#budget?.stop();
    this.#laws.checkEnd(this.#services, this.#server);
    this.#laws.checkCallers(this.#workload.callers);
  }
}

function without(
  failures: Readonly<Record<RefillCause, number>>,
  before: Readonly<Record<RefillCause, number>> | undefined,
): Record<RefillCause, number> {
  const left = { ...failures };
  if (before !== undefined) for (const cause of refillCauses) left[cause] -= before[cause];
  return left;
}

function budgetOf(
  { budget, services }: Scenario,
  timeline: Timeline,
  server: Server,
  laws: Laws,
): Budget | undefined {
  if (budget === undefined) return undefined;
  const weights = new Map(services.map(({ name, weight }) => [name, weight ?? 1]));
  return new Budget(budget, weights, timeline, server, laws);
}

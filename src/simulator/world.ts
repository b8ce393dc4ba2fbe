/** Puts a scenario's world together, lets it run, ends it in good order, and tells what came of it. */
import { judge } from './assertions.js';
import { Budget } from './budget.js';
import { Chance } from './chance.js';
import { Coordinator, type MayGrant } from './coordinator.js';
import { DialTrouble } from './dial-trouble.js';
import { DynamoCoordinator } from './dynamodb/dynamo-coordinator.js';
import { Faults, stopDeadlineMs } from './faults.js';
import { FillWatch } from './fill-watch.js';
import { Laws } from './laws.js';
import { limiterFactory } from './limiters.js';
import type { LeaseKeeper } from './process-leases.js';
import type { ServiceResult, SimulationResult } from './result.js';
import { Sampler } from './sampler.js';
import type { Scenario } from './scenario.js';
import { type Door, Server } from './server.js';
import { Service } from './service.js';
import type { MakePool, ServiceProcess, Surroundings } from './service-process.js';
import { Timeline } from './timeline.js';
import { toMicroseconds } from './wait-histogram.js';
import { Workload } from './workload.js';

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
    this.#services = scenario.services.map((plan) => new Service(surroundings, plan, makeLimiter, chance));
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
    if (process.pool.state !== 'open' && process.pool.lent === 0) this.#workload.noneServed(process);
    const service = this.#byName.get(process.name) as Service;
    if (service.process === process) this.#fills.note(service);
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
      refillFailures: { ...refillFailures },
      peak: service.peak,
      limit: service.policy.max,
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

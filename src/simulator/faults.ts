/** Makes things go wrong: when, and for which services. */
import type { Random } from '../kernel/random.js';
import type { Workload } from './callers/workload.js';
import type { LeaseKeeper } from './leases/process-leases.js';
import { toMicroseconds } from './measures/wait-histogram.js';
import type { Service } from './process/service.js';
import type { FaultRecord } from './result.js';
import type { Delay, FaultPlan } from './scenario/scenario.js';
import type { DialTrouble } from './server/dial-trouble.js';
import type { Server } from './server/server.js';
import type { Session } from './server/session.js';
import type { Chance } from './time/chance.js';
import type { Timeline } from './time/timeline.js';
import type { FillWatch, Recovery } from './watch/fill-watch.js';

/** The world as faults see it. */
export interface FaultTargets {
  readonly timeline: Timeline;
  readonly server: Server;
  readonly coordinator: LeaseKeeper | undefined;
  readonly trouble: DialTrouble;
  readonly services: readonly Service[];
  readonly workload: Workload;
  readonly fills: FillWatch;
  readonly chance: Chance;
}

/** How long a process that is to end has for it: what container runtimes usually grant. */
export const stopDeadlineMs = 30_000;

/** Longer than any dial waits. */
const hangs: Delay = { kind: 'fixed', ms: 3_600_000 };

export class Faults {
  readonly #targets: FaultTargets;
  readonly #faults: Fault[];
  #isOver = false;

  constructor(plans: readonly FaultPlan[], targets: FaultTargets) {
    this.#targets = targets;
    this.#faults = plans.map((plan, index) => {
      return new Fault(plan, targets, targets.chance.stream(`fault/${index}`));
    });
  }

  begin(): void {
    for (const fault of this.#faults) {
      this.#targets.timeline.plan(fault.plan.atMs, () => {
        if (!this.#isOver) fault.begin();
      });
    }
  }

  /** Ends what still lasts, and nothing begins any more. */
  stop(): void {
    this.#isOver = true;
    for (const fault of this.#faults) fault.stop();
  }

  records(durationMs: number): FaultRecord[] {
    return this.#faults.map((fault) => fault.record(durationMs));
  }
}

class Fault {
  readonly plan: FaultPlan;
  readonly #targets: FaultTargets;
  readonly #random: Random;
  readonly #services: readonly Service[];
  readonly #names: ReadonlySet<string>;
  #recovery: Recovery | undefined;
  #end: (() => void) | undefined;

  constructor(plan: FaultPlan, targets: FaultTargets, random: Random) {
    this.plan = plan;
    this.#targets = targets;
    this.#random = random;
    this.#services = targets.services.filter(({ plan: { name, group } }) => {
      return plan.services.length === 0 || plan.services.includes(name) || plan.services.includes(group);
    });
    this.#names = new Set(this.#services.map(({ plan: { name } }) => name));
  }

  begin(): void {
    const { kind, everyMs } = this.plan;
    const isForEver = kind === 'crash' && everyMs === Number.POSITIVE_INFINITY;
    this.#recovery = this.#targets.fills.faultBegan(kind, isForEver ? this.#services : []);
    switch (kind) {
      case 'mass_drop':
        this.#dropSessions(this.plan.fraction);
        this.#ended();
        return;
      case 'server_down':
        this.#lasts(this.#takeServerDown());
        return;
      case 'coordinator_outage':
        this.#lasts(this.#cutOffCoordinator());
        return;
      case 'pause':
        this.#lasts(this.#pause());
        return;
      case 'slow_dials':
        this.#lasts(this.#slowDials());
        return;
      case 'hung_connections':
        this.#lasts(this.#hangSessions(this.plan.fraction));
        return;
      case 'token_failures':
        this.#lasts(this.#targets.trouble.begin('token', this.#strike()));
        return;
      case 'crash':
        this.#crash();
        return;
      case 'cold_start':
        this.#restart(0, everyMs);
        return;
      case 'rolling_restart':
        this.#restart(everyMs, 0);
        return;
    }
  }

  #strike(): { services: ReadonlySet<string>; fraction: number } {
    return { services: this.#names, fraction: this.plan.fraction };
  }

  /** Ends by itself after its time, or when the world does. */
  #lasts(end: () => void): void {
    const { timeline } = this.#targets;
    this.#end = end;
    timeline.plan(timeline.now + this.plan.durationMs, () => {
      if (this.#end === undefined) return;
      this.stop();
      this.#ended();
    });
  }

  #ended(): void {
    this.#targets.fills.faultEnded(this.#recovery as Recovery);
  }

  stop(): void {
    this.#end?.();
    this.#end = undefined;
  }

  #dropSessions(fraction: number): void {
    this.#strikeSessions(fraction, (session) => this.#targets.server.drop(session));
  }

  #hangSessions(fraction: number): () => void {
    const hung: Session[] = [];
    this.#strikeSessions(fraction, (session) => {
      session.hang();
      hung.push(session);
    });
    return () => {
      for (const session of hung) session.answerAgain();
    };
  }

  /** Strikes this part of each service's sessions, to the nearest whole number, chosen at random. */
  #strikeSessions(fraction: number, strike: (session: Session) => void): void {
    const { server } = this.#targets;
    for (const { process } of this.#services) {
      if (process === undefined) continue;
      const sessions = server.sessionsOf(process);
      for (let left = Math.round(fraction * sessions.length); left > 0; left--) {
        const index = Math.floor(this.#random.next() * sessions.length);
        const [session] = sessions.splice(index, 1);
        if (session !== undefined) strike(session);
      }
    }
  }

  #takeServerDown(): () => void {
    const { server } = this.#targets;
    for (const name of this.#names) server.cutOff(name);
    this.#dropSessions(1);
    return () => {
      for (const name of this.#names) server.reconnect(name);
    };
  }

  #cutOffCoordinator(): () => void {
    const { coordinator } = this.#targets;
    for (const name of this.#names) coordinator?.cutOff(name);
    return () => {
      for (const name of this.#names) coordinator?.reconnect(name);
    };
  }

  #pause(): () => void {
    const paused = this.#services.map(({ process }) => process);
    for (const process of paused) process?.pause();
    return () => {
      for (const process of paused) process?.resume();
    };
  }

  #slowDials(): () => void {
    const { trouble } = this.#targets;
    return trouble.begin('slow', { ...this.#strike(), delay: this.plan.delay ?? hangs });
  }

  #crash(): void {
    const { timeline, workload, fills } = this.#targets;
    const { everyMs } = this.plan;
    const crashed = this.#services.filter(({ process }) => process !== undefined);
    for (const service of crashed) {
      if (service.process !== undefined) workload.crashed(service.process);
      service.crash();
      fills.restarted(service);
    }
    if (everyMs === Number.POSITIVE_INFINITY) {
      this.#ended();
      return;
    }
    timeline.plan(timeline.now + everyMs, () => {
      for (const service of crashed) service.start();
      this.#ended();
    });
  }

  /**
   * One after the other is stopped, `apartMs` apart, and starts again when it has been down for `downMs`. Who is not
   * running when its turn comes is left alone.
   */
  #restart(apartMs: number, downMs: number): void {
    const { timeline, fills } = this.#targets;
    let left = this.#services.length;
    const isDone = (): void => {
      left--;
      if (left <= 0) this.#ended();
    };
    if (left === 0) isDone();
    for (const [index, service] of this.#services.entries()) {
      timeline.plan(timeline.now + index * apartMs, () => {
        if (!service.process?.takesCallers) isDone();
        else
          service.stop(stopDeadlineMs, () => {
            fills.restarted(service);
            timeline.plan(timeline.now + downMs, () => {
              service.start();
              isDone();
            });
          });
      });
    }
  }

  record(durationMs: number): FaultRecord {
    const { kind, atMs } = this.plan;
    const { untilMs = durationMs, recoveredAtMs } = this.#recovery ?? {};
    return {
      kind,
      fromMs: atMs,
      untilMs: toMicroseconds(untilMs),
      services: [...this.#names],
      recoveredAtMs,
    };
  }
}

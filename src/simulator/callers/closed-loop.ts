/** Clients that come again when they were served and have thought: a slow pool slows them down. */
import type { Random } from '../../kernel/random.js';
import type { Service } from '../process/service.js';
import type { ServiceProcess } from '../process/service-process.js';
import type { ArrivalPlan } from '../scenario/scenario.js';
import { draw } from '../time/chance.js';
import type { Timeline } from '../time/timeline.js';
import { Caller, type CallerDiary } from './caller.js';
import type { Presences } from './presences.js';

/** A client that was not served tries again so soon at the earliest, however little it thinks. */
const shortestRetryMs = 100;

export class ClosedLoop {
  readonly #timeline: Timeline;
  readonly #service: Service;
  readonly #plan: ArrivalPlan;
  readonly #random: Random;
  readonly #diary: CallerDiary;
  readonly #presences: Presences;
  /** Callers that have not left yet, each with its process. */
  readonly #inside = new Map<Caller, ServiceProcess>();
  #endsAt = 0;

  constructor(
    timeline: Timeline,
    service: Service,
    plan: ArrivalPlan,
    random: Random,
    diary: CallerDiary,
    presences: Presences,
  ) {
    this.#timeline = timeline;
    this.#service = service;
    this.#plan = plan;
    this.#random = random;
    this.#presences = presences;
    this.#diary = {
      ...diary,
      left: (caller, isDone) => {
        diary.left(caller, isDone);
        if (!this.#inside.delete(caller)) return;
        // A pool may refuse at once.
        this.#comeAfter(isDone ? this.#thinkMs() : this.#retryMs());
      },
    };
  }

  /** Each client thinks before it comes for the first time, so that they do not come together. */
  begin(worldEndsAt: number): void {
    const { fromMs, untilMs, clients = 0 } = this.#plan;
    this.#endsAt = Math.min(worldEndsAt, untilMs);
    for (let n = 0; n < clients; n++) this.#comeAt(fromMs + this.#thinkMs());
  }

  /** Callers in the process get no answer, and come again. */
  processEnded(process: ServiceProcess): void {
    for (const [caller, own] of [...this.#inside]) {
      if (own !== process) continue;
      this.#inside.delete(caller);
      this.#comeAfter(this.#retryMs());
    }
  }

  #retryMs(): number {
    return Math.max(shortestRetryMs, this.#thinkMs());
  }

  #thinkMs(): number {
    return this.#plan.think === undefined ? 0 : draw(this.#plan.think, this.#random);
  }

  #comeAfter(delayMs: number): void {
    this.#comeAt(this.#timeline.now + delayMs);
  }

  #comeAt(at: number): void {
    if (at < this.#endsAt) this.#timeline.plan(at, () => this.#come());
  }

  #come(): void {
    const { process } = this.#service;
    const { hold, maxInUse, maxWaitMs, queryTimeoutMs } = this.#plan;
    const presence = process?.takesCallers ? this.#presences.in(process) : undefined;
    if (process === undefined || presence === undefined || presence.count >= maxInUse) {
      this.#comeAfter(this.#retryMs());
      return;
    }
    const holdMs = draw(hold, this.#random);
    const caller = new Caller(process, this.#timeline, this.#diary, presence, holdMs, queryTimeoutMs);
    this.#inside.set(caller, process);
    process.deliver(() => caller.come(maxWaitMs));
  }
}

/**
 * One run of a service, from its start to its end: a real engine, with a clock, an alarm and a network of its own. All
 * that happens in it comes through `deliver`, so that it can stand still or be gone, and is judged afterwards.
 *
 *     running --drain--> draining --> gone
 *     running, draining --crash--> gone
 */
import { ConnectionPool, type PoolParts } from '../../core/connection-pool.js';
import { type PoolPolicy, readPolicy } from '../../core/pool-policy.js';
import type { AlarmFactory } from '../../kernel/clock.js';
import { OptionReader } from '../../kernel/option-reader.js';
import type { Random } from '../../kernel/random.js';
import { limitWithReserve } from '../../pooler/config/reserve.js';
import type { Laws } from '../laws.js';
import type { Budget } from '../leases/budget.js';
import type { LeaseKeeper, ProcessLeases } from '../leases/process-leases.js';
import type { SlidingWindow } from '../measures/sliding-window.js';
import type { ReservePlan, ServicePlan } from '../scenario/scenario.js';
import type { DialTrouble } from '../server/dial-trouble.js';
import type { Server } from '../server/server.js';
import type { Session } from '../server/session.js';
import { draw } from '../time/chance.js';
import { ServiceAlarm, ServiceClock } from '../time/service-clock.js';
import type { Timeline } from '../time/timeline.js';
import type { CountingLimiter, MakeLimiter } from './limiters.js';
import { ProcessDialer } from './process-dialer.js';
import { ProcessTally } from './process-tally.js';

/** Makes the engine; another one is only for finding out whether a wrong one would be noticed. */
export type MakePool = (parts: PoolParts<Session>) => ConnectionPool<Session>;

/** The parts that all processes share. */
export interface Surroundings {
  readonly timeline: Timeline;
  readonly server: Server;
  readonly coordinator: LeaseKeeper | undefined;
  readonly budget: Budget | undefined;
  readonly trouble: DialTrouble;
  readonly laws: Laws;
  readonly makePool: MakePool | undefined;
  /** Called after each thing that happened in a process. */
  readonly happened: (process: ServiceProcess) => void;
}

/** The parts that one process has for itself. */
export interface ProcessParts {
  readonly plan: ServicePlan;
  readonly makeLimiter: MakeLimiter;
  readonly network: Random;
  readonly engine: Random;
  readonly accepts: SlidingWindow;
}

export class ServiceProcess {
  readonly name: string;
  readonly pool: ConnectionPool<Session>;
  readonly dialer: ProcessDialer;
  readonly tally = new ProcessTally();
  readonly limiter: CountingLimiter | undefined;
  readonly leases: ProcessLeases | undefined;
  /** The times at which the server accepted connections of this service. */
  readonly accepts: SlidingWindow;
  /** Sessions that the server has. */
  sessions = 0;
  /** Sessions that the pool takes to be live and the server has ended: the news are on their way. */
  lostSessions = 0;
  /** Sessions that the process has let go of and the server still has: it has not noticed yet. */
  disownedSessions = 0;
  readonly #surroundings: Surroundings;
  readonly #network: Random;
  readonly #reserve: ReservePlan | undefined;
  readonly #size: number;
  /** Connections above the limit since it was lowered. */
  #excess = 0;
  readonly clock: ServiceClock;
  readonly alarmFactory: AlarmFactory;
  #alarm: ServiceAlarm | undefined;
  #state: 'running' | 'draining' | 'gone' = 'running';
  #isPaused = false;
  #backlog: (() => void)[] = [];

  constructor(surroundings: Surroundings, parts: ProcessParts) {
    const { timeline, server, trouble, laws, coordinator, budget, makePool } = surroundings;
    const { plan, network } = parts;
    this.name = plan.name;
    this.accepts = parts.accepts;
    this.#surroundings = surroundings;
    this.#network = network;
    this.clock = new ServiceClock(timeline, plan.clockSkewMs, plan.clockDrift);
    this.alarmFactory = (ring) =>
      new ServiceAlarm(timeline, this.clock, ring, (action) => this.deliver(action));
    this.dialer = new ProcessDialer(this, timeline, server, network, trouble, laws);
    this.leases = coordinator ? coordinator.clientFor(this, network) : budget?.join(this);
    this.limiter = parts.makeLimiter(this, network);
    const policy = policyOf(plan, this.limiter, this.leases);
    this.#reserve = plan.reserve;
    this.#size = policy.max;
    const poolParts: PoolParts<Session> = {
      policy,
      dialer: this.dialer,
      clock: this.clock,
      alarm: (ring) => {
        this.#alarm = new ServiceAlarm(timeline, this.clock, ring, (action) => this.deliver(action));
        return this.#alarm;
      },
      random: parts.engine,
      listener: this.tally,
      name: plan.name,
    };
    this.pool = makePool?.(poolParts) ?? new ConnectionPool(poolParts);
  }

  get isGone(): boolean {
    return this.#state === 'gone';
  }

  /** True if callers come to it. */
  get takesCallers(): boolean {
    return this.#state === 'running';
  }

  get isAlarmSet(): boolean {
    return this.#alarm?.isSet ?? false;
  }

  /** The time on its own clock. */
  get clockNow(): number {
    return this.clock.now();
  }

  start(): void {
    this.deliver(() => this.pool.start());
    if (this.#reserve !== undefined) this.#watchReserve(this.#reserve);
  }

  /** As the pooler's housekeeping does. */
  #watchReserve(reserve: ReservePlan): void {
    this.later(reserve.everyMs, () => {
      if (this.#state !== 'running') return;
      const { pool } = this;
      const sizes = { poolSize: this.#size, reservePoolSize: reserve.size };
      const limit = limitWithReserve(pool, sizes, reserve.afterMs, pool.stats().longestWaitMs);
      if (limit !== pool.limit) this.#resize(limit);
      this.#watchReserve(reserve);
    });
  }

  #resize(limit: number): void {
    this.pool.resize(limit);
    this.#excess = Number.POSITIVE_INFINITY;
  }

  excess(): number {
    if (this.#excess === 0) return 0;
    const { pending, live, closing, limit } = this.pool.counts();
    this.#excess = Math.min(this.#excess, Math.max(0, pending + live + closing - limit));
    return this.#excess;
  }

  /** Runs an action in this process: now, after its pause, or never if the process has ended. */
  deliver(action: () => void): void {
    if (this.#state === 'gone') return;
    if (this.#isPaused) this.#backlog.push(action);
    else this.#run(action);
  }

  /** Runs an action in this process after a delay. */
  later(delayMs: number, action: () => void): void {
    const { timeline } = this.#surroundings;
    timeline.plan(timeline.now + delayMs, () => this.deliver(action));
  }

  #run(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#surroundings.laws.report('threw', this.name, String(error));
    }
    this.#surroundings.happened(this);
  }

  /** Stops the process while the time of the world goes on. */
  pause(): void {
    this.#isPaused = true;
  }

  /** All that has come meanwhile happens now, in the order in which it came. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const backlog = this.#backlog;
    this.#backlog = [];
    for (const action of backlog) this.deliver(action);
  }

  /** The process ends without a word. The server finds out a little later; no other part does. */
  crash(): void {
    const { timeline, server } = this.#surroundings;
    this.#end();
    this.leases?.processCrashed();
    const noticedMs = draw(server.plan.close, this.#network);
    timeline.plan(timeline.now + noticedMs, () => {
      for (const session of server.sessionsOf(this)) session.whenAnswered(() => server.remove(session));
      this.leases?.sessionsGone();
    });
  }

  /** Ends in good order, but within `deadlineMs`. */
  drain(deadlineMs: number, onDrained: () => void): void {
    this.#state = 'draining';
    this.deliver(() => {
      this.pool.drain(this.clock.now() + deadlineMs, () => {
        const end = (): void => {
          this.#surroundings.timeline.plan(this.#surroundings.timeline.now, () => {
            if (this.#state === 'gone') return;
            this.#end();
            onDrained();
          });
        };
        if (this.leases === undefined) end();
        else this.leases.finish(end);
      });
    });
  }

  #end(): void {
    this.#surroundings.laws.checkTotals(this);
    this.#state = 'gone';
    this.#backlog = [];
    this.#alarm?.clear();
  }

  /** The server has ended one of its sessions; it takes a moment until that is known here. */
  sessionDropped(session: Session): void {
    if (session.stage !== 'live') return;
    this.later(draw(this.#surroundings.server.plan.close, this.#network) / 2, () => {
      if (session.stage !== 'live' || session.pooled === undefined) return;
      this.pool.broken(session.pooled, new Error('the server closed the connection'));
      session.caller?.cutOff();
    });
  }
}

export function policyOf(
  plan: ServicePlan,
  rateLimiter?: CountingLimiter,
  leases?: ProcessLeases,
): PoolPolicy {
  const read = new OptionReader({ ...plan.pool, rateLimiter, leases });
  const policy = readPolicy(read, false);
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return policy;
}

/**
 * The database server: lets dials in or refuses them, ends sessions that are too old, and keeps its own list of what is
 * open. What it is asked and what it says takes time; that is the business of those who ask (process-dialer.ts).
 */
import { LinkedList } from '../kernel/linked-list.js';
import { Admission } from './admission.js';
import { CutOff } from './cut-off.js';
import type { Laws } from './laws.js';
import type { ServerRecord } from './result.js';
import type { ServerPlan } from './scenario.js';
import type { ServiceProcess } from './service-process.js';
import { Session } from './session.js';
import { SlidingWindow } from './sliding-window.js';
import { Planned, type Timeline } from './timeline.js';

/** Why a dial is not let in, in the words of the SQLSTATE where there is one. */
export type Refusal = '53300' | '53400' | 'unreachable';

/** Decides whether the rate allows one more. */
export interface Door {
  admits(now: number): boolean;
}

export class Server {
  readonly plan: ServerPlan;
  readonly #timeline: Timeline;
  readonly #laws: Laws;
  readonly #door: Door;
  /** With so many sessions it lets nobody in: its limit, unless it is a server that does not keep to it. */
  readonly #isFullWith: number;
  /** In the order in which they were accepted, which is the order in which they grow too old. */
  readonly #sessions = new LinkedList<Session>();
  readonly #accepts = new SlidingWindow();
  readonly #endOfOldest: Planned;
  readonly #cutOff = new CutOff();
  /** Sessions whose sockets are gone, and which it has not noticed yet. */
  disowned = 0;
  #accepted = 0;
  #refusedRate = 0;
  #refusedFull = 0;
  #peak = 0;

  constructor(
    plan: ServerPlan,
    timeline: Timeline,
    laws: Laws,
    door: Door = new Admission(plan.perSecond, plan.burst),
    isFullWith = plan.connectionLimit,
  ) {
    this.plan = plan;
    this.#timeline = timeline;
    this.#laws = laws;
    this.#door = door;
    this.#isFullWith = isFullWith;
    this.#endOfOldest = new Planned(0, () => this.#endOld());
  }

  get size(): number {
    return this.#sessions.size;
  }

  get acceptedPerSecond(): number {
    return this.#accepts.count(this.#timeline.now);
  }

  get peakPerSecond(): number {
    return this.#accepts.peak;
  }

  record(): ServerRecord {
    return {
      accepted: this.#accepted,
      refusedRate: this.#refusedRate,
      refusedFull: this.#refusedFull,
      peakConnections: this.#peak,
      connectionLimit: this.plan.connectionLimit,
      peakPerSecond: this.#accepts.peak,
    };
  }

  /** A dial has arrived. The rate is looked at first, so that who finds the server full has used a permit up. */
  admit(process: ServiceProcess): Session | Refusal {
    const { now } = this.#timeline;
    if (this.#cutOff.has(process.name)) return 'unreachable';
    if (!this.#door.admits(now)) {
      this.#refusedRate++;
      return '53400';
    }
    if (this.#sessions.size >= this.#isFullWith) {
      this.#refusedFull++;
      return '53300';
    }
    return this.#accept(process, now);
  }

  #accept(process: ServiceProcess, now: number): Session {
    const session = new Session(process, now);
    this.#sessions.pushTail(session);
    process.sessions++;
    process.accepts.add(now);
    this.#accepts.add(now);
    this.#accepted++;
    this.#peak = Math.max(this.#peak, this.#sessions.size);
    this.#laws.checkServer(this);
    if (this.plan.sessionLifetimeMs !== Number.POSITIVE_INFINITY && !this.#endOfOldest.isPlanned)
      this.#timeline.replan(this.#endOfOldest, now + this.plan.sessionLifetimeMs);
    return session;
  }

  /** A session has ended in good order, or its process let go of it. Does nothing when the server has ended it before. */
  remove(session: Session): void {
    if (!session.isOnServer) return;
    session.isOnServer = false;
    this.#sessions.remove(session);
    const { process } = session;
    process.sessions--;
    if (session.stage === 'live') process.lostSessions++;
    if (session.stage === 'gone') {
      process.disownedSessions--;
      this.disowned--;
    }
  }

  /** The server ends a session by itself. */
  drop(session: Session): void {
    this.remove(session);
    session.process.sessionDropped(session);
  }

  /** In the order in which they were accepted. */
  sessionsOf(process: ServiceProcess): Session[] {
    const found: Session[] = [];
    for (const session of this.#sessions) if (session.process === process) found.push(session);
    return found;
  }

  cutOff(service: string): void {
    this.#cutOff.add(service);
  }

  reconnect(service: string): void {
    this.#cutOff.remove(service);
  }

  #endOld(): void {
    const { sessionLifetimeMs } = this.plan;
    let oldest = this.#sessions.head;
    for (; oldest !== undefined; oldest = this.#sessions.head) {
      const endsAt = oldest.acceptedAt + sessionLifetimeMs;
      if (endsAt > this.#timeline.now) {
        this.#timeline.replan(this.#endOfOldest, endsAt);
        return;
      }
      this.drop(oldest);
    }
  }
}

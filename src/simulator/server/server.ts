/**
 * The database server: lets dials in or refuses them, ends sessions that are too old, and keeps its own list of what is
 * open. What it is asked and what it says takes time; that is the business of those who ask (process-dialer.ts).
 */
import { LinkedList } from '../../kernel/linked-list.js';
import type { Laws } from '../laws.js';
import { SlidingWindow } from '../measures/sliding-window.js';
import type { ServerRecord } from '../result.js';
import type { ServerPlan } from '../scenario/scenario.js';
import { Planned, type Timeline } from '../time/timeline.js';
import { Admission } from './admission.js';
import { CutOff } from './cut-off.js';
import { Session, type SessionOwner } from './session.js';

/** Why a dial is not let in, in the words of the SQLSTATE where there is one. */
export type Refusal = '53300' | '53400' | 'unreachable';

/** Decides whether the rate allows one more. */
export interface Door {
  admits(now: number): boolean;
  /** How long until it does; undefined: not known, and callers can't queue. */
  waitMs?(now: number): number;
}

/** Less may be lost where times are large numbers. */
const shortestWaitMs = 1e-3;

/** A dial that has arrived. */
export interface Login {
  readonly owner: SessionOwner;
  /** False: its process has given up meanwhile. */
  readonly isThere: () => boolean;
  readonly decided: (verdict: Session | Refusal) => void;
}

export class Server {
  readonly plan: ServerPlan;
  readonly #timeline: Timeline;
  readonly #laws: Laws;
  readonly #door: Door;
  /** The number of sessions at which the server refuses new ones: its limit, unless it is a server that does not keep to it. */
  readonly #isFullWith: number;
  /** In the order in which they were accepted, which is the order in which they grow too old. */
  readonly #sessions = new LinkedList<Session>();
  readonly #accepts = new SlidingWindow();
  readonly #endOfOldest: Planned;
  readonly #cutOff = new CutOff();
  /** Logins in the order in which they arrived, on a server that does not refuse. */
  #queue: Login[] = [];
  readonly #nextLogin: Planned;
  #longestQueue = 0;
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
    this.#nextLogin = new Planned(0, () => this.#serveQueue());
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

  /** Counts anew what the record says. */
  forget(): void {
    this.#accepted = 0;
    this.#refusedRate = 0;
    this.#refusedFull = 0;
    this.#peak = this.#sessions.size;
    this.#longestQueue = this.#queue.length;
    this.#accepts.forgetPeak(this.#timeline.now);
  }

  record(): ServerRecord {
    return {
      accepted: this.#accepted,
      refusedRate: this.#refusedRate,
      refusedFull: this.#refusedFull,
      peakConnections: this.#peak,
      connectionLimit: this.plan.connectionLimit,
      peakPerSecond: this.#accepts.peak,
      ...(this.plan.overload === 'queue' && { longestQueue: this.#longestQueue }),
    };
  }

  /** A dial has arrived. */
  admit(login: Login): void {
    if (this.plan.overload !== 'queue') {
      login.decided(this.#verdict(login.owner));
      return;
    }
    this.#queue = this.#queue.filter(({ isThere }) => isThere());
    this.#queue.push(login);
    this.#serveQueue();
    this.#longestQueue = Math.max(this.#longestQueue, this.#queue.length);
  }

  /** Serves those who came first, as far as the rate and the limit allow; the others wait. */
  #serveQueue(): void {
    const { now } = this.#timeline;
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      const isReached = !this.#cutOff.has(first.owner.name);
      if (first.isThere() && isReached) {
        if (this.#sessions.size >= this.#isFullWith) return;
        const waitMs = this.#door.waitMs?.(now) ?? 0;
        if (waitMs > 0) {
          this.#timeline.replan(this.#nextLogin, now + Math.max(shortestWaitMs, waitMs));
          return;
        }
      }
      this.#queue.shift();
      if (first.isThere()) first.decided(this.#verdict(first.owner));
    }
  }

  /** The rate is looked at first, so that who finds the server full has used a permit up. */
  #verdict(process: SessionOwner): Session | Refusal {
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

  #accept(process: SessionOwner, now: number): Session {
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
    if (this.#queue.length > 0) this.#serveQueue();
  }

  /** The server ends a session by itself. */
  drop(session: Session): void {
    this.remove(session);
    session.process.sessionDropped(session);
  }

  /** In the order in which they were accepted. */
  sessionsOf(process: SessionOwner): Session[] {
    const found: Session[] = [];
    for (const session of this.#sessions) if (session.process === process) found.push(session);
    return found;
  }

  cutOff(service: string): void {
    this.#cutOff.add(service);
    this.#serveQueue();
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

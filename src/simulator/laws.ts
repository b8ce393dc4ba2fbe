/**
 * The five laws, and the limits of server and coordinator, judged after every event by what can be seen from outside: the
 * pool's public counts, the server's list, and the books of what was asked and answered.
 */
import type { PoolCounts } from '../core/pool-counts.js';
import type { PoolStats } from '../core/pool-stats.js';
import { toMicroseconds } from './measures/wait-histogram.js';
import type { LawBreach } from './result.js';
import type { Timeline } from './time/timeline.js';

const lawNames = {
  limit: 'never over the limit',
  server: 'never over the limits of the server',
  leases: 'never over the lease limit',
  counts: 'counts are true',
  approval: 'every approval and every lease ends once',
  ready: 'no caller waits while a connection is ready',
  stranded: 'no caller is stranded',
  answer: 'every caller has one answer',
  reason: 'no decision without its reason',
  threw: 'the engine does not fail',
} as const;

export type Law = keyof typeof lawNames;

/** The parts of a process that are judged. */
export interface JudgedProcess {
  readonly name: string;
  readonly pool: {
    readonly state: string;
    readonly policy: { readonly checkAfterIdle: number };
    counts(): PoolCounts;
    stats(): PoolStats;
    connections(): Iterable<{ readonly state: string; readonly lendUntil: number; readonly aliveAt: number }>;
  };
  /** Dials and connections as the dialer counts them. */
  readonly dialer: { readonly pending: number; readonly live: number; readonly closing: number };
  readonly leases: { readonly held: number; readonly isAsking: boolean } | undefined;
  readonly tally: { difference(stats: PoolStats): string | undefined };
  readonly sessions: number;
  readonly lostSessions: number;
  readonly disownedSessions: number;
  readonly isAlarmSet: boolean;
  readonly clockNow: number;
  /** Connections above a limit that was lowered, until they are closed: never more than at the judgement before. */
  excess(): number;
}

export interface JudgedServer {
  readonly plan: { readonly connectionLimit: number; readonly perSecond: number; readonly burst: number };
  readonly size: number;
  readonly disowned: number;
  readonly acceptedPerSecond: number;
}

export interface JudgedService {
  readonly plan: { readonly name: string };
  readonly process: JudgedProcess | undefined;
  readonly unreturnedLeases: number;
}

export class Laws {
  readonly breaches: LawBreach[] = [];
  readonly #timeline: Timeline;
  readonly #leaseLimit: number;
  readonly #reported = new Set<string>();

  /** `leaseLimit`: so many sessions there may be, all of whose owners have leases. */
  constructor(timeline: Timeline, leaseLimit = Number.POSITIVE_INFINITY) {
    this.#timeline = timeline;
    this.#leaseLimit = leaseLimit;
  }

  /** Each law is reported once for each service: what follows from the first breach says nothing new. */
  report(law: Law, service: string | undefined, message: string): void {
    const key = `${law} ${service ?? ''}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    const atMs = toMicroseconds(this.#timeline.now);
    this.breaches.push({ law: lawNames[law], atMs, service, message });
  }

  // ---- after each event in a process ------------------------------------------------------------------------------

  check(process: JudgedProcess): void {
    const counts = process.pool.counts();
    const { limit, pending, live, closing, idle, inUse, checking, waiting } = counts;
    const total = pending + live + closing;
    if (total > limit + process.excess()) this.#tell('limit', process, counts, `${total} of ${limit}`);
    if (live !== idle + inUse + checking)
      this.#tell('counts', process, counts, `${live} live are not ${idle + inUse + checking}`);
    this.#checkBooks(process, counts);
    this.#checkSessions(process, counts, total);
    this.#checkHeldLeases(process, total);
    if (waiting > 0) this.#checkWaiting(process, counts, total);
  }

  #tell(law: Law, process: JudgedProcess, counts: PoolCounts, what: string): void {
    this.report(law, process.name, `${what}; ${JSON.stringify(counts)}`);
  }

  #checkBooks({ dialer, name }: JudgedProcess, { pending, live, closing }: PoolCounts): void {
    if (pending === dialer.pending && live === dialer.live && closing === dialer.closing) return;
    const seen = `pending ${dialer.pending}, live ${dialer.live}, closing ${dialer.closing}`;
    const said = `pending ${pending}, live ${live}, closing ${closing}`;
    this.report('counts', name, `the pool says ${said}, but it is ${seen}`);
  }

  /** Each session on the server has its place in the pool, and each live connection its session. */
  #checkSessions(process: JudgedProcess, counts: PoolCounts, total: number): void {
    const { sessions, lostSessions, disownedSessions } = process;
    if (sessions > total + disownedSessions)
      this.#tell('limit', process, counts, `the server has ${sessions} sessions of it`);
    if (counts.live - lostSessions > sessions)
      this.#tell('counts', process, counts, `the server has only ${sessions} sessions of it`);
  }

  /** A lease for each slot, and at most one in hand. */
  #checkHeldLeases({ leases, name }: JudgedProcess, total: number): void {
    if (leases === undefined) return;
    if (leases.held < total) this.report('leases', name, `${total} slots have ${leases.held} leases`);
    if (leases.held > total + 1)
      this.report('approval', name, `${leases.held} leases are held for ${total} slots`);
  }

  #checkWaiting(process: JudgedProcess, counts: PoolCounts, total: number): void {
    const { pool, leases } = process;
    if (pool.state === 'open' && counts.idle > 0 && hasReady(process))
      this.#tell('ready', process, counts, `${counts.waiting} wait`);
    // There is room, and yet nothing is on its way, is being asked for, or is planned.
    const isIdle = counts.pending === 0 && counts.checking === 0 && !process.isAlarmSet && !leases?.isAsking;
    if (isIdle && total < counts.limit && pool.state !== 'paused')
      this.#tell('stranded', process, counts, `${counts.waiting} wait for nothing`);
  }

  // ---- after each event on the server or the coordinator ----------------------------------------------------------

  checkServer(server: JudgedServer): void {
    const { connectionLimit, perSecond, burst } = server.plan;
    if (server.size > connectionLimit)
      this.report('server', undefined, `${server.size} sessions of ${connectionLimit}`);
    const owned = server.size - server.disowned;
    if (owned > this.#leaseLimit)
      this.report('leases', undefined, `${owned} sessions with ${this.#leaseLimit} leases`);
    // Within one second a bucket lets in what it holds, and what is added in that second.
    const perSecondAtMost = Math.floor(perSecond + burst + 1e-6);
    if (server.acceptedPerSecond > perSecondAtMost)
      this.report('server', undefined, `more than ${perSecondAtMost} accepted within one second`);
  }

  checkLeases(outstanding: number, limit: number): void {
    if (outstanding > limit) this.report('leases', undefined, `${outstanding} leases of ${limit} are held`);
  }

  // ---- when a process is gone -------------------------------------------------------------------------------------

  checkTotals({ pool, tally, name }: JudgedProcess): void {
    const difference = tally.difference(pool.stats());
    if (difference !== undefined) this.report('counts', name, difference);
  }

  // ---- in the end, when all have ended in good order --------------------------------------------------------------

  checkEnd(services: readonly JudgedService[], server: JudgedServer): void {
    for (const { plan, process, unreturnedLeases } of services) {
      if (process !== undefined)
        this.#tell('approval', process, process.pool.counts(), 'it does not come to an end');
      if (unreturnedLeases !== 0)
        this.report('approval', plan.name, `${unreturnedLeases} leases were not given back`);
    }
    if (server.size > 0) this.report('approval', undefined, `${server.size} sessions are left on the server`);
  }

  checkCallers(callers: { readonly [K in 'came' | 'served' | 'failed' | 'gone']: number }): void {
    const { came, served, failed, gone } = callers;
    if (came !== served + failed + gone)
      this.report('answer', undefined, `${came} came; ${served} were served, ${failed} failed, ${gone} gone`);
  }
}

/** An idle connection that is past its time, or needs a check first, is not ready. */
function hasReady({ pool, clockNow }: JudgedProcess): boolean {
  for (const { state, lendUntil, aliveAt } of pool.connections()) {
    if (state === 'idle' && clockNow < lendUntil && clockNow - aliveAt <= pool.policy.checkAfterIdle)
      return true;
  }
  return false;
}

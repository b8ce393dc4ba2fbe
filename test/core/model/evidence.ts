// Evidence for the laws: calls to the pool, and what the server and the callers saw of it.
import type { PoolStats } from '../../../src/core/pool-stats.js';
import type { FakeSocket } from '../../support/fake-server.js';
import type { VirtualWorld } from '../../support/virtual-world.js';
import type { FakeBudget } from './fake-budget.js';
import type { WatchedLimiter } from './watched-limiter.js';

const never = Number.POSITIVE_INFINITY;

/** Calls of the test to the pool, as far as the laws depend on them. */
export class Intentions {
  #limit: number;
  highestLimit: number;
  state: 'open' | 'paused' | 'draining' = 'open';
  drainDeadline = never;
  readonly readyRequests = new Set<{ target: number; deadline: number }>();
  /** The first fill of the reservoir, while it goes on; one of the requests. */
  fill: { target: number; deadline: number } | undefined;
  isWarmingUp = false;

  constructor(limit: number) {
    this.#limit = limit;
    this.highestLimit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.highestLimit = Math.max(this.highestLimit, limit);
  }
}

export class Evidence {
  world!: VirtualWorld;
  /** The pool's own figures, as of the present check. */
  stats!: PoolStats;
  readonly intentions: Intentions;
  readonly limiter: WatchedLimiter | undefined;
  readonly budget: FakeBudget | undefined;
  /** Counted as the callers' outcomes came. */
  readonly callers = { waited: 0, timedOut: 0, aborted: 0, waitedMs: 0 };
  /** Dials that only the keeper can have wanted. */
  keptUp = 0;
  startedAt = 0;
  /** From then on connections are opened that nobody waits for. */
  heldBackUntil = 0;

  constructor(intentions: Intentions, limiter: WatchedLimiter | undefined, budget: FakeBudget | undefined) {
    this.intentions = intentions;
    this.limiter = limiter;
    this.budget = budget;
  }

  demand(truth: boolean, otherwise: () => string): void {
    if (!truth) this.world.contradict(otherwise());
  }

  /** Dials whose time is not up: the engine gives a dial up a moment before the server hears of it. */
  openingInTime(): number {
    const { server, policy, due, alarm } = this.world;
    let opening = 0;
    for (const dial of server.dials) {
      if (dial.state === 'opening' && dial.startedAt + policy.dialTimeout > due + alarm.granularityMs)
        opening++;
    }
    return opening;
  }

  /** Idle, and not about to reach its end. */
  spares(): number {
    let spares = 0;
    for (const socket of this.world.server.sockets) {
      // Between the engine's decision to lend it and the moment at which the borrower has it, it is idle no more.
      if (socket.place === 'idle' && socket.pooled?.state === 'idle' && !socket.pooled.expiring) spares++;
    }
    return spares;
  }

  /** Callers for whom nothing is under way. */
  callersWithout(): number {
    const { server, queue } = this.world;
    return queue.size - server.opening - server.countAt('checking');
  }

  /** Connections that nobody waits for and that should be there or under way. */
  sparesMissing(): number {
    const { server, policy, queue } = this.world;
    if (this.intentions.state !== 'open') return 0;
    const underWay = server.opening + server.countAt('checking');
    const spares = this.spares() + Math.max(0, underWay - queue.size);
    const size = server.live + server.opening;
    // The warmup tries each of its connections so often and no more: with one under way it may have no other to try.
    const cold = this.intentions.isWarmingUp && server.opening === 0 ? (policy.warmup?.target ?? 0) : 0;
    return Math.max(policy.minIdle - spares, this.readyTarget() - size, cold - size);
  }

  /** A dial is wanted, or may be: what the keeper wants is its own decision. */
  wantsMore(): boolean {
    const { server, policy } = this.world;
    if (this.callersWithout() > 0 || this.sparesMissing() > 0) return true;
    const kept = Math.max(policy.keeper?.target ?? 0, policy.warmup?.target ?? 0);
    return server.live + server.opening < kept;
  }

  readyTarget(): number {
    let target = 0;
    for (const request of this.intentions.readyRequests) target = Math.max(target, request.target);
    return target;
  }

  /** The latest moment at which the backoff after the failures in a row may end, whatever they failed for. */
  latestRetry(): number {
    const kinds = Object.values(this.world.server.failuresBy);
    return Math.max(...kinds.map(({ inARow, lastAt }) => this.latestRetryAfter(inARow, lastAt)));
  }

  latestLimiterRetry(): number {
    const { failuresInARow = 0, lastFailureAt = 0 } = this.limiter ?? {};
    return this.latestRetryAfter(failuresInARow, lastFailureAt);
  }

  latestLeaseRetry(): number {
    const { refusalsInARow = 0, lastRefusalAt = 0 } = this.budget ?? {};
    return this.latestRetryAfter(refusalsInARow, lastRefusalAt);
  }

  /** Until when a dial that was wanted may have been told to wait. */
  latestHold(): number {
    const waitUntil = this.limiter?.waitUntil ?? Number.NEGATIVE_INFINITY;
    return Math.max(waitUntil, this.latestRetry(), this.latestLimiterRetry(), this.latestLeaseRetry());
  }

  latestRetryAfter(inARow: number, lastAt: number): number {
    const { base, cap } = this.world.policy;
    return inARow === 0 ? Number.NEGATIVE_INFINITY : lastAt + Math.min(cap, base * 2 ** (inARow - 1));
  }

  /** When a connection is not to be given out any more: its end, or with a reservoir the guard window before it. */
  lendUntil(socket: FakeSocket): number {
    const { reservoir, guardWindow } = this.world.policy;
    const end = socket.pooled?.expiresAt ?? never;
    return reservoir === undefined ? end : end - guardWindow;
  }

  /** Whether a connection could be given out at this moment as it is. */
  isUsable(socket: FakeSocket): boolean {
    const { place, pooled } = socket;
    const { now, policy } = this.world;
    if (place !== 'idle' || pooled === undefined) return false;
    return now < this.lendUntil(socket) && now - pooled.aliveAt <= policy.checkAfterIdle;
  }

  /** Spare connections are held back, because the pool was started a moment ago. */
  isHeldBack(): boolean {
    const { now, alarm } = this.world;
    return now < this.heldBackUntil ? alarm.at <= this.heldBackUntil : alarm.at <= now;
  }

  /** How long a caller waits who says nothing: for the first fill, or for a moment. */
  usualTimeout(): number {
    const { reservoir, acquireTimeout } = this.world.policy;
    const { fill } = this.intentions;
    if (reservoir === undefined || fill === undefined) return acquireTimeout;
    return Math.max(acquireTimeout, fill.deadline - this.world.now);
  }
}

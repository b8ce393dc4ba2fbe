// What the laws are judged by: what was asked of the pool, and what the server and the callers saw of it.
import type { RateLimiter } from '../../../src/core/rate-limiter.js';
import { TokenBucket } from '../../../src/core/token-bucket.js';
import type { FakeSocket } from '../../support/fake-server.js';
import type { VirtualWorld } from '../../support/virtual-world.js';

const never = Number.POSITIVE_INFINITY;

/** What the test asked of the pool, as far as the laws depend on it. */
export class Intentions {
  #limit: number;
  highestLimit: number;
  state: 'open' | 'paused' | 'draining' = 'open';
  drainDeadline = never;
  readonly readyRequests = new Set<{ target: number; deadline: number }>();

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

/** A token bucket that remembers what it answered, for the laws about rate. */
export class WatchedBucket implements RateLimiter {
  readonly rate: number;
  readonly burst: number;
  readonly #bucket: TokenBucket;
  readonly grantedAt: number[] = [];
  /** Until when the last answer told the pool to wait. */
  waitUntil = Number.NEGATIVE_INFINITY;

  constructor(rate: number, burst: number) {
    this.rate = rate;
    this.burst = burst;
    this.#bucket = new TokenBucket({ rate, burst });
  }

  take(now: number): number {
    const wait = this.#bucket.take(now);
    this.waitUntil = wait === 0 ? Number.NEGATIVE_INFINITY : now + wait;
    if (wait === 0) this.grantedAt.push(now);
    return wait;
  }
}

export class Evidence {
  world!: VirtualWorld;
  readonly intentions: Intentions;
  readonly bucket: WatchedBucket | undefined;
  /** Counted as the callers' outcomes came. */
  readonly callers = { waited: 0, timedOut: 0, aborted: 0, waitedMs: 0 };

  constructor(intentions: Intentions, bucket: WatchedBucket | undefined) {
    this.intentions = intentions;
    this.bucket = bucket;
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

  readyTarget(): number {
    let target = 0;
    for (const request of this.intentions.readyRequests) target = Math.max(target, request.target);
    return target;
  }

  /** The latest moment at which the backoff after the failures in a row may end. */
  latestRetry(): number {
    const { failuresInARow, lastFailureAt } = this.world.server;
    const { base, cap } = this.world.policy;
    return lastFailureAt + Math.min(cap, base * 2 ** (failuresInARow - 1));
  }
}

/** Whether a connection could be lent at this moment as it is. */
export function isUsable(socket: FakeSocket, now: number, checkAfterIdle: number): boolean {
  const { place, pooled } = socket;
  if (place !== 'idle' || pooled === undefined) return false;
  return now < pooled.expiresAt && now - pooled.aliveAt <= checkAfterIdle;
}

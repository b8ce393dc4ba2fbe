// The laws of the engine, judged from outside: by what the server and the callers saw, not by what the engine says.
import { AcquireTimeoutError, ConnectFailedError, PoolClosedError } from '../../../src/core/errors.js';
import type { RateLimiter } from '../../../src/core/rate-limiter.js';
import type { DiscardReason } from '../../../src/core/reasons.js';
import { TokenBucket } from '../../../src/core/token-bucket.js';
import type { Caller, FakeLease, FakeSocket, VirtualWorld, Witness } from '../../support/virtual-world.js';

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

export class Laws implements Witness {
  world!: VirtualWorld;
  readonly #intentions: Intentions;
  readonly #bucket: WatchedBucket | undefined;
  readonly #callers = { waited: 0, timedOut: 0, aborted: 0, waitedMs: 0 };

  constructor(intentions: Intentions, bucket: WatchedBucket | undefined) {
    this.#intentions = intentions;
    this.#bucket = bucket;
  }

  // ---- judged at the moment itself ----------------------------------------------------------------------------------

  dialBegun(): void {
    const { server, policy, now, queue } = this.world;
    const { limit, state } = this.#intentions;
    const opening = this.#openingInTime();
    this.#demand(server.total <= limit, () => `law 1: ${server.total} sockets, but the limit is ${limit}`);
    this.#demand(
      opening <= policy.dialLimit,
      () => `${opening} dials at once, but the limit is ${policy.dialLimit}`,
    );
    this.#demand(state !== 'paused', () => 'a dial began while the pool was paused');
    this.#demand(
      state !== 'draining' || queue.size > 0,
      () => 'a dial began for nobody while the pool was draining',
    );
    const ready = this.#readyTarget();
    const spares = this.#spares();
    this.#demand(
      spares + opening <= queue.size + policy.minIdle || server.live + opening <= ready,
      () =>
        `${spares} idle and ${opening} dials for ${queue.size} callers, ${policy.minIdle} spares and ready(${ready})`,
    );
    if (policy.onDialFailure === 'retry' && server.failuresInARow >= policy.threshold) {
      this.#demand(
        opening <= 1,
        () => `${opening} probes at once after ${server.failuresInARow} failures in a row`,
      );
    }
    const bucket = this.#bucket;
    if (bucket !== undefined) {
      const permits = bucket.grantedAt;
      this.#demand(
        permits.length >= server.dialed,
        () => `${server.dialed} dials with ${permits.length} permits`,
      );
      for (let from = 0; from < permits.length; from++) {
        const used = permits.length - from;
        const allowed = bucket.burst + ((now - (permits[from] as number)) * bucket.rate) / 1_000;
        this.#demand(used <= allowed + 1e-6, () => `${used} permits in a time that allows ${allowed}`);
      }
    }
  }

  lent(lease: FakeLease, caller: Caller | undefined): void {
    const { policy, queue, time } = this.world;
    const { socket, pooled } = lease;
    const { state } = this.#intentions;
    this.#demand(state !== 'paused', () => 'a connection was lent while the pool was paused');
    this.#demand(socket.uses <= policy.maxUses, () => `socket ${socket.id} was lent ${socket.uses} times`);
    this.#demand(
      socket.doomedBy.size === 0,
      () => `socket ${socket.id} was lent although ${[...socket.doomedBy]}`,
    );
    this.#demand(
      time.coarse() < pooled.expiresAt,
      () => `socket ${socket.id} was lent ${time.coarse() - pooled.expiresAt} ms after its end`,
    );
    const idleFor = time.coarse() - pooled.aliveAt;
    this.#demand(
      idleFor <= policy.checkAfterIdle,
      () => `socket ${socket.id} was lent unchecked after ${idleFor} ms`,
    );
    if (caller === undefined) {
      this.#demand(queue.size === 0, () => `tryTake() went past ${queue.size} callers in the queue`);
      this.#demand(state === 'open', () => `tryTake() gave a connection while the pool was ${state}`);
    } else {
      this.#callers.waited++;
      this.#callers.waitedMs += time.coarse() - caller.askedAt;
      for (const earlier of queue) {
        this.#demand(
          Number(earlier.name) > Number(caller.name),
          () => `caller ${caller.name} was served before ${earlier.name}`,
        );
        break;
      }
    }
  }

  failed(caller: Caller, error: Error): void {
    const { policy, now, due, server } = this.world;
    const says = (truth: boolean, why: string): void => {
      this.#demand(truth, () => `caller ${caller.name} got ${error.constructor.name}, but ${why}`);
    };
    if (error === caller.abortError) {
      this.#callers.aborted++;
      this.#callers.waitedMs += now - caller.askedAt;
    } else if (error instanceof AcquireTimeoutError) {
      this.#callers.timedOut++;
      this.#callers.waitedMs += now - caller.askedAt;
      says(due >= caller.deadlineAt, `its deadline is ${caller.deadlineAt - due} ms away`);
    } else if (error instanceof PoolClosedError) {
      says(this.#intentions.state === 'draining', `the pool is ${this.#intentions.state}`);
    } else if (error instanceof ConnectFailedError) {
      const opening = this.#openingInTime();
      says(policy.onDialFailure === 'retry', 'failures belong to single callers');
      says(error.attempts >= policy.threshold, `there were only ${error.attempts} failures in a row`);
      // The engine counts a dial as failed a moment before it tells the server to stop.
      const counted = error.attempts - server.failuresInARow - server.arguableFailures;
      says(counted <= 1, `there were ${server.failuresInARow} failures in a row and not ${error.attempts}`);
      says(
        server.live === 0 && opening === 0,
        `${server.live} live and ${opening} opening could still serve it`,
      );
      says(error.cause instanceof Error, 'it does not say why');
    } else says(policy.onDialFailure === 'reject', 'a failed dial is to be repeated');
  }

  discarded(socket: FakeSocket, reason: DiscardReason): void {
    const { policy, due, server } = this.world;
    const { limit, state, drainDeadline } = this.#intentions;
    const pooled = socket.pooled;
    const says = (truth: boolean, why: string): void => {
      this.#demand(
        truth,
        () => `law 5: socket ${socket.id} (${socket.place}) was discarded for ${reason}: ${why}`,
      );
    };
    switch (reason) {
      case 'idle_timeout': {
        const others = server.countAt('idle') - 1;
        says(socket.place === 'idle', 'but it was not idle');
        says(due >= (pooled?.idleSince ?? never) + policy.idleTimeout, 'but it was not idle for that long');
        says(others >= policy.minIdle, `which leaves ${others} of ${policy.minIdle} spares`);
        says(server.opening + server.live > policy.idleFloor, 'which goes below the floor');
        if (pooled?.expiring === false) {
          const spares = this.#spares();
          says(
            spares >= policy.minIdle,
            `which leaves ${spares} spares that will last, of ${policy.minIdle}`,
          );
        }
        return;
      }
      case 'max_lifetime': {
        const shortest = policy.maxLifetime - policy.maxLifetimeJitter / 2;
        says(due >= socket.bornAt + shortest, `but it lived for ${due - socket.bornAt} ms only`);
        return;
      }
      case 'max_uses':
        says(socket.uses >= policy.maxUses, `but it was used ${socket.uses} times`);
        return;
      case 'broken':
      case 'released_with_error':
        says(socket.doomedBy.has(reason), 'but that did not happen');
        return;
      case 'failed_check': {
        const hung = socket.place === 'checking' && due >= socket.checkBegunAt + policy.checkTimeout;
        says(socket.doomedBy.has(reason) || hung, 'but its check did not fail');
        return;
      }
      case 'over_limit':
        says(server.opening + server.live > limit, 'but the limit leaves room for it');
        return;
      case 'drained':
        says(state === 'draining', `but the pool was ${state}`);
        return;
      case 'drain_deadline':
        says(socket.place === 'lent', 'but it was not lent');
        says(due >= drainDeadline, 'but the deadline has not passed');
        return;
      case 'late_dial':
        says(socket.place === 'unwanted', 'but its dial had not been given up');
        return;
    }
  }

  // ---- judged after every step --------------------------------------------------------------------------------------

  checkNow(): void {
    this.#booksAgree();
    this.#totalsAgree();
    this.#everySocketIsWhereItShouldBe();
    this.#nobodyIsStranded();
    this.#drainingGoesOn();
    this.#theAlarmRingsInTime();
  }

  /** Law 1 and 2: the ledger's counts are the physical ones. */
  #booksAgree(): void {
    const { pool, server, queue } = this.world;
    const { limit } = this.#intentions;
    const counts = pool.counts();
    const truth = {
      limit,
      pending: server.opening,
      live: server.live,
      closing: server.closing,
      idle: server.countAt('idle'),
      lent: server.countAt('lent'),
      checking: server.countAt('checking'),
      waiting: queue.size,
    };
    for (const name of Object.keys(truth) as (keyof typeof truth)[]) {
      this.#demand(
        counts[name] === truth[name],
        () => `the pool counts ${name} ${counts[name]}, but it is ${truth[name]}`,
      );
    }
    this.#demand(
      counts.live === counts.idle + counts.lent + counts.checking,
      () =>
        `live ${counts.live} is not idle ${counts.idle} + lent ${counts.lent} + checking ${counts.checking}`,
    );
    this.#demand(pool.room === Math.max(0, limit - server.total), () => `the pool says room ${pool.room}`);
    this.#demand(server.countAt('unwanted') === 0, () => 'a late connection was left open');
  }

  #totalsAgree(): void {
    const { pool, server, checkouts, leaks } = this.world;
    const { totals, peak, state } = pool.stats();
    // The engine counts a dial that never answered for a moment longer than the server does.
    const highest = this.#intentions.highestLimit;
    this.#demand(peak >= server.peak && peak <= highest, () => `peak ${peak}, but it was ${server.peak}`);
    this.#demand(
      totals.acquired === checkouts,
      () => `${totals.acquired} checkouts counted, not ${checkouts}`,
    );
    const { waited, timedOut, aborted, waitedMs } = this.#callers;
    this.#demand(totals.waited === waited, () => `${totals.waited} counted as having waited, not ${waited}`);
    this.#demand(
      totals.timedOut === timedOut,
      () => `${totals.timedOut} counted as timed out, not ${timedOut}`,
    );
    this.#demand(totals.aborted === aborted, () => `${totals.aborted} counted as aborted, not ${aborted}`);
    const difference = Math.abs(totals.waitedMs - waitedMs);
    this.#demand(difference < 1e-3, () => `${totals.waitedMs} ms of waiting counted, not ${waitedMs}`);
    this.#demand(
      totals.opened === server.opened,
      () => `${totals.opened} opened counted, not ${server.opened}`,
    );
    this.#demand(
      totals.closed === server.closed,
      () => `${totals.closed} closed counted, not ${server.closed}`,
    );
    const failures = totals.dialsFailed - server.failures;
    this.#demand(
      failures >= 0 && failures <= server.arguableFailures,
      () => `${totals.dialsFailed} failed dials counted, not ${server.failures}`,
    );
    this.#demand(totals.leaks === leaks.length, () => `${totals.leaks} leaks counted, not ${leaks.length}`);
    for (const reason of Object.keys(totals.discarded) as DiscardReason[]) {
      const truth = server.discards.get(reason) ?? 0;
      this.#demand(
        totals.discarded[reason] === truth,
        () => `law 5: ${totals.discarded[reason]} discarded for ${reason} counted, not ${truth}`,
      );
    }
    const wanted =
      this.#intentions.state === 'draining' && this.world.drains > 0 ? 'closed' : this.#intentions.state;
    this.#demand(state === wanted, () => `the pool is ${state}, but should be ${wanted}`);
  }

  #everySocketIsWhereItShouldBe(): void {
    const { server, now, policy, alarm } = this.world;
    for (const socket of server.sockets) {
      const { pooled } = socket;
      if (pooled === undefined) continue;
      this.#demand(
        pooled.state === socket.place,
        () => `socket ${socket.id} is ${socket.place}, but the pool takes it for ${pooled.state}`,
      );
      if (socket.place === 'idle') {
        this.#demand(
          socket.doomedBy.size === 0,
          () => `socket ${socket.id} is kept although ${[...socket.doomedBy]}`,
        );
        this.#demand(
          socket.uses < policy.maxUses,
          () => `socket ${socket.id} is kept after ${socket.uses} uses`,
        );
      }
      const spread = Math.abs(pooled.expiresAt - socket.bornAt - policy.maxLifetime);
      this.#demand(
        socket.reason === 'late_dial' ||
          pooled.expiresAt === never ||
          spread <= policy.maxLifetimeJitter / 2 + 1e-6,
        () => `socket ${socket.id} was given a life of ${pooled.expiresAt - socket.bornAt} ms`,
      );
      this.#demand(
        socket.place !== 'idle' || now < pooled.expiresAt || alarm.at <= now,
        () => `socket ${socket.id} is idle past its end, and nothing is going to close it`,
      );
    }
  }

  /** Law 4, and what growth promises: no one waits, and no spare is missing, while something could be done about it. */
  #nobodyIsStranded(): void {
    const { server, policy, pool, queue, alarm, now, time } = this.world;
    if (this.#intentions.state === 'paused' || pool.state === 'closed') return;
    if (queue.size > 0) {
      for (const socket of server.sockets) {
        this.#demand(!isUsable(socket, now, policy.checkAfterIdle), () => {
          return `law 4: ${queue.size} callers wait while socket ${socket.id} is idle and usable`;
        });
      }
    }
    if (server.total >= this.#intentions.limit || server.opening >= policy.dialLimit) return;
    const underWay = server.opening + server.countAt('checking');
    const callersWithout = queue.size - underWay;
    let sparesMissing = 0;
    if (this.#intentions.state === 'open') {
      const spares = this.#spares() + Math.max(0, underWay - queue.size);
      sparesMissing = Math.max(policy.minIdle - spares, this.#readyTarget() - server.live - server.opening);
    }
    if (callersWithout <= 0 && sparesMissing <= 0) return;
    // Something is missing and there is room. Then something must hold the dial back, and the alarm must end that.
    const obeysBreaker = policy.onDialFailure === 'retry' || callersWithout <= 0;
    if (obeysBreaker && server.failuresInARow > 0) {
      if (server.failuresInARow >= policy.threshold && server.opening > 0) return;
      if (alarm.at <= Math.max(time.time, this.#latestRetry())) return;
    }
    if (this.#bucket !== undefined && alarm.at <= this.#bucket.waitUntil) return;
    if (server.arguableFailures > 0) return;
    this.#demand(false, () => {
      return `law 4: ${callersWithout} callers and ${sparesMissing} spares are missing, there is room, and no dial begins`;
    });
  }

  #drainingGoesOn(): void {
    const { server, pool, queue } = this.world;
    if (this.#intentions.state !== 'draining' || queue.size > 0) return;
    const useless = server.opening + server.countAt('idle');
    this.#demand(
      useless === 0,
      () => `${useless} connections are kept while the pool is draining and nobody waits`,
    );
    this.#demand(
      server.total > 0 || pool.state === 'closed',
      () => 'everything is gone, but the pool is not closed',
    );
  }

  /** Whatever has a deadline, the alarm rings by then. */
  #theAlarmRingsInTime(): void {
    const { server, policy, pool, queue, alarm, now, leases, leaks } = this.world;
    if (pool.state === 'closed') {
      this.#demand(!alarm.isArmed, () => 'the alarm is set in a closed pool');
      return;
    }
    const by = (at: number, what: string): void => {
      this.#demand(
        alarm.at <= at + alarm.granularityMs,
        () => `the alarm is set for ${alarm.at}, but ${what} is due at ${at}`,
      );
    };
    for (const caller of queue) by(caller.deadlineAt, `the deadline of caller ${caller.name}`);
    for (const dial of server.dials) {
      if (dial.state === 'opening') by(dial.startedAt + policy.dialTimeout, `dial ${dial.number}`);
      if (dial.state === 'abandoned')
        by(dial.abandonedAt + policy.closeTimeout, `abandoned dial ${dial.number}`);
    }
    const spares = this.#spares();
    for (const socket of server.sockets) {
      if (socket.place === 'checking')
        by(socket.since + policy.checkTimeout, `the check of socket ${socket.id}`);
      if (socket.place === 'closing')
        by(socket.since + policy.closeTimeout, `the close of socket ${socket.id}`);
      if (socket.place !== 'idle') continue;
      by(socket.pooled?.expiresAt ?? never, `the end of socket ${socket.id}`);
      if (!socket.pooled?.expiring)
        by((socket.pooled?.expiresAt ?? never) - policy.guardWindow, 'a guard window');
      by((socket.pooled?.aliveAt ?? never) + policy.keepalive, `the keepalive of socket ${socket.id}`);
    }
    if (spares > policy.minIdle && server.live > policy.idleFloor) {
      by(now + Math.max(policy.idleTimeout, policy.checkTimeout), 'an idle timeout');
    }
    for (const request of this.#intentions.readyRequests) by(request.deadline, 'ready()');
    if (policy.leakThreshold !== never) {
      for (const lease of leases) {
        const { socket, generation } = lease;
        const isReported = leaks.some((leak) => leak.socket === socket && leak.generation === generation);
        if (socket.place !== 'lent' || isReported) continue;
        by(lease.takenAt + policy.leakThreshold, `the leak of socket ${socket.id}`);
      }
    }
    if (this.#intentions.drainDeadline > now) by(this.#intentions.drainDeadline, 'the deadline of drain()');
  }

  /** Dials whose time is not up: the engine gives a dial up a moment before the server hears of it. */
  #openingInTime(): number {
    const { server, policy, due, alarm } = this.world;
    let opening = 0;
    for (const dial of server.dials) {
      if (dial.state === 'opening' && dial.startedAt + policy.dialTimeout > due + alarm.granularityMs)
        opening++;
    }
    return opening;
  }

  /** Idle, and not about to reach its end. */
  #spares(): number {
    let spares = 0;
    for (const socket of this.world.server.sockets) {
      // Between the engine's decision to lend it and the moment at which the borrower has it, it is idle no more.
      if (socket.place === 'idle' && socket.pooled?.state === 'idle' && !socket.pooled.expiring) spares++;
    }
    return spares;
  }

  #readyTarget(): number {
    let target = 0;
    for (const request of this.#intentions.readyRequests) target = Math.max(target, request.target);
    return target;
  }

  /** The latest moment at which the backoff after the failures in a row may end. */
  #latestRetry(): number {
    const { failuresInARow, lastFailureAt } = this.world.server;
    const { base, cap } = this.world.policy;
    return lastFailureAt + Math.min(cap, base * 2 ** (failuresInARow - 1));
  }

  #demand(truth: boolean, otherwise: () => string): void {
    if (!truth) this.world.contradict(otherwise());
  }
}

/** Whether a connection could be lent at this moment as it is. */
export function isUsable(socket: FakeSocket, now: number, checkAfterIdle: number): boolean {
  const { place, pooled } = socket;
  if (place !== 'idle' || pooled === undefined) return false;
  return now < pooled.expiresAt && now - pooled.aliveAt <= checkAfterIdle;
}

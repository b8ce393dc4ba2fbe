// The laws that are judged at the moment at which something happens: a dial, a checkout, a refusal, a discard.
import {
  AcquireTimeoutError,
  ConnectFailedError,
  PoolClosedError,
  ReservoirEmptyError,
} from '../../../src/core/errors.js';
import type { FillProgress } from '../../../src/core/pool-listener.js';
import type { DiscardReason } from '../../../src/core/reasons.js';
import type { FakeDial, FakeSocket } from '../../support/fake-server.js';
import type { Caller, FakeLease, Witness } from '../../support/virtual-world.js';
import type { Evidence } from './evidence.js';
import { isRightlyKept, reservoirWords, wordIsRight } from './reservoir-laws.js';
import { dialHasLeave, fillingIsTrue, isWantedAtTheStartOrByTheKeeper } from './source-laws.js';

const never = Number.POSITIVE_INFINITY;

export class MomentaryLaws implements Witness {
  readonly #evidence: Evidence;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  dialBegun(): void {
    const { server, policy, queue, due, alarm } = this.#evidence.world;
    const { limit, state } = this.#evidence.intentions;
    const opening = this.#evidence.openingInTime();
    this.#evidence.demand(
      server.total <= limit,
      () => `law 1: ${server.total} sockets, but the limit is ${limit}`,
    );
    this.#evidence.demand(
      opening <= policy.dialLimit,
      () => `${opening} dials at once, but the limit is ${policy.dialLimit}`,
    );
    this.#evidence.demand(state !== 'paused', () => 'a dial began while the pool was paused');
    this.#evidence.demand(
      state !== 'draining' || queue.size > 0,
      () => 'a dial began for nobody while the pool was draining',
    );
    const ready = this.#evidence.readyTarget();
    const spares = this.#evidence.spares();
    this.#evidence.demand(
      spares + opening <= queue.size + policy.minIdle ||
        server.live + opening <= ready ||
        isWantedAtTheStartOrByTheKeeper(this.#evidence),
      () =>
        `${spares} idle and ${opening} dials for ${queue.size} callers, ${policy.minIdle} spares and ready(${ready})`,
    );
    const { heldBackUntil } = this.#evidence;
    this.#evidence.demand(
      due + alarm.granularityMs >= heldBackUntil || opening <= queue.size,
      () => `a dial began for nobody ${heldBackUntil - due} ms before the start`,
    );
    if (policy.onDialFailure === 'retry' && server.failuresInARow >= policy.threshold) {
      this.#evidence.demand(
        opening <= 1,
        () => `${opening} probes at once after ${server.failuresInARow} failures in a row`,
      );
    }
    dialHasLeave(this.#evidence);
  }

  dialFailed(dial: FakeDial): void {
    const { policy, queue, server, pool } = this.#evidence.world;
    const waiter = dial.dial.answersWaiter ? dial.dial.waiter : undefined;
    this.#evidence.demand(
      waiter === undefined || !queue.has(waiter as Caller),
      () => `caller ${(waiter as Caller).name} was not told that its dial failed`,
    );
    if (queue.size === 0 || policy.onDialFailure === 'reject' || server.live + server.opening > 0) return;
    this.#evidence.demand(
      this.#evidence.intentions.state === 'paused' || pool.stats().breaker !== 'open',
      () => `${queue.size} callers wait although dialing keeps failing and nothing lives`,
    );
  }

  taken(lease: FakeLease, caller: Caller | undefined): void {
    const { policy, queue, time } = this.#evidence.world;
    const { socket, pooled } = lease;
    const { state } = this.#evidence.intentions;
    this.#evidence.demand(state !== 'paused', () => 'a connection was given out while the pool was paused');
    this.#evidence.demand(
      socket.uses <= policy.maxUses,
      () => `socket ${socket.id} was given out ${socket.uses} times`,
    );
    this.#evidence.demand(
      socket.doomedBy.size === 0,
      () => `socket ${socket.id} was given out although ${[...socket.doomedBy]}`,
    );
    const lendUntil = this.#evidence.lendUntil(socket);
    this.#evidence.demand(
      time.coarse() < lendUntil,
      () =>
        `socket ${socket.id} was given out ${time.coarse() - lendUntil} ms after its end, or inside its guard window`,
    );
    const idleFor = time.coarse() - pooled.aliveAt;
    this.#evidence.demand(
      idleFor <= policy.checkAfterIdle,
      () => `socket ${socket.id} was given out unchecked after ${idleFor} ms`,
    );
    if (caller === undefined) {
      this.#evidence.demand(queue.size === 0, () => `tryTake() went past ${queue.size} callers in the queue`);
      this.#evidence.demand(
        state === 'open',
        () => `tryTake() gave a connection while the pool was ${state}`,
      );
    } else {
      this.#evidence.callers.waited++;
      this.#evidence.callers.waitedMs += time.coarse() - caller.askedAt;
      for (const earlier of queue) {
        this.#evidence.demand(
          Number(earlier.name) > Number(caller.name),
          () => `caller ${caller.name} was served before ${earlier.name}`,
        );
        break;
      }
    }
  }

  kept(socket: FakeSocket): void {
    isRightlyKept(this.#evidence, socket);
  }

  filling(progress: FillProgress): void {
    fillingIsTrue(this.#evidence, progress);
  }

  failed(caller: Caller, error: Error): void {
    const { policy, now, due, server } = this.#evidence.world;
    const says = (truth: boolean, why: string): void => {
      this.#evidence.demand(truth, () => `caller ${caller.name} got ${error.constructor.name}, but ${why}`);
    };
    if (error === caller.abortError) {
      this.#evidence.callers.aborted++;
      this.#evidence.callers.waitedMs += now - caller.askedAt;
    } else if (error instanceof AcquireTimeoutError || error instanceof ReservoirEmptyError) {
      says(
        error instanceof ReservoirEmptyError === (policy.reservoir !== undefined),
        'that is the wrong error',
      );
      this.#evidence.callers.timedOut++;
      this.#evidence.callers.waitedMs += now - caller.askedAt;
      says(due >= caller.deadlineAt, `its deadline is ${caller.deadlineAt - due} ms away`);
    } else if (error instanceof PoolClosedError) {
      says(this.#evidence.intentions.state === 'draining', `the pool is ${this.#evidence.intentions.state}`);
    } else if (error instanceof ConnectFailedError) {
      const opening = this.#evidence.openingInTime();
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
    const { policy, due, server } = this.#evidence.world;
    const { limit, state, drainDeadline } = this.#evidence.intentions;
    const pooled = socket.pooled;
    const says = (truth: boolean, why: string): void => {
      this.#evidence.demand(
        truth,
        () => `law 5: socket ${socket.id} (${socket.place}) was discarded for ${reason}: ${why}`,
      );
    };
    if (policy.reservoir !== undefined) wordIsRight(this.#evidence, socket, reason, says);
    else says(!reservoirWords.includes(reason), 'but there is no reservoir');
    switch (reason) {
      case 'idle_timeout': {
        const others = server.countAt('idle') - 1;
        says(socket.place === 'idle', 'but it was not idle');
        says(due >= (pooled?.idleSince ?? never) + policy.idleTimeout, 'but it was not idle for that long');
        says(others >= policy.minIdle, `which leaves ${others} of ${policy.minIdle} spares`);
        says(server.opening + server.live > policy.idleFloor, 'which goes below the floor');
        if (pooled?.expiring === false) {
          const spares = this.#evidence.spares();
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
      case 'lease_lost': {
        const debt = this.#evidence.budget?.debt ?? 0;
        says(debt > server.closing, `but ${debt} leases are lost and ${server.closing} are being closed`);
        return;
      }
      case 'lease_recalled': {
        const { recalled = 0, debt = 0 } = this.#evidence.budget ?? {};
        says(
          debt + recalled > server.closing,
          `but ${recalled} leases are asked back, ${debt} are lost and ${server.closing} are being closed`,
        );
        return;
      }
      case 'over_limit':
        says(server.opening + server.live > limit, 'but the limit leaves room for it');
        return;
      case 'drained':
        says(state === 'draining', `but the pool was ${state}`);
        return;
      case 'drain_deadline':
        says(socket.place === 'in_use', 'but it was not in use');
        says(due >= drainDeadline, 'but the deadline has not passed');
        return;
      case 'late_dial':
        says(socket.place === 'unwanted', 'but its dial had not been given up');
        return;
    }
  }
}

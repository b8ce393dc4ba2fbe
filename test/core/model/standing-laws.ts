// The laws that hold after every step, whatever the step was.
import type { DiscardReason } from '../../../src/core/reasons.js';
import type { Evidence } from './evidence.js';
import { checkReservoirLaws } from './reservoir-laws.js';
import { checkSourceLaws } from './source-laws.js';

const never = Number.POSITIVE_INFINITY;

export function checkStandingLaws(evidence: Evidence): void {
  evidence.stats = evidence.world.pool.stats();
  booksAgree(evidence);
  totalsAgree(evidence);
  everySocketIsWhereItShouldBe(evidence);
  nobodyIsStranded(evidence);
  whatIsReadyIsSaid(evidence);
  drainingGoesOn(evidence);
  theAlarmRingsInTime(evidence);
  theProgramMayEnd(evidence);
  checkSourceLaws(evidence);
  checkReservoirLaws(evidence);
}

/** Law 1 and 2: the ledger's counts are the physical ones. */
function booksAgree(evidence: Evidence): void {
  const { pool, server, queue } = evidence.world;
  const { limit } = evidence.intentions;
  const counts = evidence.stats;
  const truth = {
    limit,
    pending: server.opening,
    live: server.live,
    closing: server.closing,
    idle: server.countAt('idle'),
    inUse: server.countAt('in_use'),
    checking: server.countAt('checking'),
    waiting: queue.size,
  };
  for (const name of Object.keys(truth) as (keyof typeof truth)[]) {
    evidence.demand(
      counts[name] === truth[name],
      () => `the pool counts ${name} ${counts[name]}, but it is ${truth[name]}`,
    );
  }
  evidence.demand(
    counts.live === counts.idle + counts.inUse + counts.checking,
    () =>
      `live ${counts.live} is not idle ${counts.idle} + in use ${counts.inUse} + checking ${counts.checking}`,
  );
  evidence.demand(pool.room === Math.max(0, limit - server.total), () => `the pool says room ${pool.room}`);
  evidence.demand(server.countAt('unwanted') === 0, () => 'a late connection was left open');
  const listed = [...pool.connections()].filter(({ connection }) => connection.isLive).length;
  evidence.demand(
    listed === truth.live,
    () => `connections() lists ${listed} live ones, but there are ${truth.live}`,
  );
  for (const { connection } of pool.connections()) {
    evidence.demand(
      connection.isLive,
      () => `connections() lists socket ${connection.id}, which is ${connection.place}`,
    );
  }
  evidence.demand(
    truth.idle === 0 || truth.pending + truth.live <= limit,
    () => `${truth.idle} are kept idle while ${truth.pending + truth.live} exist and the limit is ${limit}`,
  );
}

function totalsAgree(evidence: Evidence): void {
  const { server, checkouts, leaks } = evidence.world;
  const { totals, peak, state } = evidence.stats;
  // The engine counts a dial that never answered for a moment longer than the server does.
  const highest = evidence.intentions.highestLimit;
  evidence.demand(peak >= server.peak && peak <= highest, () => `peak ${peak}, but it was ${server.peak}`);
  evidence.demand(
    totals.acquired === checkouts,
    () => `${totals.acquired} checkouts counted, not ${checkouts}`,
  );
  const { waited, timedOut, aborted, waitedMs } = evidence.callers;
  evidence.demand(totals.waited === waited, () => `${totals.waited} counted as having waited, not ${waited}`);
  evidence.demand(
    totals.timedOut === timedOut,
    () => `${totals.timedOut} counted as timed out, not ${timedOut}`,
  );
  evidence.demand(totals.aborted === aborted, () => `${totals.aborted} counted as aborted, not ${aborted}`);
  const difference = Math.abs(totals.waitedMs - waitedMs);
  evidence.demand(difference < 1e-3, () => `${totals.waitedMs} ms of waiting counted, not ${waitedMs}`);
  evidence.demand(
    totals.opened === server.opened,
    () => `${totals.opened} opened counted, not ${server.opened}`,
  );
  evidence.demand(
    totals.closed === server.closed,
    () => `${totals.closed} closed counted, not ${server.closed}`,
  );
  const failures = totals.dialsFailed - server.failures;
  evidence.demand(
    failures >= 0 && failures <= server.arguableFailures,
    () => `${totals.dialsFailed} failed dials counted, not ${server.failures}`,
  );
  evidence.demand(totals.leaks === leaks.length, () => `${totals.leaks} leaks counted, not ${leaks.length}`);
  for (const reason of Object.keys(totals.discarded) as DiscardReason[]) {
    const truth = server.discards.get(reason) ?? 0;
    evidence.demand(
      totals.discarded[reason] === truth,
      () => `law 5: ${totals.discarded[reason]} discarded for ${reason} counted, not ${truth}`,
    );
  }
  const wanted =
    evidence.intentions.state === 'draining' && evidence.world.drains > 0
      ? 'closed'
      : evidence.intentions.state;
  evidence.demand(state === wanted, () => `the pool is ${state}, but should be ${wanted}`);
}

function everySocketIsWhereItShouldBe(evidence: Evidence): void {
  const { server, now, policy, alarm } = evidence.world;
  // There the scanner sees to it, which is judged elsewhere.
  const isReservoir = policy.reservoir !== undefined;
  for (const socket of server.sockets) {
    const { pooled } = socket;
    if (pooled === undefined) continue;
    evidence.demand(
      pooled.state === socket.place,
      () => `socket ${socket.id} is ${socket.place}, but the pool takes it for ${pooled.state}`,
    );
    if (socket.place === 'idle') {
      evidence.demand(
        socket.doomedBy.size === 0,
        () => `socket ${socket.id} is kept although ${[...socket.doomedBy]}`,
      );
      evidence.demand(
        socket.uses < policy.maxUses,
        () => `socket ${socket.id} is kept after ${socket.uses} uses`,
      );
    }
    const spread = Math.abs(pooled.expiresAt - socket.bornAt - policy.maxLifetime);
    evidence.demand(
      socket.reason === 'late_dial' ||
        pooled.expiresAt === never ||
        spread <= policy.maxLifetimeJitter / 2 + 1e-6,
      () => `socket ${socket.id} was given a life of ${pooled.expiresAt - socket.bornAt} ms`,
    );
    evidence.demand(
      socket.place !== 'idle' || isReservoir || now < pooled.expiresAt || alarm.at <= now,
      () => `socket ${socket.id} is idle past its end, and nothing is going to close it`,
    );
  }
}

/** Law 4, and what growth promises: no one waits, and no spare is missing, while something could be done about it. */
function nobodyIsStranded(evidence: Evidence): void {
  const { server, policy, pool, queue, alarm, time } = evidence.world;
  if (evidence.intentions.state === 'paused' || pool.state === 'closed') return;
  if (queue.size > 0) {
    for (const socket of server.sockets) {
      evidence.demand(!evidence.isUsable(socket), () => {
        return `law 4: ${queue.size} callers wait while socket ${socket.id} is idle and usable`;
      });
    }
  }
  if (server.total >= evidence.intentions.limit || server.opening >= policy.dialLimit) return;
  const callersWithout = evidence.callersWithout();
  const sparesMissing = evidence.sparesMissing();
  if (callersWithout <= 0 && sparesMissing <= 0) return;
  // Something is missing and there is room. Then something must hold the dial back, and the alarm must end that.
  if (callersWithout <= 0 && evidence.isHeldBack()) return;
  const obeysBreaker = policy.onDialFailure === 'retry' || callersWithout <= 0;
  if (obeysBreaker && server.failuresInARow > 0) {
    if (server.failuresInARow >= policy.threshold && server.opening > 0) return;
    if (alarm.at <= Math.max(time.time, evidence.latestRetry())) return;
  }
  const { limiter, budget } = evidence;
  if (limiter !== undefined && alarm.at <= Math.max(limiter.waitUntil, evidence.latestLimiterRetry())) return;
  if (budget !== undefined) {
    if (budget.isAsking || budget.debt > 0) return;
    if (alarm.at <= Math.max(time.time, evidence.latestLeaseRetry())) return;
  }
  if (server.arguableFailures > 0) return;
  evidence.demand(false, () => {
    return `law 4: ${callersWithout} callers and ${sparesMissing} spares are missing, there is room, and no dial begins`;
  });
}

function whatIsReadyIsSaid(evidence: Evidence): void {
  const { intentions, world } = evidence;
  for (const { target } of intentions.readyRequests) {
    evidence.demand(
      target > world.server.live,
      () => `ready(${target}) was not answered with ${world.server.live} live`,
    );
  }
}

function drainingGoesOn(evidence: Evidence): void {
  const { server, pool, queue, now, alarm } = evidence.world;
  if (evidence.intentions.state !== 'draining') return;
  // Unless the alarm is late, what is left at the deadline has been refused and destroyed.
  if (evidence.intentions.drainDeadline <= now && alarm.at > now) {
    const left = queue.size + server.countAt('in_use');
    evidence.demand(left === 0, () => `${left} are left after the deadline of drain()`);
  }
  if (queue.size > 0) return;
  // What is being opened may arrive, to be closed in good order, but has no longer for it than a closing has.
  const useless = server.countAt('idle');
  const { closeTimeout } = pool.policy;
  evidence.demand(
    server.opening === 0 || alarm.at <= now + closeTimeout + alarm.granularityMs,
    () => `the alarm is set for ${alarm.at}, but a dial for nobody has until ${now + closeTimeout} at most`,
  );
  evidence.demand(
    useless === 0,
    () => `${useless} connections are kept while the pool is draining and nobody waits`,
  );
  evidence.demand(
    server.total > 0 || pool.state === 'closed',
    () => 'everything is gone, but the pool is not closed',
  );
}

/** Whatever has a deadline, the alarm rings by then. */
function theAlarmRingsInTime(evidence: Evidence): void {
  const { server, policy, pool, queue, alarm, now, leases, leaks } = evidence.world;
  if (pool.state === 'closed') {
    evidence.demand(!alarm.isArmed, () => 'the alarm is set in a closed pool');
    return;
  }
  const by = (at: number, what: string): void => {
    evidence.demand(
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
  const spares = evidence.spares();
  for (const socket of server.sockets) {
    if (socket.place === 'checking')
      by(socket.since + policy.checkTimeout, `the check of socket ${socket.id}`);
    if (socket.place === 'closing')
      by(socket.since + policy.closeTimeout, `the close of socket ${socket.id}`);
    if (socket.place !== 'idle') continue;
    if (policy.reservoir === undefined) {
      by(socket.pooled?.expiresAt ?? never, `the end of socket ${socket.id}`);
      if (!socket.pooled?.expiring)
        by((socket.pooled?.expiresAt ?? never) - policy.guardWindow, 'a guard window');
    }
    by((socket.pooled?.aliveAt ?? never) + policy.keepalive, `the keepalive of socket ${socket.id}`);
  }
  if (spares > policy.minIdle && server.live > policy.idleFloor) {
    by(now + Math.max(policy.idleTimeout, policy.checkTimeout), 'an idle timeout');
  }
  for (const request of evidence.intentions.readyRequests) by(request.deadline, 'ready()');
  if (policy.leakThreshold !== never) {
    for (const lease of leases) {
      const { socket, generation } = lease;
      const isReported = leaks.some((leak) => leak.socket === socket && leak.generation === generation);
      if (socket.place !== 'in_use' || isReported) continue;
      by(lease.takenAt + policy.leakThreshold, `the leak of socket ${socket.id}`);
    }
  }
  const { keeper } = policy;
  if (keeper !== undefined && evidence.intentions.state === 'open' && !evidence.intentions.isWarmingUp) {
    const lastLook = Math.max(now, evidence.heldBackUntil) + alarm.granularityMs;
    by(lastLook + keeper.interval, 'a look of the keeper');
  }
  if (evidence.intentions.drainDeadline > now)
    by(evidence.intentions.drainDeadline, 'the deadline of drain()');
}

/** The program goes on while someone waits for the pool, and not because of the pool otherwise. */
function theProgramMayEnd(evidence: Evidence): void {
  const { alarm, policy, pool, queue } = evidence.world;
  const { readyRequests, state } = evidence.intentions;
  if (!alarm.isArmed || pool.state === 'closed') return;
  const isAwaited = queue.size > 0 || readyRequests.size > 0 || state === 'draining';
  evidence.demand(!isAwaited || alarm.keepsProcessAlive, () => 'the program may end although someone waits');
  evidence.demand(
    isAwaited || policy.idleKeepsProcessAlive || !alarm.keepsProcessAlive,
    () => 'the program may not end although nobody waits',
  );
}

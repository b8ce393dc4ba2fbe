// The laws about what stands between a pool and its server: leases, permits, causes of failures, the start, the keeper.
import type { FillProgress } from '../../../src/core/pool-listener.js';
import type { Evidence } from './evidence.js';

const never = Number.POSITIVE_INFINITY;

/** A dial has just begun: it has a lease and a permit of its own, and nothing is owed. */
export function dialHasLeave(evidence: Evidence): void {
  const { server, now } = evidence.world;
  const { limiter, budget } = evidence;
  if (budget !== undefined) {
    evidence.demand(
      budget.debt === 0,
      () => `a dial began while ${budget.debt} lost leases were not paid for`,
    );
    evidence.demand(
      budget.held >= server.total,
      () => `${server.total} places are occupied with ${budget.held} leases`,
    );
  }
  if (limiter === undefined) return;
  const permits = limiter.grantedAt;
  evidence.demand(
    permits.length >= server.dialed,
    () => `${server.dialed} dials with ${permits.length} permits`,
  );
  for (let from = 0; from < permits.length; from++) {
    const used = permits.length - from;
    const allowed = limiter.burst + ((now - (permits[from] as number)) * limiter.rate) / 1_000;
    evidence.demand(used <= allowed + 1e-6, () => `${used} permits in a time that allows ${allowed}`);
  }
}

/** Whether something else than callers, spares and `ready()` can have wanted a dial that has just begun. */
export function isWantedAtTheStartOrByTheKeeper(evidence: Evidence): boolean {
  const { server, policy, now, alarm } = evidence.world;
  const size = server.live + evidence.openingInTime();
  if (evidence.intentions.isWarmingUp && size <= (policy.warmup?.target ?? 0)) return true;
  if (policy.keeper === undefined || size > policy.keeper.target) return false;
  // One that was answered with a second chance is wanted a second time.
  evidence.keptUp++;
  const looks = Math.floor((now + 2 * alarm.granularityMs - evidence.startedAt) / policy.keeper.interval);
  return evidence.keptUp <= looks * policy.keeper.perTick + server.secondChances;
}

/** Told of the first fill or the warmup. */
export function fillingIsTrue(evidence: Evidence, progress: FillProgress): void {
  const { server, policy, now, due } = evidence.world;
  const { intentions } = evidence;
  const { kind, phase, size, target, failed, elapsedMs } = progress;
  const says = (truth: boolean, why: string): void => {
    evidence.demand(truth, () => `${kind} ${phase} with ${size} of ${target}, but ${why}`);
  };
  says(size === server.live, `${server.live} live`);
  says(
    elapsedMs === now - evidence.startedAt,
    `${now - evidence.startedAt} ms have passed, not ${elapsedMs}`,
  );
  if (kind === 'reservoir') {
    says(target === policy.reservoir?.lowWatermark, 'that is not the low watermark');
    if (phase === 'started') {
      says(intentions.fill === undefined, 'it had begun');
      intentions.fill = { target, deadline: now + (policy.reservoir?.initialFillTimeout ?? never) };
      intentions.readyRequests.add(intentions.fill);
      return;
    }
    const { fill } = intentions;
    says(fill !== undefined, 'it is not going on');
    says(phase === 'complete' ? size >= target : phase === 'timeout', 'there are too few');
    says(phase !== 'timeout' || (size < target && due >= (fill?.deadline ?? never)), 'there is time');
    if (fill !== undefined) intentions.readyRequests.delete(fill);
    intentions.fill = undefined;
    return;
  }
  says(target === policy.warmup?.target, 'that is not its target');
  says(intentions.isWarmingUp === (phase !== 'started'), 'it is not going on, or was');
  intentions.isWarmingUp = phase === 'started';
  if (phase === 'complete') says(size >= target || failed === 0, `${failed} were given up`);
  if (phase === 'given_up') {
    says(evidence.openingInTime() === 0, 'dials are under way');
    // The engine counts a dial as failed a moment before it tells the server to stop.
    const failures = server.failures + 1;
    says(failed > 0 && failures >= failed * ((policy.warmup?.retries ?? 0) + 1), 'too few failed');
  }
}

/** After every step. */
export function checkSourceLaws(evidence: Evidence): void {
  const { server } = evidence.world;
  leasesAgree(evidence);
  const { isWarmingUp } = evidence.intentions;
  evidence.demand(
    (evidence.stats.warmup?.isOver ?? true) === !isWarmingUp,
    () => `the pool says that its warmup is ${isWarmingUp ? '' : 'not '}over`,
  );
  failuresAreCounted(evidence);
  // Where nothing is wanted any more, nothing is made in the place of what failed.
  if (!evidence.wantsMore()) server.owedChances = 0;
  evidence.demand(
    server.secondChances <= server.firstDials + 1,
    () => `${server.secondChances} dials had a second chance, of ${server.firstDials} that were first`,
  );
}

/** Each occupied place has a lease or is in debt for one, and each lease a place, but for one that may be in hand. */
function leasesAgree(evidence: Evidence): void {
  const { budget } = evidence;
  const { server } = evidence.world;
  const { leased } = evidence.stats;
  if (budget === undefined) {
    evidence.demand(leased === 0, () => `${leased} leases of no budget`);
    return;
  }
  const { held, debt, recalled, inHand } = budget;
  evidence.demand(leased === held, () => `the pool says that it holds ${leased} leases, but it is ${held}`);
  evidence.demand(
    inHand === 0 || inHand === 1,
    () => `${server.total} places are occupied with ${held} leases and a debt of ${debt}`,
  );
  evidence.demand(
    inHand !== 1 || mayHoldOne(evidence),
    () => 'a lease is held although nothing is to be dialed',
  );
  const idle = server.countAt('idle');
  evidence.demand(
    debt <= server.closing || idle === 0,
    () =>
      `${idle} are kept idle while ${debt} leases are lost and ${server.closing} connections being closed`,
  );
  evidence.demand(
    debt + recalled <= server.closing || idle === 0,
    () =>
      `${idle} are kept idle while ${recalled} leases are asked back and ${server.closing} connections being closed`,
  );
}

/** One is in hand for the next dial: it is wanted, or was a moment ago, and the alarm will tell. */
function mayHoldOne(evidence: Evidence): boolean {
  const { alarm, pool, time } = evidence.world;
  if (pool.state === 'closed' || evidence.intentions.state === 'paused') return false;
  return evidence.wantsMore() || alarm.at <= Math.max(time.time, evidence.latestHold());
}

function failuresAreCounted(evidence: Evidence): void {
  const { server, refillFailures: told } = evidence.world;
  const { limiter, budget } = evidence;
  const { rate_limit, token_provider, connection_open } = server.failuresBy;
  const truth = {
    lease_acquire: budget?.refusals ?? 0,
    rate_limit: rate_limit.count + (limiter?.failures ?? 0),
    token_provider: token_provider.count,
    connection_open: connection_open.count,
  };
  const counted = evidence.stats.totals.refillFailures;
  for (const cause of Object.keys(truth) as (keyof typeof truth)[]) {
    const arguable = cause === 'connection_open' ? server.arguableFailures : 0;
    const difference = counted[cause] - truth[cause];
    evidence.demand(
      difference >= 0 && difference <= arguable,
      () => `${counted[cause]} failures by ${cause} counted, not ${truth[cause]}`,
    );
    evidence.demand(
      told[cause] === counted[cause],
      () => `${counted[cause]} failures by ${cause} counted, but ${told[cause]} told`,
    );
  }
}

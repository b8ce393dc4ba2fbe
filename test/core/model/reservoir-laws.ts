// The laws of a reservoir: what is given out has time left, what is discarded is discarded under the right word.
import type { DiscardReason } from '../../../src/core/reasons.js';
import type { FakeSocket } from '../../support/fake-server.js';
import type { Evidence } from './evidence.js';

/** How often the scanner looks at least. */
const scanMs = 1_000;

const scanned: readonly DiscardReason[] = ['expired_on_scan', 'expiring_soon_on_scan'];
const checkedOut: readonly DiscardReason[] = ['expired_on_checkout', 'insufficient_remaining_lifetime'];
/** The words that a reservoir alone uses. */
export const reservoirWords: readonly DiscardReason[] = [
  ...scanned,
  ...checkedOut,
  'expired_on_return',
  'reservoir_full',
];

type Says = (truth: boolean, why: string) => void;

/** A connection has just been discarded by a reservoir. */
export function wordIsRight(evidence: Evidence, socket: FakeSocket, reason: DiscardReason, says: Says): void {
  const { world } = evidence;
  says(reason !== 'max_lifetime', 'which is no word of a reservoir');
  if (world.returning === socket) {
    const right = wordOnReturn(evidence, socket, evidence.spares());
    says(reason === right, `but it came back, and the word for that is ${right ?? 'none'}`);
    return;
  }
  says(reason !== 'expired_on_return' && reason !== 'reservoir_full', 'but it did not come back');
  const end = socket.pooled?.expiresAt ?? 0;
  const guard = evidence.lendUntil(socket);
  if (checkedOut.includes(reason)) {
    const now = world.time.coarse();
    says(world.taking > 0 || world.queue.size > 0, 'but nobody wants one');
    says(socket.place === 'idle', 'but it was not idle');
    says(now >= guard, `but it has ${guard - now} ms until the guard window`);
    says((reason === 'expired_on_checkout') === now >= end, `but it has ${end - now} ms until its end`);
  }
  if (scanned.includes(reason)) {
    const now = socket.answersCheck ? world.now : world.due;
    says(world.isRinging || socket.answersCheck, 'but there was no scan');
    says(socket.place === 'idle', 'but it was not idle');
    says((reason === 'expired_on_scan') === now >= end, `but it has ${end - now} ms until its end`);
    if (now < guard) isReplacedInGoodTime(evidence, guard - now, says);
  }
}

/** A connection has come back to a reservoir and is kept. */
export function isRightlyKept(evidence: Evidence, socket: FakeSocket): void {
  if (evidence.world.policy.reservoir === undefined) return;
  const isSpare = socket.pooled?.expiring === false;
  const right = wordOnReturn(evidence, socket, evidence.spares() - (isSpare ? 1 : 0));
  evidence.demand(
    right === undefined,
    () => `socket ${socket.id} came back and was kept, but the word for that is ${right}`,
  );
}

/** The word for a connection that has come back, by what the world knows of it; undefined: it is to be kept. */
function wordOnReturn(evidence: Evidence, socket: FakeSocket, ready: number): DiscardReason | undefined {
  const { world, intentions, budget } = evidence;
  const { policy, server, queue } = world;
  const now = world.time.coarse();
  for (const reason of ['released_with_error', 'broken'] as const)
    if (socket.doomedBy.has(reason)) return reason;
  if (socket.uses >= policy.maxUses) return 'max_uses';
  if (now >= (socket.pooled?.expiresAt ?? 0)) return 'expired_on_return';
  if (now >= evidence.lendUntil(socket)) return 'insufficient_remaining_lifetime';
  if (queue.size === 0 && ready >= (policy.reservoir?.targetReady ?? 0)) return 'reservoir_full';
  if (intentions.state === 'draining' && queue.size === 0) return 'drained';
  if ((budget?.debt ?? 0) > server.closing) return 'lease_lost';
  if ((budget?.debt ?? 0) + (budget?.recalled ?? 0) > server.closing) return 'lease_recalled';
  return server.opening + server.live > intentions.limit ? 'over_limit' : undefined;
}

/** A connection is retired ahead of its time: not while there is time for all, and not so that more are missing than may be. */
function isReplacedInGoodTime(evidence: Evidence, remainingMs: number, says: Says): void {
  const { server, policy } = evidence.world;
  const { lowWatermark = 0, targetReady = 0 } = policy.reservoir ?? {};
  const longestDialMs = Math.max(100, server.longestDialMs);
  const slowestMs = Math.max(longestDialMs, 1_000 / (evidence.limiter?.rate ?? Number.POSITIVE_INFINITY));
  const longest = policy.maxLifetime + policy.maxLifetimeJitter / 2;
  // One after the other, and each begins a dial and a look before it must be there.
  const allMs = (server.live + 2) * slowestMs + longestDialMs + Math.max(1, longest / 256);
  says(
    remainingMs <= allMs,
    `but it has ${remainingMs} ms, and all of them could be replaced in ${allMs} ms`,
  );
  const margin = targetReady - lowWatermark;
  // Without a margin, as many as keep the source busy, and one whose place is being made.
  const busy = Math.ceil(((evidence.limiter?.rate ?? Number.POSITIVE_INFINITY) / 1_000) * longestDialMs) + 1;
  const tolerance = Math.max(1, Math.min(margin > 0 ? margin : busy, policy.dialLimit));
  const wanted = Math.min(targetReady, evidence.intentions.limit - server.countAt('in_use'));
  const missing = wanted - evidence.spares();
  says(missing <= tolerance, `which leaves ${missing} missing of ${wanted}`);
}

/** After every step. */
export function checkReservoirLaws(evidence: Evidence): void {
  const { pool, emptyHanded, toldEmpty, policy, server, now, alarm } = evidence.world;
  const { totals, reservoir } = evidence.stats;
  evidence.demand(
    totals.foundEmpty === emptyHanded,
    () => `${totals.foundEmpty} empty checkouts counted, not ${emptyHanded}`,
  );
  if (policy.reservoir === undefined) {
    evidence.demand(toldEmpty === 0, () => 'an empty reservoir was told of where there is none');
    evidence.demand(reservoir === undefined, () => 'there are figures of a reservoir that is none');
    for (const word of reservoirWords)
      evidence.demand(totals.discarded[word] === 0, () => `${word} is no word of a pool without a reservoir`);
    return;
  }
  evidence.demand(toldEmpty === emptyHanded, () => `${toldEmpty} empty checkouts told, not ${emptyHanded}`);
  evidence.demand(
    reservoir?.isFilled === (evidence.intentions.fill === undefined) ||
      evidence.intentions.state === 'draining',
    () => `the pool says that its first fill is ${reservoir?.isFilled ? '' : 'not '}over`,
  );
  const usual = evidence.usualTimeout();
  evidence.demand(
    pool.usualTimeoutMs === usual || evidence.intentions.state === 'draining',
    () => `a caller usually waits ${pool.usualTimeoutMs} ms, but it should be ${usual}`,
  );
  for (const socket of server.sockets) {
    if (socket.place !== 'idle') continue;
    const foundBy = evidence.lendUntil(socket) + scanMs + 2 * alarm.granularityMs;
    evidence.demand(
      now < foundBy || alarm.at <= now,
      () => `socket ${socket.id} is idle ${now - foundBy} ms after a scan should have found it`,
    );
    evidence.demand(
      alarm.at <= now + scanMs + 2 * alarm.granularityMs || pool.state === 'closed',
      () => `the next scan is ${alarm.at - now} ms away`,
    );
  }
}

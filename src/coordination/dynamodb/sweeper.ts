/**
 * Sweeps the leases of all instances, one instance at a time: reclaims those of dead owners, sums up needs, computes the
 * shares, and corrects a wrong counter.
 *
 * An expired lease is reclaimed after the grace, and not before its owner had time to renew it while we were watching:
 * after an outage every lease has expired, and every owner is about to renew.
 */
import type { Alarm } from '../../kernel/clock.js';
import { type Claim, callersShare, enoughForAll, fairLevels, rankOf, shareOf } from './fair-level.js';
import {
  type Counter,
  claimSweep,
  counterChange,
  counterOf,
  isScarce,
  type Lease,
  type LeaseKeys,
  leaseOf,
  publishSweep,
  reclaim,
  repair,
} from './lease-items.js';
import type { Item } from './table.js';
import type { CallWorld, TableCalls } from './table-calls.js';
import { turnsOf } from './turns.js';

export interface SweepTerms {
  readonly keys: LeaseKeys;
  readonly limit: number;
  readonly graceMs: number;
  /** Interval between two sweeps, whichever instance makes them. */
  readonly sweepMs: number;
  /** Interval while instances wait for slots. */
  readonly urgentMs: number;
  /** How long a lease must be watched without a renewal. */
  readonly watchMs: number;
  /** How long an instance has its slot, when there are fewer slots than instances. */
  readonly turnMs: number;
}

export interface SweepListener {
  /** Leases of other instances were reclaimed. */
  reclaimed(slots: number, from: Lease): void;
  /** The counter was wrong by `by`, and was corrected. */
  repaired(by: number): void;
  /** Slots may be free, or the shares may be others. */
  swept(): void;
}

/** Delay before a failed reclaim is retried, or up to twice that. */
const retryMs = 500;

interface Watched {
  readonly lease: Lease;
  /** By our own clock. */
  readonly dueAt: number;
}

export class Sweeper {
  readonly #calls: TableCalls;
  readonly #world: CallWorld;
  readonly #terms: SweepTerms;
  readonly #listener: SweepListener;
  readonly #ownKey: string;
  readonly #alarm: Alarm;
  /** Expired leases, by their key. */
  readonly #watched = new Map<string, Watched>();
  #sweepAt = Number.POSITIVE_INFINITY;
  /** Time of the next sweep without waiters. */
  #calmAt = Number.POSITIVE_INFINITY;
  #isBusy = false;
  #isOver = false;

  constructor(
    calls: TableCalls,
    world: CallWorld,
    terms: SweepTerms,
    ownKey: string,
    listener: SweepListener,
  ) {
    this.#calls = calls;
    this.#world = world;
    this.#terms = terms;
    this.#ownKey = ownKey;
    this.#listener = listener;
    this.#alarm = world.alarm(() => this.#rang());
  }

  /** Starts sweeping. Does nothing if it has started. */
  start(): void {
    if (this.#sweepAt !== Number.POSITIVE_INFINITY || this.#isOver) return;
    this.#planSweep(1);
    this.#arm();
  }

  /** Sweeps sooner, because pools here wait for slots; `waiting` instances do in all, and each may be the one that sweeps. */
  hurry(waiting = 1): void {
    const { clock, random } = this.#world;
    const soon = clock.now() + this.#terms.urgentMs * Math.max(1, waiting / 4) * random.next();
    if (this.#isOver || this.#isBusy || soon >= this.#sweepAt) return;
    this.#sweepAt = soon;
    this.#arm();
  }

  /** Another instance has swept, or this instance has no waiter any more. */
  relax(): void {
    if (this.#sweepAt >= this.#calmAt) return;
    this.#sweepAt = this.#calmAt;
    this.#arm();
  }

  stop(): void {
    this.#isOver = true;
    this.#alarm.clear();
  }

  /** The more there are, the more seldom it is the turn of each. */
  #planSweep(owners: number): void {
    const { clock, random } = this.#world;
    this.#calmAt = clock.now() + this.#terms.sweepMs * Math.max(1, owners) * 2 * random.next();
    this.#sweepAt = this.#calmAt;
  }

  #rang(): void {
    const now = this.#world.clock.now();
    if (this.#isBusy || this.#isOver) return;
    const due = [...this.#watched.values()].find(({ dueAt }) => dueAt <= now);
    if (due !== undefined) this.#reclaim(due.lease);
    else if (now >= this.#sweepAt) this.#claim();
    else this.#arm();
  }

  #arm(): void {
    if (this.#isOver || this.#isBusy) return;
    let at = this.#sweepAt;
    for (const { dueAt } of this.#watched.values()) at = Math.min(at, dueAt);
    if (at !== Number.POSITIVE_INFINITY) this.#alarm.set(at, false);
  }

  #done(): void {
    this.#isBusy = false;
    this.#arm();
  }

  // ---- sweeping ---------------------------------------------------------------------------------------------------

  /** Reads the counter first, which also tells the time: the sweep may not be due yet. */
  #claim(): void {
    const { keys } = this.#terms;
    this.#isBusy = true;
    this.#calls.read(keys.counter, (reply) => {
      if (reply.kind === 'failed') {
        this.#planSweep(1);
        this.#done();
        return;
      }
      const counter = counterOf(reply.value);
      this.#planSweep(counter.owners);
      const { sweepMs, urgentMs } = this.#terms;
      const isUrgent = counter.waiting > 0 || counter.active >= this.#terms.limit;
      const everyMs = isUrgent ? urgentMs : sweepMs;
      const nowMs = this.#calls.time.latest(this.#world.clock.now());
      if (counter.sweptMs > nowMs - everyMs) this.#done();
      else this.#claimAt(nowMs, everyMs);
    });
  }

  #claimAt(nowMs: number, everyMs: number): void {
    const { keys } = this.#terms;
    this.#calls.write(claimSweep(keys, nowMs, everyMs), (reply) => {
      if (reply.kind === 'done') this.#look(counterOf(reply.value));
      else this.#done();
    });
  }

  #look(counter: Counter): void {
    this.#calls.list(this.#terms.keys.leases, (reply) => {
      if (reply.kind === 'done') this.#found(counter, reply.value);
      else this.#done();
    });
  }

  #found(counter: Counter, items: readonly Item[]): void {
    const leases = items.map(leaseOf);
    const now = this.#world.clock.now();
    this.#planSweep(leases.length);
    this.#watch(leases, now);
    const sum = leases.reduce((total, { slots }) => total + slots, 0);
    if (sum === counter.active) this.#publish(counter, leases);
    else this.#repair(counter, sum, leases);
  }

  #watch(leases: readonly Lease[], now: number): void {
    const { graceMs, watchMs } = this.#terms;
    const nowMs = this.#calls.time.earliest(now);
    const over = leases.filter(({ key, expiresMs }) => key !== this.#ownKey && expiresMs < nowMs);
    const keys = new Set(over.map(({ key }) => key));
    for (const key of [...this.#watched.keys()]) if (!keys.has(key)) this.#watched.delete(key);
    for (const lease of over) {
      const known = this.#watched.get(lease.key)?.lease;
      if (known?.epoch === lease.epoch && known.seq === lease.seq) continue;
      const dueAt = now + Math.max(watchMs, lease.expiresMs + graceMs - nowMs + 1);
      this.#watched.set(lease.key, { lease, dueAt });
    }
  }

  /** Publishes the number of instances and waiting instances, and the shares, for all instances. */
  #publish(counter: Counter, leases: readonly Lease[]): void {
    const { keys, limit, turnMs } = this.#terms;
    const nowMs = this.#calls.time.earliest(this.#world.clock.now());
    const takeBeforeMs = counter.turns?.takeBeforeMs ?? 0;
    const found = {
      ...sharesOf(leases, limit),
      owners: leases.length,
      turns: turnsOf(leases, { limit, turnMs, nowMs, takeBeforeMs }),
    };
    // An unchanged state with enough for as many instances as before needs no write.
    const isCalm = found.waiting === 0 && found.levels === enoughForAll;
    if (isCalm && !isScarce(counter) && counter.owners === found.owners) {
      this.#listener.swept();
      this.#done();
      return;
    }
    this.#calls.write(publishSweep(keys, found, nowMs), () => {
      this.#listener.swept();
      this.#done();
    });
  }

  /**
   * Corrects the counter. If slots moved during the sweep, the sum differs too; the counter then has another version,
   * and is left alone.
   */
  #repair(counter: Counter, sum: number, leases: readonly Lease[]): void {
    const nowMs = this.#calls.time.earliest(this.#world.clock.now());
    this.#calls.write(repair(this.#terms.keys, counter.version, sum, nowMs), (reply) => {
      if (reply.kind === 'done') this.#listener.repaired(sum - counter.active);
      this.#publish(counter, leases);
    });
  }

  // ---- reclaiming -------------------------------------------------------------------------------------------------

  #reclaim(lease: Lease): void {
    const { keys, limit, graceMs } = this.#terms;
    const nowMs = this.#calls.time.earliest(this.#world.clock.now());
    this.#watched.delete(lease.key);
    const end = reclaim(lease, nowMs - graceMs);
    this.#isBusy = true;
    const changes = lease.slots === 0 ? [end] : [counterChange(keys, -lease.slots, limit, nowMs), end];
    this.#calls.writeAll(changes, (reply) => {
      if (reply.kind === 'done') this.#listener.reclaimed(lease.slots, lease);
      if (reply.kind === 'failed') this.#tryAgain(lease);
      this.#done();
    });
  }

  /** If the reclaim took effect after all, the next attempt finds no lease, which is harmless. */
  #tryAgain(lease: Lease): void {
    const { clock, random } = this.#world;
    this.#watched.set(lease.key, { lease, dueAt: clock.now() + retryMs * (1 + random.next()) });
  }
}

/** The levels of all shares, and the number of instances whose need no free slot can meet. */
function sharesOf(
  leases: readonly Lease[],
  limit: number,
): Pick<Counter, 'levels' | 'waiting' | 'callersShort'> {
  const claims = leases.map(({ needs, key }) => ({ ...needs, rank: rankOf(key) }));
  const levels = fairLevels(claims, limit);
  const found = { levels, waiting: 0, callersShort: 0 };
  let missing = leases.reduce((free, { slots }) => free + slots, -limit);
  for (const [n, { slots }] of leases.entries()) {
    const claim = claims[n] as Claim;
    const lacking = Math.max(claim.callers, shareOf(claim, levels)) - slots;
    missing += Math.max(0, lacking);
    if (lacking > 0) found.waiting++;
    if (slots < callersShare(claim, levels)) found.callersShort++;
  }
  return missing > 0 ? found : { ...found, waiting: 0, callersShort: 0 };
}

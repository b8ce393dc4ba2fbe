/**
 * "May I open one now?" for all instances together, answered from permits that were taken from a table in advance.
 *
 * - Permits are taken a few at a time, and only while a pool wants them. While many instances want some, each takes few,
 *   so that all get permits; a single instance takes more at once and has the full rate.
 * - A permit that was not used shortly after its moment is void. The depth of the bucket is reduced by the time for
 *   which permits may be used late. No window of time therefore has more than `burst + rate * time`, whatever the clocks
 *   say.
 */
import { Backoff } from '../../core/backoff.js';
import type { RateLimiter } from '../../core/rate-limiter.js';
import { TokenBucket } from '../../core/token-bucket.js';
import { LeaseCoordinatorError } from '../errors.js';
import { BatchSize } from './batch-size.js';
import { Permits } from './permits.js';
import {
  emptyBucket,
  type PermitRequest,
  spokenUntilUs,
  takeAfterOthers,
  takeFirst,
  usPerMs,
} from './rate-items.js';
import type { Failed, Item, Table, WriteReply } from './table.js';
import { type CallTally, type CallWorld, TableCalls } from './table-calls.js';

export interface RateSettings {
  readonly key: string;
  /** Permits a second, of all instances together. */
  readonly rate: number;
  readonly burst: number;
  /** Taken at once, at most. */
  readonly batch: number;
  /** The longest queue that an instance joins. */
  readonly maxWaitMs: number;
  /** Permits of this instance while the table can't be reached; undefined: none. */
  readonly localShare: { readonly rate: number; readonly burst: number } | undefined;
}

export interface TableRateLimiterStats {
  /** Unused permits. */
  readonly inHand: number;
  /** Permits that were used. */
  readonly taken: number;
  /** Number of dials that were told to wait. */
  readonly postponed: number;
  /** Number of dials refused because the table did not answer. */
  readonly denied: number;
  /** Number of times the server refused the speed of opening; refusals at about the same time count once. */
  readonly refused: number;
  /** Taken from the table, and void before they were used. */
  readonly expired: number;
  /** Number of permits currently taken at once. */
  readonly batch: number;
  /** Permits a second that this instance can count on at present. */
  readonly rate: number;
  /** Wait for the latest permits: the length of the queue. */
  readonly waitMs: number;
  readonly state: 'unused' | 'ok' | 'failing';
  readonly calls: Readonly<CallTally>;
}

/** Maximum time after its moment in which a permit can be used; a part of the bucket's depth if that is shorter. */
const longestUseMs = 1_000;
/** Minimum depth of a bucket: with less, no permit could be used that comes over a network. */
const shortestDepthMs = 250;
/** Interval between time requests, while the server's time must be known better. */
const askTimeMs = 30;

/** The smallest burst for a rate. */
export function leastBurst(rate: number): number {
  return Math.ceil(1 + (rate * shortestDepthMs) / 1_000);
}

/** A wait for a turn that is longer than this means that many wait. */
const crowdedMs = 200;
const backoffPolicy = { base: 100, cap: 5_000 };
/** Time after its moment at which a permit kept for an urgent pool goes to any pool. */
const keptMs = 100;
const slowest = 1 / 64;
const recovery = 1 / 50;
const oneWaveMs = 1_000;
/** Assumed duration of a call until the first has ended. */
const usualCallMs = 10;

export class TableRateLimiter implements RateLimiter {
  readonly #settings: RateSettings;
  readonly #world: CallWorld;
  readonly #calls: TableCalls;
  readonly #permits: Permits;
  /** Maximum sum of the delay and the error of the server's time. */
  readonly #roomMs: number;
  readonly #useMs: number;
  readonly #backoff: Backoff;
  readonly #local: TokenBucket | undefined;
  readonly #batch: BatchSize;
  #isOrdering = false;
  #knownUntilUs = Number.NEGATIVE_INFINITY;
  /** Factor on the rate: below 1 while the server finds connections too fast. */
  #speed = 1;
  #slowedAt = Number.NEGATIVE_INFINITY;
  #keptUntil = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #postponed = 0;
  #denied = 0;
  #refused = 0;
  #expiredBefore = 0;
  #tookAt = Number.NEGATIVE_INFINITY;
  #turnMs = 0;
  #notBefore = Number.NEGATIVE_INFINITY;
  #isUsed = false;

  constructor(table: Table, settings: RateSettings, world: CallWorld) {
    const { rate, burst, localShare } = settings;
    this.#settings = settings;
    this.#world = world;
    this.#calls = new TableCalls(table, world);
    this.#roomMs = ((burst - 1) / rate) * 1_000;
    this.#useMs = Math.min(longestUseMs, this.#roomMs / 4);
    this.#batch = new BatchSize(settings.batch);
    this.#permits = new Permits(this.#useMs);
    this.#backoff = new Backoff(backoffPolicy, world.random);
    this.#local = localShare && new TokenBucket(localShare);
  }

  /** The rate that this instance can count on: the full rate, or its part while many instances wait. */
  get rate(): number {
    const full = this.#settings.rate * this.#speed;
    return this.#turnMs > crowdedMs ? Math.min(full, (this.#batch.size * 1_000) / this.#turnMs) : full;
  }

  take(_now: number, isUrgent = false): number {
    // By our own clock, which permits use.
    const now = this.#world.clock.now();
    this.#isUsed = true;
    if (this.#local !== undefined && this.#backoff.failures > 0) {
      this.#order(now);
      const localMs = this.#local.take(now, isUrgent);
      if (localMs === 0) this.#taken++;
      else this.#postponed++;
      return localMs;
    }
    const keep = isUrgent || now >= this.#keptUntil ? 0 : 1;
    const waitMs = this.#permits.take(now, keep);
    this.#noteExpired();
    if (waitMs === 0) {
      this.#taken++;
      if (isUrgent) this.#keptUntil = Number.NEGATIVE_INFINITY;
      // An instance that takes one now and then would only let another expire.
      if (now - this.#tookAt <= this.#useMs && this.#runsLow(now)) this.#order(now);
      this.#tookAt = now;
      return 0;
    }
    if (this.#permits.left < this.#batch.size || this.#runsLow(now)) this.#order(now);
    const toldMs = this.#toldMs(now, waitMs);
    this.#postponed++;
    if (isUrgent) this.#keptUntil = now + toldMs + keptMs;
    return toldMs;
  }

  refused(_now: number): void {
    const now = this.#world.clock.now();
    if (now - this.#slowedAt < oneWaveMs) return;
    this.#slowedAt = now;
    this.#refused++;
    this.#speed = Math.max(slowest, this.#speed / 2);
    this.#permits.clear();
    this.#batch.startAnew();
    if (!this.#calls.time.isSet) return;
    const { key, rate, burst } = this.#settings;
    const costUs = Math.ceil((burst / rate) * 1_000 * usPerMs);
    this.#calls.write(emptyBucket({ key, rate, burst, costUs, nowUs: this.#nowUs(now) }), () => {});
  }

  opened(): void {
    this.#speed = Math.min(1, this.#speed + recovery);
  }

  /** Makes no further call, as if the program had ended. */
  abandon(): void {
    this.#calls.giveUp();
    this.#isOrdering = true;
  }

  stats(): TableRateLimiterStats {
    const state = this.#backoff.failures > 0 ? 'failing' : this.#isUsed ? 'ok' : 'unused';
    const { tally } = this.#calls;
    return {
      inHand: this.#permits.left,
      taken: this.#taken,
      postponed: this.#postponed,
      denied: this.#denied,
      refused: this.#refused,
      expired: this.#permits.expired,
      batch: this.#batch.size,
      rate: this.rate,
      waitMs: this.#turnMs,
      state,
      calls: { ...tally, failures: { ...tally.failures } },
    };
  }

  // ---- ordering ---------------------------------------------------------------------------------------------------

  /** Orders the next permits before the last is used, but only one order beyond the one in use. */
  #runsLow(now: number): boolean {
    const { left } = this.#permits;
    if (left > this.#batch.size) return false;
    return left <= this.#batch.size / 2 || this.#permits.lastAt - now < 2 * this.#callMs();
  }

  #order(now: number): void {
    if (this.#isOrdering || now < this.#backoff.retryAt || now < this.#notBefore) return;
    this.#isOrdering = true;
    if (this.#calls.time.widthMs(now) <= this.#roomMs - this.#useMs) this.#ask(this.#batch.size, 2);
    else this.#askTime();
  }

  /** Each answer narrows it down, and one just after the turn of a second most. */
  #askTime(): void {
    this.#calls.read(this.#settings.key, (reply) => {
      this.#isOrdering = false;
      if (reply.kind === 'failed') {
        this.#failed(reply);
        return;
      }
      const now = this.#world.clock.now();
      this.#knownUntilUs = spokenUntilUs(reply.value);
      if (this.#calls.time.widthMs(now) > this.#roomMs - this.#useMs) this.#notBefore = now + askTimeMs;
      else this.#order(now);
    });
  }

  /** Tries one of the two possible changes. If the other applies, or other instances were faster, it asks again. */
  #ask(count: number, attempts: number): void {
    const now = this.#world.clock.now();
    const request = this.#requestFor(count, now);
    const isLate = this.#knownUntilUs >= request.nowUs;
    const change = isLate ? takeAfterOthers(request) : takeFirst(request);
    this.#calls.write(change, (reply, sentAt) => {
      if (reply.kind === 'refused' && attempts > 0) {
        this.#knownUntilUs = spokenUntilUs(reply.findings[0]?.item);
        if (this.#knownUntilUs <= this.#requestFor(count, this.#world.clock.now()).latestUs) {
          this.#ask(count, attempts - 1);
          return;
        }
      }
      this.#isOrdering = false;
      this.#answered(reply, sentAt, count, request.costUs);
    });
  }

  #requestFor(count: number, now: number): PermitRequest {
    const { key, rate, burst, maxWaitMs } = this.#settings;
    const costUs = count * Math.ceil(1_000_000 / rate / this.#speed);
    const nowUs = this.#nowUs(now);
    const latestUs = nowUs + Math.ceil(this.#depthMs() * usPerMs) + maxWaitMs * usPerMs - costUs;
    return { key, costUs, nowUs, latestUs: Math.max(nowUs, latestUs), rate, burst };
  }

  /** Not earlier than the server's time. Permits that take long to arrive must not be void by then. */
  #nowUs(now: number): number {
    const callMs = this.#callMs();
    const lead = callMs > this.#useMs / 2 ? 2 * callMs : 0;
    return Math.ceil((this.#calls.time.latest(now) + lead) * usPerMs);
  }

  /** How far ahead of its moment a permit may be used: the depth of the bucket, less the time for late use. */
  #depthMs(): number {
    const { rate, burst } = this.#settings;
    return (burst / rate) * 1_000 - this.#useMs;
  }

  #answered(reply: WriteReply, sentAt: number, count: number, costUs: number): void {
    if (reply.kind === 'failed') {
      this.#failed(reply);
      return;
    }
    this.#backoff.succeeded();
    const now = this.#world.clock.now();
    if (reply.kind === 'refused') {
      // The queue is too long, or other instances were always faster.
      this.#batch.startAnew();
      this.#notBefore = now + crowdedMs * (0.5 + this.#world.random.next());
      return;
    }
    this.#received(reply.value, now, sentAt, count, costUs);
  }

  #received(item: Item | undefined, now: number, sentAt: number, count: number, costUs: number): void {
    this.#knownUntilUs = spokenUntilUs(item);
    const stepUs = costUs / count;
    const firstUs = this.#knownUntilUs - costUs + stepUs;
    const inMs = firstUs / usPerMs - this.#depthMs() - this.#calls.time.earliest(now);
    this.#permits.add(count, now + Math.max(-costUs / usPerMs, inMs), stepUs / usPerMs, sentAt);
    this.#turnMs = Math.max(0, inMs);
    const untilUs = this.#knownUntilUs;
    // An instance with a more exact time must not see a shorter queue: the middle of the bounds is the same for all.
    const lineMs = inMs - this.#calls.time.widthMs(now) / 2;
    this.#batch.taken({
      inMs: lineMs,
      afterUs: untilUs - costUs,
      untilUs,
      stepUs,
      callMs: this.#callMs(),
      now,
    });
  }

  #failed({ error, reason }: Failed): void {
    this.#backoff.failed(
      new LeaseCoordinatorError(`The table of the rate limit failed (${reason}).`, error),
      this.#world.clock.now(),
    );
  }

  // ---- telling ----------------------------------------------------------------------------------------------------

  #toldMs(now: number, waitMs: number | undefined): number {
    if (waitMs !== undefined) return Math.max(1, waitMs);
    if (this.#backoff.failures >= 2) {
      this.#denied++;
      throw this.#backoff.lastError as Error;
    }
    return Math.max(1, this.#callMs(), this.#backoff.retryAt - now, this.#notBefore - now);
  }

  #callMs(): number {
    const { answered, answeredMs, lastMs } = this.#calls.tally;
    return answered === 0 ? usualCallMs : Math.max(lastMs, answeredMs / answered);
  }

  /** Permits expired unused: fewer are taken at once. */
  #noteExpired(): void {
    const { expired } = this.#permits;
    if (expired === this.#expiredBefore) return;
    this.#expiredBefore = expired;
    this.#batch.halve();
  }
}

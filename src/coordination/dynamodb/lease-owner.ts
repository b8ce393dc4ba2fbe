/**
 * An instance's own lease: takes and releases slots, renews, and knows at every moment how many slots are surely its own
 * and until when.
 *
 *     none --create--> held --renew, change--> held --end--> none
 *                      held --found deleted--> none, in the next epoch
 *
 * One change is under way at a time. While it is unknown whether a change took effect, it is *in doubt*, and only as
 * many slots count as there are in either case. The next change uses the same `seq`. If it succeeds, the one in doubt
 * did not and never will; if it is refused, the reply shows the lease, and thereby what happened.
 */
import { Backoff } from '../../core/backoff.js';
import type { Alarm } from '../../kernel/clock.js';
import { type Needs, rankOf } from './fair-level.js';
import { isNews, type LeaseGoal } from './lease-goal.js';
import { type Counter, counterChange, counterOf, endOfLease, leaseChange, leaseOf } from './lease-items.js';
import type { LeaseSettings } from './lease-settings.js';
import type { Change, FailureReason, Finding, Item, ReadReply, WriteReply } from './table.js';
import type { CallWorld, TableCalls } from './table-calls.js';

/** The reason for which wanted slots could not be had, in one word. */
export type LeaseDenial = 'limit' | 'gone' | FailureReason;

export interface LeaseOwnerListener {
  /** Asked before each change. `isRenewing`: the lease is written anyway, so that to give slots back costs little. */
  goal(isRenewing: boolean): LeaseGoal;
  /** The slots, their validity, or the known state of the counter may have changed. */
  changed(): void;
  /** More slots were wanted, or a call was made, without success. */
  denied(reason: LeaseDenial, error: Error | undefined): void;
  /** Others have taken the lease away. */
  lost(slots: number): void;
  /** The counter is below what is held, and therefore wrong. */
  miscounted(): void;
}

export type LeaseTerms = Pick<
  LeaseSettings,
  'keys' | 'leaseId' | 'instance' | 'service' | 'limit' | 'leaseMs' | 'renewMs' | 'lookMs'
>;

interface Doubt {
  readonly slots: number;
  readonly sentAt: number;
}

const never = Number.POSITIVE_INFINITY;
const nothing: Needs = { callers: 0, total: 0, claimants: 1 };
const backoffPolicy = { base: 100, cap: 5_000 };
/** Interval between reads of the counter while the instance waits for a slot; longer, the more instances wait. */
const pollMs = 1_000;
const pollMsEach = 10;
/** Shortest interval between writes of the instance's needs. */
const tellEveryMs = 2_000;

export class LeaseOwner {
  readonly #calls: TableCalls;
  readonly #world: CallWorld;
  readonly #terms: LeaseTerms;
  readonly #listener: LeaseOwnerListener;
  readonly #key: string;
  /** Rank of its claim among equals. */
  readonly rank: number;
  readonly #alarm: Alarm;
  readonly #backoff: Backoff;
  #epoch = 1;
  /** 0: there is no lease. */
  #seq = 0;
  /** As last confirmed. */
  #slots = 0;
  #doubts: Doubt[] = [];
  /** The number of slots after the change under way. */
  #inFlight: number | undefined;
  #isBusy = false;
  #validUntil = Number.NEGATIVE_INFINITY;
  #wasValid = false;
  #renewAt = never;
  #lookAt = Number.NEGATIVE_INFINITY;
  #isDenied = false;
  /** Upper bound of the slots after the next change, from the number of free ones. */
  #cap = never;
  #told = { needs: nothing, at: Number.NEGATIVE_INFINITY };
  #createdMs = 0;
  #sinceMs = never;
  /** In that time it had one slot more than its whole slots. */
  #hasTurn = false;
  #counter: Counter | undefined;
  #counterAt = Number.NEGATIVE_INFINITY;
  #isEnding = false;
  #isOver = false;
  #onEnded: (() => void)[] = [];

  constructor(calls: TableCalls, world: CallWorld, terms: LeaseTerms, listener: LeaseOwnerListener) {
    this.#calls = calls;
    this.#world = world;
    this.#terms = terms;
    this.#listener = listener;
    this.#key = terms.keys.leases + terms.leaseId;
    this.rank = rankOf(this.#key);
    this.#alarm = world.alarm(() => this.#rang());
    this.#backoff = new Backoff(backoffPolicy, world.random);
  }

  get key(): string {
    return this.#key;
  }

  /** Needs as others know them; undefined without a lease. */
  get toldNeeds(): Needs | undefined {
    return this.#seq === 0 ? undefined : this.#told.needs;
  }

  /** Slots that are surely its own, as long as the lease is valid. */
  get slots(): number {
    return this.#doubts.reduce(
      (least, { slots }) => Math.min(least, slots),
      Math.min(this.#slots, this.#inFlight ?? never),
    );
  }

  /** Other instances can't have reclaimed the slots yet. */
  isValid(now: number): boolean {
    return now < this.#validUntil;
  }

  /** The limit is reached, or was when the counter was last read. */
  get isDenied(): boolean {
    return this.#isDenied;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Calls that failed since the last that did not. */
  get failures(): number {
    return this.#backoff.failures;
  }

  /** Slots as last confirmed, including those being released. */
  get confirmedSlots(): number {
    return this.#slots;
  }

  /** By the server's clock: start of its slot turn or of its wait for one; never without a lease. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** The counter, if it was seen within the last `withinMs`. */
  counter(now: number, withinMs: number): Counter | undefined {
    return now - this.#counterAt <= withinMs ? this.#counter : undefined;
  }

  /** Does the next step, if there is one. Runs one step after the other, and none while a call is under way. */
  pump(): void {
    if (this.#isBusy || this.#isOver) return;
    const now = this.#world.clock.now();
    if (now >= this.#backoff.retryAt) this.#step(now);
    this.#arm(now);
  }

  /** Slots may be free: reads the counter now, if it waits for some. */
  hurry(): void {
    if (!this.#isDenied) return;
    this.#lookAt = Number.NEGATIVE_INFINITY;
    this.pump();
  }

  /** Gives everything back, and ends. */
  end(onEnded: () => void): void {
    if (this.#isOver) {
      onEnded();
      return;
    }
    this.#onEnded.push(onEnded);
    this.#isEnding = true;
    this.#backoff.hurry();
    this.pump();
  }

  /** Stops all work. Held slots end with the lease. */
  abandon(): void {
    this.#isOver = true;
    this.#alarm.clear();
    for (const onEnded of this.#onEnded.splice(0)) onEnded();
  }

  // ---- next step --------------------------------------------------------------------------------------------------

  #step(now: number): void {
    if (this.#isEnding) {
      this.#stepToEnd();
      return;
    }
    const goal = this.#listener.goal(now >= this.#renewAt);
    if (this.#seq === 0 && goal.slots === 0 && goal.needs.total === 0) return;
    if (!this.#calls.time.isSet) {
      this.#look();
      return;
    }
    if (goal.slots <= this.#slots) this.#isDenied = false;
    const slots = this.#nextSlots(goal.slots);
    if (slots !== this.#slots || this.#seq === 0 || this.#mustWrite(goal, now)) this.#write(slots, goal);
    else if (now >= this.#lookAt) this.#look();
  }

  #stepToEnd(): void {
    if (this.#seq === 0 && this.#doubts.length === 0) this.abandon();
    else if (this.#doubts.length > 0)
      this.#write(this.#slots, { slots: 0, used: 0, needs: nothing, whole: 0 });
    else this.#endLease();
  }

  #nextSlots(goal: number): number {
    // Doubts are cleared up first.
    if (this.#doubts.length > 0) return this.#slots;
    const most = this.#isDenied ? this.#slots : Math.min(this.#cap, this.#terms.limit);
    return goal > this.#slots ? Math.max(this.#slots, Math.min(goal, most)) : goal;
  }

  #mustWrite(goal: LeaseGoal, now: number): boolean {
    if (this.#doubts.length > 0 || now >= this.#renewAt) return true;
    // Other instances can only release slots for needs they know of, and shares depend on needs while instances wait.
    const { needs, levels } = goal;
    if (levels === undefined || now - this.#told.at < tellEveryMs) return false;
    return isNews(this.#told.needs, { ...needs, rank: this.rank }, levels);
  }

  // ---- calls ------------------------------------------------------------------------------------------------------

  #look(): void {
    this.#isBusy = true;
    this.#calls.read(this.#terms.keys.counter, (reply, sentAt) => this.#looked(reply, sentAt));
  }

  #looked(reply: ReadReply<Item | undefined>, sentAt: number): void {
    this.#isBusy = false;
    if (reply.kind === 'failed') this.#failed(reply.reason, reply.error);
    else {
      this.#backoff.succeeded();
      this.#noteCounter(reply.value, sentAt);
      const free = this.#terms.limit - (this.#counter as Counter).active;
      if (this.#isDenied && free > 0) {
        this.#isDenied = false;
        this.#cap = this.#slots + free;
      }
      this.#planLook();
      this.#listener.changed();
    }
    this.pump();
  }

  #noteCounter(item: Item | undefined, at: number): void {
    this.#counter = counterOf(item);
    this.#counterAt = at;
  }

  #planLook(): void {
    const { waiting = 0, owners = 0 } = this.#counter ?? {};
    const { lookMs } = this.#terms;
    // While instances wait, shares and slot turns change often.
    const calm = waiting === 0 ? lookMs : Math.min(lookMs, Math.max(pollMs, pollMsEach * owners));
    const every = this.#isDenied ? Math.max(pollMs, pollMsEach * waiting) : calm;
    this.#lookAt = this.#world.clock.now() + every * (0.5 + this.#world.random.next());
  }

  #write(slots: number, goal: LeaseGoal): void {
    const { time } = this.#calls;
    const { keys, limit, leaseMs, instance, service } = this.#terms;
    const now = this.#world.clock.now();
    const nowMs = time.latest(now);
    if (this.#createdMs === 0) this.#createdMs = nowMs;
    const sinceMs = this.#sinceWith(slots, goal, nowMs);
    const lease = leaseChange({
      key: this.#key,
      ...{ instance, service, slots, nowMs },
      ...{ used: goal.used, needs: goal.needs },
      ...{ epoch: this.#epoch, seq: this.#seq, createdMs: this.#createdMs, sinceMs },
      // Not earlier than we stop by our own clock, whatever the server's clock says.
      expiresMs: nowMs + leaseMs,
    });
    const by = slots - this.#slots;
    const changes = by === 0 ? [lease] : [counterChange(keys, by, limit, nowMs), lease];
    this.#send(changes, slots, (reply, sentAt) => {
      if (reply.kind === 'done') {
        // A refused write published nothing.
        this.#told = { needs: goal.needs, at: now };
        this.#hasTurn = slots > goal.whole;
        this.#confirm(slots, sinceMs, sentAt);
      } else if (reply.kind === 'refused') this.#refused(reply.findings, by, sentAt);
    });
  }

  /** A turn begins with the first slot above the whole ones, and a wait with the loss of that or with the first caller. */
  #sinceWith(slots: number, goal: LeaseGoal, nowMs: number): number {
    const isNew = this.#seq === 0 || slots > goal.whole !== this.#hasTurn;
    const beginsToWant = slots === 0 && goal.needs.callers > 0 && this.#told.needs.callers === 0;
    return isNew || beginsToWant ? Math.floor(nowMs) : this.#sinceMs;
  }

  #endLease(): void {
    const { keys, limit } = this.#terms;
    const nowMs = this.#calls.time.latest(this.#world.clock.now());
    const end = endOfLease(this.#key, this.#epoch, this.#seq);
    const changes = this.#slots === 0 ? [end] : [counterChange(keys, -this.#slots, limit, nowMs), end];
    this.#send(changes, 0, (reply, sentAt) => {
      if (reply.kind === 'done') this.#forget();
      else if (reply.kind === 'refused') this.#refused(reply.findings, -this.#slots, sentAt);
    });
  }

  #send(
    changes: readonly Change[],
    slots: number,
    answered: (reply: WriteReply, sentAt: number) => void,
  ): void {
    this.#isBusy = true;
    this.#inFlight = slots;
    const answer = (reply: WriteReply, sentAt: number): void => {
      this.#isBusy = false;
      this.#inFlight = undefined;
      this.#cap = never;
      if (reply.kind === 'failed') {
        if (reply.reason === 'unavailable') this.#doubts.push({ slots, sentAt });
        this.#failed(reply.reason, reply.error);
      } else {
        this.#backoff.succeeded();
        answered(reply, sentAt);
      }
      this.pump();
    };
    if (changes.length === 1) this.#calls.write(changes[0] as Change, answer);
    else this.#calls.writeAll(changes, answer);
  }

  // ---- results ----------------------------------------------------------------------------------------------------

  #confirm(slots: number, sinceMs: number, sentAt: number): void {
    const { leaseMs, renewMs } = this.#terms;
    this.#slots = slots;
    this.#sinceMs = sinceMs;
    this.#seq++;
    this.#doubts = [];
    this.#validUntil = sentAt + leaseMs;
    this.#wasValid = true;
    // Jitter: instances that started together should not renew together.
    this.#renewAt = sentAt + renewMs * (0.9 + 0.1 * this.#world.random.next());
    this.#listener.changed();
  }

  #refused(findings: readonly Finding[], by: number, sentAt: number): void {
    const lease = findings.at(-1) as Finding;
    if (lease.isRefused) {
      this.#adopt(lease.item);
      return;
    }
    this.#noteCounter(findings[0]?.item, sentAt);
    if (by > 0) this.#deny();
    else {
      this.#backoff.failed(new Error('the counter is below what is held'), this.#world.clock.now());
      if (this.#isEnding) this.abandon();
      this.#listener.miscounted();
    }
  }

  /** Limits the wish to the number of free slots, if any are free. */
  #deny(): void {
    const free = this.#terms.limit - (this.#counter as Counter).active;
    if (free > 0) {
      this.#cap = this.#slots + free;
      return;
    }
    this.#isDenied = true;
    this.#planLook();
    this.#listener.denied('limit', undefined);
  }

  /** The lease differs from the expected state: takes over its state as found. */
  #adopt(item: Item | undefined): void {
    if (item === undefined) {
      const { slots } = this;
      this.#forget();
      this.#listener.denied('gone', undefined);
      this.#listener.lost(slots);
      return;
    }
    const { epoch, seq, slots, sinceMs } = leaseOf(item);
    // Only a change in doubt can have caused this, and the earliest of them is the safe guess.
    const madeAt = this.#doubts.reduce((earliest, { sentAt }) => Math.min(earliest, sentAt), never);
    if (madeAt !== never) this.#validUntil = Math.max(this.#validUntil, madeAt + this.#terms.leaseMs);
    this.#epoch = epoch;
    this.#seq = seq;
    this.#slots = slots;
    this.#sinceMs = sinceMs;
    this.#hasTurn = slots > 0;
    this.#doubts = [];
    this.#renewAt = Number.NEGATIVE_INFINITY;
    this.#wasValid = this.isValid(this.#world.clock.now());
    this.#listener.changed();
  }

  /** Forgets the lease, which no longer exists. Earlier changes belong to an epoch that is over. */
  #forget(): void {
    this.#epoch++;
    this.#seq = 0;
    this.#slots = 0;
    this.#sinceMs = never;
    this.#doubts = [];
    this.#validUntil = Number.NEGATIVE_INFINITY;
    this.#wasValid = false;
    this.#renewAt = never;
    this.#listener.changed();
  }

  #failed(reason: FailureReason, error: Error): void {
    this.#backoff.failed(error, this.#world.clock.now());
    this.#listener.denied(reason, error);
  }

  // ---- time -------------------------------------------------------------------------------------------------------

  #rang(): void {
    const now = this.#world.clock.now();
    if (this.#wasValid && !this.isValid(now)) {
      this.#wasValid = false;
      this.#listener.changed();
    }
    this.pump();
    this.#arm(now);
  }

  #arm(now: number): void {
    if (this.#isOver) return;
    const expiry = this.#wasValid ? this.#validUntil : never;
    const isIdle = this.#seq === 0 && !this.#isDenied;
    const next = this.#isBusy
      ? never
      : Math.max(Math.min(this.#renewAt, isIdle ? never : this.#lookAt), this.#backoff.retryAt);
    const retry = this.#isBusy || this.#backoff.retryAt <= now ? never : this.#backoff.retryAt;
    const tell = !this.#isBusy && this.#isDenied ? this.#told.at + tellEveryMs : never;
    const at = Math.min(expiry, next, retry, tell > now ? tell : never);
    if (at === never) this.#alarm.clear();
    else this.#alarm.set(Math.max(at, now), false);
  }
}

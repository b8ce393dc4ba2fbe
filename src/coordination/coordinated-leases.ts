/**
 * `Leases` of a coordinator that is asked over a channel.
 *
 * - Released leases that are not sent yet go to any pool of this process that wants them. Replacing a connection
 *   therefore needs no call, and goes on while the coordinator is down.
 * - A pool that asks has one call of its own. When the coordinator has no lease, the request waits here. The coordinator
 *   is asked again when it has confirmed a release, when it has granted something, and after a backoff.
 * - An answer that comes late, or for a request that was granted otherwise, goes to another pool or is released.
 * - Leases owed to the coordinator do not keep the program running.
 *
 * Has no clock and no promises of its own, so that it runs in virtual time.
 */
import { Backoff } from '../core/backoff.js';
import type { LeaseAnswer, LeaseHolder, Leases } from '../core/leases.js';
import type { Alarm } from '../kernel/clock.js';
import { LeaseCoordinatorError, LeaseLimitError } from './errors.js';
import { type HolderStats, isCount, LeaseBook } from './lease-book.js';
import type { LeaseChannel } from './lease-channel.js';
import { idSource } from './lease-functions.js';
import { ReleaseOutbox } from './release-outbox.js';
import { tell } from './tell.js';
import { type CallParts, callInTime, PersistentCalls } from './timed-call.js';
import { grantTo, WaitingHolders } from './waiting-holders.js';

/** The answer of `stats()` of `leasesFrom()`. */
export interface PromisedLeasesStats {
  /** Leases that pools of this process hold. */
  readonly held: number;
  /** Released, and not confirmed by the coordinator yet. */
  readonly owed: number;
  /** Pools for which a first answer is awaited. */
  readonly asking: number;
  /** Pools that wait, since the coordinator had no lease for them. */
  readonly waiting: number;
  /** Leases released by pools that did not hold them. Above 0, a holder has a bug. */
  readonly strayReleases: number;
  /** Holders with leases first, then those that only wait. */
  readonly byHolder: readonly HolderStats[];
}

/** Full jitter: as pools back off that have to ask by themselves. */
const backoffPolicy = { base: 100, cap: 10_000 };

export class CoordinatedLeases implements Leases {
  readonly #channel: LeaseChannel;
  readonly #parts: CallParts;
  readonly #nextId: () => string;
  readonly #persistent: PersistentCalls;
  readonly #outbox: ReleaseOutbox;
  readonly #book = new LeaseBook();
  /** Requests for which the coordinator had no lease. */
  readonly #waiting = new WaitingHolders();
  /** Requests that are owed a first answer. */
  readonly #asking = new Map<LeaseHolder, number>();
  /** Holders for which a call is under way that has not failed. */
  readonly #calls = new Set<LeaseHolder>();
  /** Holders whose last call may have taken effect, and is being cancelled. */
  readonly #inDoubt = new Map<LeaseHolder, { readonly count: number; wasTurnedAway: boolean }>();
  /** Calls of `acquire` that may yet be answered. */
  #unanswered = 0;
  /** Number of releases that the coordinator has confirmed. */
  #confirmed = 0;
  readonly #retry: Backoff;
  readonly #retryAlarm: Alarm;
  /** Number of calls to holders under way: work that must not run inside one of their own calls has to wait. */
  #tellings = 0;
  readonly #onQuiet = new Set<() => void>();

  constructor(
    channel: LeaseChannel,
    parts: CallParts,
    onReleaseFailed: (error: LeaseCoordinatorError) => void,
  ) {
    this.#channel = channel;
    this.#parts = parts;
    this.#nextId = idSource(parts.random);
    this.#persistent = new PersistentCalls(parts, (error) => tell(() => onReleaseFailed(error)));
    this.#outbox = new ReleaseOutbox({
      send: (count, done) => this.#send(count, done),
      soon: parts.soon,
      confirmed: (count) => this.#noteConfirmed(count),
      emptied: () => this.#tellQuiet(),
    });
    this.#retry = new Backoff(backoffPolicy, parts.random);
    this.#retryAlarm = parts.alarm(() => this.#askAgain(1));
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    if (!isCount(count)) return new RangeError(`One can't ask for ${count} leases.`);
    if (this.#waiting.mayTake(holder) && this.#outbox.takeBack(count)) {
      this.#withdraw(holder);
      this.#book.grant(count, holder);
      return 'granted';
    }
    if (this.#asking.has(holder)) return 'asking';
    if (this.#waiting.wishOf(holder) > 0) {
      this.#waiting.add(holder, count);
      return { reason: this.#limitError(count, holder) };
    }
    const doubt = this.#inDoubt.get(holder);
    if (doubt !== undefined) {
      doubt.wasTurnedAway = true;
      return new LeaseCoordinatorError(
        `An earlier request of ${holder.name} went unanswered, and the coordinator has not confirmed yet that it is void.`,
      );
    }
    this.#asking.set(holder, count);
    if (!this.#calls.has(holder)) this.#ask(count, holder);
    return 'asking';
  }

  release(count: number, holder: LeaseHolder): void {
    this.#giveBack(this.#book.giveBack(count, holder), holder);
  }

  /**
   * The coordinator has taken `count` leases of this process away: closes their connections, beginning with the pool of
   * the last grant. Leases waiting to be released go before any in use.
   */
  lost(count: number): void {
    if (!isCount(count)) throw new RangeError(`One can't lose ${count} leases.`);
    if (this.#tellings > 0) {
      this.#parts.soon(() => this.lost(count));
      return;
    }
    let left = count;
    const unused = Math.min(left, this.#outbox.unsent);
    this.#outbox.takeBack(unused);
    left -= unused;
    for (const holder of this.#book.latestFirst()) {
      const taken = this.#book.take(left, holder);
      left -= taken;
      if (taken > 0) this.#tell(() => holder.leasesLost(taken));
    }
  }

  /** Number of leases that the coordinator may still count and no pool here holds. */
  pending(): number {
    let pending = this.#outbox.owed;
    for (const { count } of this.#inDoubt.values()) pending += count;
    return pending;
  }

  /** Leases that pools have. */
  get held(): number {
    return this.#book.held;
  }

  /** A pool has a request that is not granted yet. */
  get isAsking(): boolean {
    return this.#asking.size > 0 || this.#waiting.size > 0;
  }

  /** No lease is pending, and no call is unanswered. */
  get isQuiet(): boolean {
    return this.#unanswered === 0 && this.pending() === 0;
  }

  /** Calls back when nothing is pending. Tries waiting attempts at once. Returns a function that stops the wait. */
  whenQuiet(onQuiet: () => void): () => void {
    this.#onQuiet.add(onQuiet);
    this.#persistent.hurry();
    this.#tellQuiet();
    return () => this.#onQuiet.delete(onQuiet);
  }

  stats(): PromisedLeasesStats {
    return {
      held: this.#book.held,
      owed: this.pending(),
      asking: this.#asking.size,
      waiting: this.#waiting.size,
      strayReleases: this.#book.strays,
      byHolder: this.#book.stats(this.#waiting),
    };
  }

  // ---- asking -----------------------------------------------------------------------------------------------------

  #ask(count: number, holder: LeaseHolder): void {
    const id = this.#nextId();
    const confirmedBefore = this.#confirmed;
    this.#calls.add(holder);
    this.#unanswered++;
    callInTime<boolean>(
      `Asking the coordinator for ${leases(count)} for ${holder.name}`,
      (answer) => this.#channel.acquire(count, id, answer),
      this.#parts,
      {
        answered: (isGranted) => {
          this.#unanswered--;
          this.#calls.delete(holder);
          if (isGranted) this.#granted(count, holder);
          else this.#denied(count, holder, this.#confirmed !== confirmedBefore);
          this.#tellQuiet();
        },
        failed: (error, isOpen) => {
          this.#calls.delete(holder);
          const { cancel } = this.#channel;
          if (cancel !== undefined) this.#cancel(count, holder, (answer) => cancel(count, id, answer));
          if (cancel !== undefined || !isOpen) this.#unanswered--;
          this.#failed(holder, error);
          this.#tellQuiet();
        },
        late: (reply) => {
          if (this.#channel.cancel !== undefined) return;
          this.#unanswered--;
          if ('value' in reply && reply.value) this.#giveBack(count, undefined);
          this.#tellQuiet();
        },
      },
    );
  }

  #granted(count: number, holder: LeaseHolder): void {
    this.#retry.succeeded();
    this.#handOver(count, holder);
    // The call was for an earlier request, which wanted less.
    const wish = this.#asking.get(holder) ?? 0;
    if (wish > 0 && !this.#calls.has(holder)) this.#ask(wish, holder);
    // The coordinator may have more.
    this.#askAgain(1);
  }

  /** `isOld`: the answer may be older than the latest releases. */
  #denied(count: number, holder: LeaseHolder, isOld: boolean): void {
    const wish = this.#wishOf(holder);
    if (wish > 0 && isOld) {
      this.#ask(wish, holder);
      return;
    }
    const error = this.#limitError(count, holder);
    this.#retry.failed(error, this.#parts.clock.now());
    // A pool of this process may have released leases meanwhile: these serve as well.
    if (wish > 0 && this.#outbox.takeBack(wish)) this.#handOver(wish, holder);
    else if (this.#asking.delete(holder)) {
      this.#waiting.add(holder, wish);
      this.#tell(() => holder.leasesDelayed?.(error));
    }
    this.#planRetry();
  }

  /** The holder asks again after a backoff of its own, which shows how often that fails. */
  #failed(holder: LeaseHolder, error: LeaseCoordinatorError): void {
    const wish = this.#wishOf(holder);
    if (wish > 0 && this.#outbox.takeBack(wish)) this.#handOver(wish, holder);
    else if (wish > 0) {
      this.#withdraw(holder);
      this.#tell(() => holder.leasesRefused(error));
    }
    // Another holder may succeed where this one failed.
    this.#askAgain(1);
  }

  #cancel(count: number, holder: LeaseHolder, call: Parameters<PersistentCalls['make']>[1]): void {
    const doubt = { count, wasTurnedAway: false };
    this.#inDoubt.set(holder, doubt);
    this.#persistent.make(`Cancelling a request for ${leases(count)} for ${holder.name}`, call, () => {
      this.#inDoubt.delete(holder);
      if (doubt.wasTurnedAway) this.#tell(() => holder.leasesAvailable());
      this.#noteConfirmed(count);
      this.#tellQuiet();
    });
  }

  #wishOf(holder: LeaseHolder): number {
    return this.#asking.get(holder) ?? this.#waiting.wishOf(holder);
  }

  #withdraw(holder: LeaseHolder): void {
    this.#asking.delete(holder);
    this.#waiting.remove(holder);
  }

  #limitError(count: number, holder: LeaseHolder): LeaseLimitError {
    return new LeaseLimitError(holder.name, count, this.#book.held);
  }

  // ---- asking again -----------------------------------------------------------------------------------------------

  /** The coordinator may have `count`. Asks for the smallest requests first: if they are denied, so are the others. */
  #askAgain(count: number): void {
    let left = count;
    const wishOf = (holder: LeaseHolder): number => this.#waiting.wishOf(holder);
    for (const holder of [...this.#waiting].sort((one, other) => wishOf(one) - wishOf(other))) {
      const wish = wishOf(holder);
      if (left <= 0) break;
      if (wish === 0) continue;
      if (!this.#calls.has(holder)) {
        if (this.#needsMore(holder)) this.#ask(wish, holder);
        else {
          // A holder that still wants it asks again, as if for the first time.
          this.#waiting.remove(holder);
          this.#tell(() => holder.leasesAvailable());
        }
      }
      if (this.#calls.has(holder)) left -= wish;
    }
    this.#planRetry();
  }

  #needsMore(holder: LeaseHolder): boolean {
    const { demand, readyDemand = 0 } = holder;
    return demand === undefined || demand + readyDemand > this.#book.heldBy(holder);
  }

  /** While a request waits, a call for one is either under way or planned. */
  #planRetry(): void {
    const now = this.#parts.clock.now();
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#retryAlarm.clear();
      return;
    }
    for (const holder of this.#waiting) if (this.#calls.has(holder)) return;
    if (now >= this.#retry.retryAt) this.#retry.failed(this.#limitError(1, first), now);
    this.#retryAlarm.set(this.#retry.retryAt, false);
  }

  #noteConfirmed(count: number): void {
    this.#confirmed++;
    this.#askAgain(count);
  }

  // ---- handing over -----------------------------------------------------------------------------------------------

  /** Gives this holder leases that a call has brought. Other holders get what it does not take. */
  #handOver(count: number, holder: LeaseHolder): void {
    const wish = this.#wishOf(holder);
    let taken = 0;
    if (wish > 0 && wish <= count) {
      this.#withdraw(holder);
      this.#tellings++;
      taken = grantTo(holder, wish, this.#book);
      this.#tellings--;
    }
    this.#giveBack(count - taken, undefined);
  }

  #giveBack(count: number, caller: LeaseHolder | undefined): void {
    if (count === 0) return;
    // A holder that releases while it waits is served after its call, and before anything is sent.
    const isWaiting = caller !== undefined && this.#waiting.wishOf(caller) > 0;
    if (isWaiting) this.#parts.soon(() => this.#serve(undefined));
    this.#outbox.add(count);
    this.#serve(caller);
  }

  /** Grants leases that have not been sent. */
  #serve(caller: LeaseHolder | undefined): void {
    this.#tellings++;
    this.#waiting.serve({
      caller,
      free: () => this.#outbox.unsent,
      grant: (count, holder) => {
        this.#outbox.takeBack(count);
        const taken = grantTo(holder, count, this.#book);
        if (taken < count) this.#outbox.add(count - taken);
        return taken;
      },
    });
    this.#tellings--;
  }

  #send(count: number, done: () => void): void {
    const id = this.#nextId();
    const what = `Giving ${leases(count)} back to the coordinator`;
    this.#persistent.make(what, (answer) => this.#channel.release(count, id, answer), done);
  }

  #tell(call: () => void): void {
    this.#tellings++;
    tell(call);
    this.#tellings--;
  }

  #tellQuiet(): void {
    if (this.#onQuiet.size === 0 || !this.isQuiet) return;
    for (const onQuiet of [...this.#onQuiet]) {
      this.#onQuiet.delete(onQuiet);
      onQuiet();
    }
  }
}

function leases(count: number): string {
  return count === 1 ? 'a lease' : `${count} leases`;
}

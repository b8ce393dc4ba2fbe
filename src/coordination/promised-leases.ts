/**
 * Makes `Leases` of two functions that answer with promises: one's own Redis, one's own service.
 *
 * - What is given back and not sent yet goes to whoever of this process wants it. Replacing a connection therefore asks
 *   nobody, and goes on while the coordinator is down.
 * - A lease is in hand for its holder while that is told of it. If it does not take it then, it is given back.
 * - What is owed to the coordinator does not keep the program running: the coordinator must cope with programs that die
 *   in any case, and one that can't end because of it would be worse. Who wants to be sure waits for `flush()`.
 */
import type { LeaseAnswer, LeaseHolder, Leases } from '../core/leases.js';
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';
import { LeaseCoordinatorError, LeaseLimitError } from './errors.js';
import { type HolderStats, isCount, LeaseBook } from './lease-book.js';
import {
  idSource,
  type LeaseFunctions,
  type LeasesFromOptions,
  readLeaseFunctions,
} from './lease-functions.js';
import { ReleaseOutbox } from './release-outbox.js';
import { tell } from './tell.js';
import { callInTime, coordinatorError, PersistentCalls, type TimedCall } from './timed-call.js';
import { WaitingHolders } from './waiting-holders.js';

export interface PromisedLeasesStats {
  /** Leases that pools of this process hold. */
  readonly held: number;
  /** Given back, and not confirmed by the coordinator yet. */
  readonly owed: number;
  /** Pools for which an answer is awaited. */
  readonly asking: number;
  /** Pools that were refused and have not been told since that it is worth asking again. */
  readonly waiting: number;
  /** Leases given back by those who did not hold them. Above 0 there is a mistake in a holder. */
  readonly strayReleases: number;
  /** Who holds or waits, those who hold first. */
  readonly byHolder: readonly HolderStats[];
}

/**
 * Leases of a coordinator of one's own.
 *
 * @example
 * ```ts
 * import { leasesFrom, Pool } from 'headgate';
 *
 * let free = 100; // stands for a counter that all processes share
 * const leases = leasesFrom({
 *   acquire: async (count) => {
 *     if (count > free) return false;
 *     free -= count;
 *     return true;
 *   },
 *   release: async (count) => {
 *     free += count;
 *   },
 * });
 * const pool = new Pool({ max: 20, leases });
 *
 * await pool.end();
 * await leases.flush({ timeout: '5s' });
 * ```
 */
export function leasesFrom(options: LeasesFromOptions): PromisedLeases {
  return new PromisedLeases(options);
}

export class PromisedLeases implements Leases {
  readonly #functions: LeaseFunctions;
  readonly #nextId: () => string;
  readonly #calls: PersistentCalls;
  readonly #outbox: ReleaseOutbox;
  readonly #book = new LeaseBook();
  readonly #waiting = new WaitingHolders();
  readonly #asking = new Set<LeaseHolder>();
  /** Granted to the holder that is being told of it. */
  #inHand: { holder: LeaseHolder; count: number } | undefined;
  /** Whose last request may or may not have taken effect, and is being cancelled. */
  readonly #inDoubt = new Map<LeaseHolder, { readonly count: number; wasTurnedAway: boolean }>();
  /** Calls of `acquire` that may yet answer. */
  #unanswered = 0;
  /** How often the coordinator has confirmed that it got something back. */
  #confirmed = 0;
  /** Holders are being told something: what must not come from inside one of their calls has to wait. */
  #tellings = 0;
  readonly #flushes = new Set<() => void>();

  constructor(options: LeasesFromOptions) {
    this.#functions = readLeaseFunctions(options);
    const { random, release, onReleaseFailed } = this.#functions;
    this.#nextId = idSource(random);
    this.#calls = new PersistentCalls(this.#functions, (error) => tell(() => onReleaseFailed?.(error)));
    this.#outbox = new ReleaseOutbox({
      send: (count, call) => this.#calls.make(`Giving ${leases(count)} back to the coordinator`, call),
      release: (count, id, signal) => release(count, { id, signal }),
      nextId: this.#nextId,
      confirmed: (count) => this.#noteConfirmed(count),
      emptied: () => this.#endFlushes(),
    });
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    if (!isCount(count)) return new RangeError(`One can't ask for ${count} leases.`);
    if (this.#takeInHand(count, holder) || this.#takeUnsent(count, holder)) {
      this.#book.grant(count, holder);
      this.#waiting.took(holder, count);
      return 'granted';
    }
    if (this.#asking.has(holder)) return 'asking';
    const doubt = this.#inDoubt.get(holder);
    if (doubt !== undefined) {
      doubt.wasTurnedAway = true;
      return new LeaseCoordinatorError(
        `An earlier request of ${holder.name} went unanswered, and the coordinator has not confirmed yet that it is void.`,
      );
    }
    this.#waiting.remove(holder);
    this.#asking.add(holder);
    void this.#ask(count, holder);
    return 'asking';
  }

  release(count: number, holder: LeaseHolder): void {
    this.#giveBack(this.#book.giveBack(count, holder), holder);
  }

  /**
   * The coordinator has taken so many leases of this process away: their connections are closed, those of the pool that
   * was given one last first. Leases that are waiting to be given back come before any that are in use.
   */
  lost(count: number): void {
    if (!isCount(count)) throw new RangeError(`One can't lose ${count} leases.`);
    if (this.#tellings > 0) {
      queueMicrotask(() => this.lost(count));
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

  /** How many leases the coordinator may still count that nobody here holds. */
  pending(): number {
    let pending = this.#outbox.owed;
    for (const { count } of this.#inDoubt.values()) pending += count;
    return pending;
  }

  /**
   * Waits until the coordinator has confirmed all that was given back, and nothing is being asked; at most `timeout`
   * (default `5s`). Answers how many are still pending. For the end of a program, after the pools have been closed.
   */
  flush(options: { readonly timeout?: Duration | undefined } = {}): Promise<number> {
    const read = new OptionReader(options);
    const timeoutMs = read.duration('timeout', 5_000, 0);
    read.refuseUnknown();
    read.throwIfAnyProblem();
    this.#calls.hurry();
    if (this.#isQuiet()) return Promise.resolve(0);
    return new Promise((resolve) => {
      const end = (): void => {
        alarm.clear();
        this.#flushes.delete(end);
        resolve(this.pending());
      };
      const alarm = this.#functions.alarm(end);
      alarm.set(this.#functions.clock.now() + timeoutMs, true);
      this.#flushes.add(end);
    });
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

  async #ask(count: number, holder: LeaseHolder): Promise<void> {
    const id = this.#nextId();
    const what = `Asking the coordinator for ${leases(count)} for ${holder.name}`;
    const { acquire } = this.#functions;
    const call = callInTime(what, (signal) => acquire(count, { id, signal }), this.#functions);
    this.#unanswered++;
    const confirmedBefore = this.#confirmed;
    let error: Error | undefined;
    try {
      const isGranted = checkedAnswer(await call.inTime);
      this.#unanswered--;
      // Such a no may be older than what the coordinator has been given back since.
      if (!isGranted && this.#confirmed !== confirmedBefore) return this.#ask(count, holder);
      if (!isGranted) error = new LeaseLimitError(holder.name, count, this.#book.held);
    } catch (thrown) {
      error = coordinatorError(what, thrown);
      this.#clearUp(count, holder, id, call);
    }
    this.#answered(count, holder, error);
    this.#endFlushes();
  }

  #answered(count: number, holder: LeaseHolder, error: Error | undefined): void {
    this.#asking.delete(holder);
    // What another of this process has given back meanwhile is as good as what the coordinator did not give.
    if (error === undefined || this.#outbox.takeBack(count)) this.#offer(count, holder);
    else {
      if (error instanceof LeaseLimitError) this.#waiting.add(holder, count);
      this.#tell(() => holder.leasesRefused(error));
    }
    // A grant says that there may be more; and what a failure kept this one from taking, another may get.
    if (!(error instanceof LeaseLimitError)) this.#tellWaiting(1);
  }

  /** It failed, or its answer did not come in time: what it took nevertheless must be given back. */
  #clearUp(count: number, holder: LeaseHolder, id: string, { answer }: TimedCall<boolean>): void {
    if (this.#functions.cancel !== undefined) {
      this.#unanswered--;
      void this.#cancel(count, holder, id, this.#functions.cancel);
      return;
    }
    answer
      .then(
        (isGranted) => this.#giveBack(isGranted === true ? count : 0, undefined),
        () => {},
      )
      .finally(() => {
        this.#unanswered--;
        this.#endFlushes();
      });
  }

  async #cancel(
    count: number,
    holder: LeaseHolder,
    id: string,
    cancel: NonNullable<LeaseFunctions['cancel']>,
  ): Promise<void> {
    const doubt = { count, wasTurnedAway: false };
    this.#inDoubt.set(holder, doubt);
    const what = `Cancelling a request for ${leases(count)} for ${holder.name}`;
    await this.#calls.make(what, (signal) => cancel(count, { id, signal }));
    this.#inDoubt.delete(holder);
    if (doubt.wasTurnedAway) this.#tell(() => holder.leasesAvailable());
    this.#noteConfirmed(count);
    this.#endFlushes();
  }

  // ---- handing over -----------------------------------------------------------------------------------------------

  /** The holder can take it while it is told. What it leaves is for others. */
  #offer(count: number, holder: LeaseHolder): void {
    const offer = { holder, count };
    this.#inHand = offer;
    this.#tell(() => holder.leasesAvailable());
    this.#inHand = undefined;
    this.#giveBack(offer.count, undefined);
  }

  #takeInHand(count: number, holder: LeaseHolder): boolean {
    const offer = this.#inHand;
    if (offer?.holder !== holder || count > offer.count) return false;
    offer.count -= count;
    return true;
  }

  #takeUnsent(count: number, holder: LeaseHolder): boolean {
    return this.#waiting.mayTake(holder, count) && this.#outbox.takeBack(count);
  }

  #giveBack(count: number, caller: LeaseHolder | undefined): void {
    if (count === 0) return;
    // Who gives back while it waits itself is told when its call is over, and before anything is sent.
    const isWaiting = caller !== undefined && this.#waiting.wishOf(caller) > 0;
    if (isWaiting) queueMicrotask(() => this.#goRound(undefined));
    this.#outbox.add(count);
    this.#goRound(caller);
  }

  /** What has not been sent goes to those of this process who wait. */
  #goRound(caller: LeaseHolder | undefined): void {
    this.#tellings++;
    this.#waiting.goRound(() => this.#outbox.unsent, caller);
    this.#tellings--;
  }

  #noteConfirmed(count: number): void {
    this.#confirmed++;
    this.#tellWaiting(count);
  }

  /** The coordinator has `count` to give: as many of those who wait as may use them are told to ask. */
  #tellWaiting(count: number): void {
    let left = count;
    for (const holder of [...this.#waiting]) {
      if (left <= 0) return;
      const wish = this.#waiting.wishOf(holder);
      if (wish === 0) continue;
      this.#tellings++;
      this.#waiting.tell(holder);
      this.#tellings--;
      if (this.#asking.has(holder)) left -= wish;
    }
  }

  #tell(call: () => void): void {
    this.#tellings++;
    tell(call);
    this.#tellings--;
  }

  // ---- ending -----------------------------------------------------------------------------------------------------

  #isQuiet(): boolean {
    return this.#unanswered === 0 && this.pending() === 0;
  }

  #endFlushes(): void {
    if (this.#flushes.size === 0 || !this.#isQuiet()) return;
    for (const end of [...this.#flushes]) end();
  }
}

function leases(count: number): string {
  return count === 1 ? 'a lease' : `${count} leases`;
}

function checkedAnswer(answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer;
  throw new TypeError(`it must answer true or false, but answered ${String(answer)}`);
}

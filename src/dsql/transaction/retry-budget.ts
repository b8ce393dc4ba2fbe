/**
 * How many retries a pool's transactions may make together. Each commit adds `ratio` retries, time adds `minPerSecond`, each
 * retry takes one. A transaction that finds none waits, first come, first served: many who conflict slow down to the pace at which
 * transactions succeed, in place of conflicting with each other again.
 */
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';
import { OptionReader } from '../../kernel/option-reader.js';
import { systemAlarm, systemClock } from '../../runtime/system.js';

/** Numbers of a `RetryBudget`. */
export interface RetryBudgetOptions {
  /** Retries that each commit adds. Default: 1. */
  readonly ratio?: number | undefined;
  /** Retries a second that are added in any case. Default: 10. */
  readonly minPerSecond?: number | undefined;
  /** Retries that are saved up at most; a new budget has as many. Default: 100. */
  readonly burst?: number | undefined;
  /** Transactions that may wait for a retry; further ones fail at once. Default: 10,000. */
  readonly maxWaiting?: number | undefined;
}

/** Fractions of a retry that were added up must not be missing at the end. */
const roundingError = 1e-6;

/**
 * A retry budget, which several pools may share.
 *
 * @example
 * ```ts
 * import { RetryBudget, transaction } from 'headgate/dsql';
 *
 * const budget = new RetryBudget({ ratio: 0.5, minPerSecond: 5, burst: 50 });
 * await transaction(pool, (client) => client.query('SELECT 1'), { budget });
 * ```
 */
export class RetryBudget {
  readonly #ratio: number;
  readonly #perMs: number;
  readonly #burst: number;
  readonly #maxWaiting: number;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #alarm: Alarm;
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();
  #tokens: number;
  #countedAt: number;

  constructor(
    options: RetryBudgetOptions = {},
    clock: Pick<Clock, 'now'> = systemClock,
    makeAlarm: AlarmFactory = systemAlarm,
  ) {
    const read = new OptionReader(options);
    this.#ratio = read.number('ratio', 1, { min: 0, max: 100 });
    this.#perMs = read.number('minPerSecond', 10, { min: 0, max: 1e6 }) / 1_000;
    this.#burst = read.integer('burst', 100, { min: 1, max: 1e6 });
    this.#maxWaiting = read.integer('maxWaiting', 10_000, { min: 0 });
    read.refuseUnknown();
    read.throwIfAnyProblem("the retry budget's options");
    this.#tokens = this.#burst;
    this.#clock = clock;
    this.#countedAt = clock.now();
    this.#alarm = makeAlarm(() => this.#serve());
  }

  /** Retries that could be made now. */
  get available(): number {
    this.#refill();
    return Math.max(0, Math.floor(this.#tokens + roundingError));
  }

  /** Transactions that wait for a retry. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** A transaction succeeded. */
  committed(): void {
    this.#refill();
    this.#tokens = Math.min(this.#burst, this.#tokens + this.#ratio);
    if (this.#waiting.size > 0) this.#serve();
  }

  /**
   * Asks for one retry: `grant` is called when it may be made, possibly before this returns. The function returned takes the
   * request back. Undefined: too many wait already.
   */
  request(grant: () => void): (() => void) | undefined {
    if (this.#waiting.size > 0 && this.#waiting.size >= this.#maxWaiting) return undefined;
    const entry = (): void => grant();
    this.#waiting.add(entry);
    this.#serve();
    if (this.#waiting.has(entry) && this.#waiting.size > this.#maxWaiting) {
      this.#waiting.delete(entry);
      return undefined;
    }
    return () => {
      if (this.#waiting.delete(entry) && this.#waiting.size === 0) this.#alarm.clear();
    };
  }

  #serve(): void {
    this.#refill();
    for (const grant of this.#waiting) {
      if (this.#tokens < 1 - roundingError) break;
      this.#tokens -= 1;
      this.#waiting.delete(grant);
      grant();
    }
    if (this.#waiting.size === 0) this.#alarm.clear();
    else if (this.#perMs > 0) this.#alarm.set(this.#countedAt + (1 - this.#tokens) / this.#perMs, true);
  }

  #refill(): void {
    const now = this.#clock.now();
    if (now <= this.#countedAt) return;
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#countedAt) * this.#perMs);
    this.#countedAt = now;
  }
}

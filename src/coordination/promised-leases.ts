/** Makes `Leases` of functions that return promises, for a store or service of your own. */
import type { LeaseAnswer, LeaseHolder, Leases } from '../core/leases.js';
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';
import { soon } from '../runtime/soon.js';
import { CoordinatedLeases, type PromisedLeasesStats } from './coordinated-leases.js';
import { type LeaseFunctions, type LeasesFromOptions, readLeaseFunctions } from './lease-functions.js';
import { promisedChannel } from './promised-channel.js';

export type { PromisedLeasesStats };

/**
 * Leases of a coordinator of your own.
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
  readonly #leases: CoordinatedLeases;

  constructor(options: LeasesFromOptions) {
    this.#functions = readLeaseFunctions(options);
    const { onReleaseFailed } = this.#functions;
    this.#leases = new CoordinatedLeases(
      promisedChannel(this.#functions),
      { ...this.#functions, soon: (call) => soon(call) },
      (error) => onReleaseFailed?.(error),
    );
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    return this.#leases.acquire(count, holder);
  }

  release(count: number, holder: LeaseHolder): void {
    this.#leases.release(count, holder);
  }

  /**
   * The coordinator has taken `count` leases of this process away: closes their connections, beginning with the pool of
   * the last grant. Leases waiting to be released go before any in use.
   */
  lost(count: number): void {
    this.#leases.lost(count);
  }

  /** Number of leases that the coordinator may still count and no pool here holds. */
  pending(): number {
    return this.#leases.pending();
  }

  /**
   * Waits until the coordinator has confirmed all releases and no request is under way; at most `timeout` (default
   * `5s`). Returns the number still pending. For the end of a program, after the pools have been closed.
   */
  flush(options: { readonly timeout?: Duration | undefined } = {}): Promise<number> {
    const read = new OptionReader(options);
    const timeoutMs = read.duration('timeout', 5_000, 0);
    read.refuseUnknown();
    read.throwIfAnyProblem();
    const { alarm: makeAlarm, clock } = this.#functions;
    return new Promise((resolve) => {
      const end = (): void => {
        alarm.clear();
        stopWaiting();
        resolve(this.pending());
      };
      const alarm = makeAlarm(end);
      let stopWaiting = (): void => {};
      alarm.set(clock.now() + timeoutMs, true);
      stopWaiting = this.#leases.whenQuiet(end);
    });
  }

  stats(): PromisedLeasesStats {
    return this.#leases.stats();
  }
}

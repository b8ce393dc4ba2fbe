/** Opens connections up to a size at the start. Each is retried a few times; the keeper opens those that still failed. */
import type { OptionReader } from '../kernel/option-reader.js';

export interface WarmupOptions {
  /** The size to reach. Default: `max`. */
  readonly target?: number | undefined;
  /** Retries per connection before it is given up. Default 5. */
  readonly retries?: number | undefined;
}

export interface WarmupPolicy {
  readonly target: number;
  readonly retries: number;
}

/** Collects problems in the reader; does not throw. */
export function readWarmup(read: OptionReader, max: number): WarmupPolicy {
  const target = read.integer('target', max, { min: 1 });
  if (target > max) read.problem('target', `is ${target}, more than max, which is ${max}`);
  const retries = read.integer('retries', 5, { min: 0 });
  read.refuseUnknown();
  return { target, retries };
}

export class Warmup {
  readonly #policy: WarmupPolicy;
  readonly startedAt: number;
  /** Failures so far of each connection that is still to be dialed. */
  readonly #failures: number[];
  #givenUp = 0;

  constructor(policy: WarmupPolicy, startedAt: number) {
    this.#policy = policy;
    this.startedAt = startedAt;
    this.#failures = new Array<number>(policy.target).fill(0);
  }

  get target(): number {
    return this.#policy.target;
  }

  get givenUp(): number {
    return this.#givenUp;
  }

  /** True to open one more connection. `size` includes those being opened. */
  wants(size: number): boolean {
    return this.#failures.length > 0 && size < this.#policy.target;
  }

  /** Takes the next connection to dial and returns its number of failures. */
  dialBegun(): number {
    return this.#failures.pop() ?? 0;
  }

  dialWithdrawn(failedBefore: number): void {
    this.#failures.push(failedBefore);
  }

  dialFailed(failedBefore: number): void {
    if (failedBefore < this.#policy.retries) this.#failures.push(failedBefore + 1);
    else this.#givenUp++;
  }

  /** The outcome, once `size` is reached or no retry is left. */
  outcome(size: number, underWay: number): 'complete' | 'given_up' | undefined {
    if (size >= this.#policy.target) return 'complete';
    if (this.#failures.length > 0 || underWay > 0) return undefined;
    // Without a failure, the missing connections were opened and have closed since.
    return this.#givenUp > 0 ? 'given_up' : 'complete';
  }
}

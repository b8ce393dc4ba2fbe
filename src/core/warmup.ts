/** Opens connections up to a size at the start. Each is tried a few times; what can't be opened is left to the keeper. */
import type { OptionReader } from '../kernel/option-reader.js';

export interface WarmupOptions {
  /** The size to reach. Default: `max`. */
  readonly target?: number | undefined;
  /** How often a connection is tried again before it is given up. Default 5. */
  readonly retries?: number | undefined;
}

export interface WarmupPolicy {
  readonly target: number;
  readonly retries: number;
}

/** Problems stay with the reader. */
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
  /** For each connection that is to be dialed yet: how often it has failed. */
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

  /** Whether one more is to be opened. `size` includes what is being opened. */
  wants(size: number): boolean {
    return this.#failures.length > 0 && size < this.#policy.target;
  }

  /** How often the connection that is dialed next has failed. */
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

  /** How it ended, once `size` is reached or nothing is left to try. */
  outcome(size: number, underWay: number): 'complete' | 'given_up' | undefined {
    if (size >= this.#policy.target) return 'complete';
    if (this.#failures.length > 0 || underWay > 0) return undefined;
    // Without a failure, what is missing was opened and has ended since.
    return this.#givenUp > 0 ? 'given_up' : 'complete';
  }
}

/** Keeps a pool at its size without a reservoir: checks at intervals and opens a few missing connections each time. */

import type { Duration } from '../kernel/duration.js';
import type { OptionReader } from '../kernel/option-reader.js';

export interface KeeperOptions {
  /** The size to keep. Default: `max`. */
  readonly target?: number | undefined;
  /** Time between checks. Default `1s`. */
  readonly interval?: Duration | undefined;
  /** The most it has opened each time. Default: a 120th of `target`, rounded up, and no more than 10. */
  readonly perTick?: number | undefined;
}

export interface KeeperPolicy {
  readonly target: number;
  readonly interval: number;
  readonly perTick: number;
}

/** Lives are spread over about this many seconds, so no more than this part of a pool ends in any one of them. */
const spreadSeconds = 120;
const mostPerTick = 10;

export function connectionsPerTick(target: number): number {
  return Math.min(mostPerTick, Math.ceil(target / spreadSeconds));
}

/** Collects problems in the reader; does not throw. */
export function readKeeper(read: OptionReader, max: number): KeeperPolicy {
  const target = read.integer('target', max, { min: 1 });
  if (target > max) read.problem('target', `is ${target}, more than max, which is ${max}`);
  const interval = read.duration('interval', 1_000, 0);
  if (interval < 1) read.problem('interval', 'must not be 0: it would look all the time');
  const perTick = read.integer('perTick', connectionsPerTick(target), { min: 1 });
  read.refuseUnknown();
  return { target, interval, perTick };
}

export class Keeper {
  readonly #policy: KeeperPolicy;
  #nextTickAt: number;
  /** Dials it still wants, out of the number decided at the last check. */
  #wanted = 0;
  /** Caps the target of the policy. */
  most = Infinity;

  constructor(policy: KeeperPolicy, startedAt: number) {
    this.#policy = policy;
    this.#nextTickAt = startedAt + policy.interval;
  }

  get target(): number {
    return Math.min(this.#policy.target, this.most);
  }

  get nextTickAt(): number {
    return this.#nextTickAt;
  }

  /** Something that it wanted is still to be dialed. */
  get isBusy(): boolean {
    return this.#wanted > 0;
  }

  /** Checks the size, if a check is due, and returns how many connections to open. `size` includes those being opened. */
  tick(now: number, size: number): number {
    if (now < this.#nextTickAt) return 0;
    this.#nextTickAt = now + this.#policy.interval;
    this.#wanted = Math.max(0, Math.min(this.target - size, this.#policy.perTick));
    return this.#wanted;
  }

  /** True to open one more connection. `size` includes those being opened. */
  wants(size: number): boolean {
    return this.#wanted > 0 && size < this.target;
  }

  dialBegun(): void {
    this.#wanted--;
  }

  dialWithdrawn(): void {
    this.#wanted++;
  }
}

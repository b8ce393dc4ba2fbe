/**
 * Counts failed logins by address, and says how long the answer to the next failure has to wait, so that passwords can't
 * be tried out quickly. Only failures wait: a right password is never held up. It has no timer; who answers waits.
 */
import type { Clock } from '../../kernel/clock.js';
import { BoundedMap } from './bounded-map.js';
import { parseIpAddress } from './ip-network.js';

/** Checked where the configuration is read. Times are milliseconds. */
export interface FailedLoginsOptions {
  /** So many failures in a row are answered at once. */
  readonly free?: number | undefined;
  /** The first wait; each further failure doubles it. 0: none waits. */
  readonly firstDelayMs?: number | undefined;
  readonly longestDelayMs?: number | undefined;
  /** An address without a failure for so long begins anew. */
  readonly forgetAfterMs?: number | undefined;
  /** Of more, those that failed longest ago are forgotten. */
  readonly maxAddresses?: number | undefined;
}

interface Failures {
  count: number;
  lastAt: number;
}

/** Whoever has one address in IPv6 usually has all with the same first 64 bits. */
const ipv6Bytes = 8;

export class FailedLogins {
  readonly #clock: Pick<Clock, 'coarse'>;
  readonly #addresses: BoundedMap<string, Failures>;
  #free!: number;
  #firstDelayMs!: number;
  #longestDelayMs!: number;
  #forgetAfterMs!: number;

  constructor(clock: Pick<Clock, 'coarse'>, options: FailedLoginsOptions = {}) {
    this.#clock = clock;
    this.#addresses = new BoundedMap(options.maxAddresses ?? 10_000);
    this.change(options);
  }

  /** Other waits from now on; what was counted stays, and so does how many are remembered. */
  change(options: Omit<FailedLoginsOptions, 'maxAddresses'>): void {
    this.#free = options.free ?? 3;
    this.#firstDelayMs = options.firstDelayMs ?? 250;
    this.#longestDelayMs = options.longestDelayMs ?? 10_000;
    this.#forgetAfterMs = options.forgetAfterMs ?? 120_000;
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#addresses.size;
  }

  /** Notes a failure; says how many milliseconds its answer has to wait. What is no internet address never waits. */
  failed(address: string): number {
    const key = keyOf(address);
    if (key === undefined) return 0;
    const now = this.#clock.coarse();
    const failures = this.#addresses.get(key) ?? { count: 0, lastAt: now };
    if (now - failures.lastAt >= this.#forgetAfterMs) failures.count = 0;
    failures.count++;
    failures.lastAt = now;
    this.#addresses.set(key, failures);
    const over = failures.count - this.#free;
    return over <= 0 ? 0 : Math.min(this.#longestDelayMs, this.#firstDelayMs * 2 ** (over - 1));
  }
}

function keyOf(address: string): string | undefined {
  const bytes = parseIpAddress(address);
  return bytes?.toString('hex', 0, bytes.length === 4 ? 4 : ipv6Bytes);
}

/**
 * Slows down password guessing. After some failures of a user from an address, every verdict on that user from there is
 * delayed, right passwords included: a client that hangs up early has learned nothing. The number of delayed verdicts is
 * limited, and further attempts are refused at once, whatever their password. Other users and other addresses are not affected.
 * There is no timer; the caller waits.
 */
import { createHash } from 'node:crypto';
import { BoundedMap } from '../../kernel/bounded-map.js';
import type { Clock } from '../../kernel/clock.js';
import { parseIpAddress } from '../../net/ip-address.js';

/** Checked where the configuration is read. Times are milliseconds. */
export interface FailedLoginsOptions {
  /** Number of failures after which verdicts are delayed. */
  readonly free?: number | undefined;
  /** The first delay; each further failure doubles it. 0: no delays. */
  readonly firstDelayMs?: number | undefined;
  readonly longestDelayMs?: number | undefined;
  /** Time without a failure after which all failures are forgotten. */
  readonly forgetAfterMs?: number | undefined;
  /** Limit of delayed verdicts per user and address. */
  readonly atOnce?: number | undefined;
  /** Limit of remembered pairs of user and address. Beyond it, those that failed longest ago are forgotten. */
  readonly most?: number | undefined;
}

/** A delayed verdict. Call `end()` when it was sent, or when the client has disconnected. */
export interface HeldVerdict {
  readonly delayMs: number;
  end(): void;
}

interface Failures {
  count: number;
  lastAt: number;
  held: number;
}

/** An IPv6 client usually has all addresses with the same first 64 bits. */
const ipv6Bytes = 8;
const notHeld: HeldVerdict = { delayMs: 0, end: () => {} };

export class FailedLogins {
  readonly #clock: Pick<Clock, 'coarse'>;
  readonly #known: BoundedMap<string, Failures>;
  #free!: number;
  #firstDelayMs!: number;
  #longestDelayMs!: number;
  #forgetAfterMs!: number;
  #atOnce!: number;

  constructor(clock: Pick<Clock, 'coarse'>, options: FailedLoginsOptions = {}) {
    this.#clock = clock;
    this.#known = new BoundedMap(options.most ?? 10_000);
    this.change(options);
  }

  /** Changes the delays. Failures stay counted, and the number of remembered pairs is unchanged. */
  change(options: Omit<FailedLoginsOptions, 'most'>): void {
    this.#free = options.free ?? 3;
    this.#firstDelayMs = options.firstDelayMs ?? 250;
    this.#longestDelayMs = options.longestDelayMs ?? 10_000;
    this.#forgetAfterMs = options.forgetAfterMs ?? 120_000;
    this.#atOnce = options.atOnce ?? 10;
  }

  /** Number of remembered pairs of user and address. */
  get size(): number {
    return this.#known.size;
  }

  /** Delay of this verdict; undefined: too many are delayed already. Only IP addresses have delays. */
  judged(address: string, user: string, isRight: boolean): HeldVerdict | undefined {
    if (isRight && this.#known.size === 0) return notHeld;
    const key = keyOf(address, user);
    if (key === undefined) return notHeld;
    const failures = this.#failuresOf(key);
    const delayMs = this.#delayAfter(failures?.count ?? 0);
    if (!isRight) this.#count(key, failures);
    if (failures === undefined || delayMs === 0) return notHeld;
    if (failures.held >= this.#atOnce) return undefined;
    failures.held++;
    let isOver = false;
    return {
      delayMs,
      end: () => {
        if (!isOver) failures.held--;
        isOver = true;
      },
    };
  }

  #failuresOf(key: string): Failures | undefined {
    const failures = this.#known.get(key);
    if (failures !== undefined && this.#clock.coarse() - failures.lastAt >= this.#forgetAfterMs)
      failures.count = 0;
    return failures;
  }

  #count(key: string, failures: Failures = { count: 0, lastAt: 0, held: 0 }): void {
    failures.count++;
    failures.lastAt = this.#clock.coarse();
    this.#known.set(key, failures);
  }

  #delayAfter(failures: number): number {
    // A first attempt never waits; otherwise every correct login would.
    const over = failures - Math.max(1, this.#free);
    return over < 0 ? 0 : Math.min(this.#longestDelayMs, this.#firstDelayMs * 2 ** over);
  }
}

/** A client may send any name, of any length. */
function keyOf(address: string, user: string): string | undefined {
  const bytes = parseIpAddress(address);
  if (bytes === undefined) return undefined;
  const from = bytes.toString('hex', 0, bytes.length === 4 ? 4 : ipv6Bytes);
  return `${from} ${createHash('sha256').update(user).digest('base64')}`;
}

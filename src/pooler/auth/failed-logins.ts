/**
 * Keeps passwords from being tried out quickly. After some failures of a user from an address, every verdict on that user from there is held
 * back, the right password's as well as the wrong one's: whoever hangs up early has learned nothing. Only so many are held back at once,
 * and those beyond are told so at once, whatever their password was. Other users and other addresses are not concerned. It has no timer;
 * who answers waits.
 */
import { createHash } from 'node:crypto';
import { BoundedMap } from '../../kernel/bounded-map.js';
import type { Clock } from '../../kernel/clock.js';
import { parseIpAddress } from '../../net/ip-address.js';

/** Checked where the configuration is read. Times are milliseconds. */
export interface FailedLoginsOptions {
  /** After so many failures verdicts are held back. */
  readonly free?: number | undefined;
  /** The first wait; each further failure doubles it. 0: none waits. */
  readonly firstDelayMs?: number | undefined;
  readonly longestDelayMs?: number | undefined;
  /** Without a failure for so long, all are forgotten. */
  readonly forgetAfterMs?: number | undefined;
  /** Verdicts on a user from an address that are held back at once. */
  readonly atOnce?: number | undefined;
  /** Users at addresses that are remembered. Of more, those that failed longest ago are forgotten. */
  readonly most?: number | undefined;
}

/** A verdict that may not be told yet. `end()` is called when it was, or when nobody is left to be told. */
export interface HeldVerdict {
  readonly delayMs: number;
  end(): void;
}

interface Failures {
  count: number;
  lastAt: number;
  held: number;
}

/** Whoever has one address in IPv6 usually has all with the same first 64 bits. */
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

  /** Other waits from now on; what was counted stays, and so does how many are remembered. */
  change(options: Omit<FailedLoginsOptions, 'most'>): void {
    this.#free = options.free ?? 3;
    this.#firstDelayMs = options.firstDelayMs ?? 250;
    this.#longestDelayMs = options.longestDelayMs ?? 10_000;
    this.#forgetAfterMs = options.forgetAfterMs ?? 120_000;
    this.#atOnce = options.atOnce ?? 10;
  }

  /** Users at addresses that are remembered. */
  get size(): number {
    return this.#known.size;
  }

  /** How long this verdict has to wait; undefined: too many wait already. What is no internet address never waits. */
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
    // A first attempt never waits, or every right one would.
    const over = failures - Math.max(1, this.#free);
    return over < 0 ? 0 : Math.min(this.#longestDelayMs, this.#firstDelayMs * 2 ** over);
  }
}

/** A name may be long, and is a stranger's. */
function keyOf(address: string, user: string): string | undefined {
  const bytes = parseIpAddress(address);
  if (bytes === undefined) return undefined;
  const from = bytes.toString('hex', 0, bytes.length === 4 ? 4 : ipv6Bytes);
  return `${from} ${createHash('sha256').update(user).digest('base64')}`;
}

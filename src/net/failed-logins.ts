/**
 * Slows down password guessing. After some failures of a user from an address, every verdict on that user from there is
 * delayed, right passwords included. Until a verdict is told, nothing depends on it: not the delay of another attempt, nor
 * whether that is refused. So a client that hangs up early, or that makes other attempts meanwhile, learns nothing.
 * The number of delayed verdicts is limited, and further attempts are refused at once, whatever their password. Users without
 * failures and other addresses are not affected. There is no timer; the caller waits.
 */
import { createHash } from 'node:crypto';
import { BoundedMap } from '../kernel/bounded-map.js';
import type { Clock } from '../kernel/clock.js';
import { parseIpAddress } from './ip-address.js';

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
  /** Limit of delayed verdicts per address, of all users together. */
  readonly atOncePerAddress?: number | undefined;
  /** Limit of remembered pairs of user and address. Beyond it, those that failed longest ago are forgotten. */
  readonly most?: number | undefined;
}

/** A delayed verdict. */
export interface HeldVerdict {
  readonly delayMs: number;
  /** Call when the verdict is told, or when the client has disconnected before that. Only a failure that is told counts. */
  end(isTold: boolean): void;
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
  /** Delayed verdicts by address, where there are any. */
  readonly #heldByAddress = new Map<string, number>();
  #free!: number;
  #firstDelayMs!: number;
  #longestDelayMs!: number;
  #forgetAfterMs!: number;
  #atOnce!: number;
  #atOncePerAddress!: number;

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
    this.#atOncePerAddress = options.atOncePerAddress ?? 100;
  }

  /** Number of remembered pairs of user and address. */
  get size(): number {
    return this.#known.size;
  }

  /** Delay of this verdict; undefined: too many are delayed already. Only IP addresses have delays. */
  judged(address: string, user: string, isRight: boolean): HeldVerdict | undefined {
    if (isRight && this.#known.size === 0) return notHeld;
    const from = networkOf(address);
    if (from === undefined) return notHeld;
    const key = keyOf(from, user);
    const failures = this.#failuresOf(key);
    const delayMs = this.#delayAfter(failures?.count ?? 0);
    if (failures === undefined || delayMs === 0) {
      if (!isRight) this.#count(key);
      return notHeld;
    }
    const ofAddress = this.#heldByAddress.get(from) ?? 0;
    if (failures.held >= this.#atOnce || ofAddress >= this.#atOncePerAddress) return undefined;
    failures.held++;
    this.#heldByAddress.set(from, ofAddress + 1);
    let isOver = false;
    return {
      delayMs,
      end: (isTold) => {
        if (isOver) return;
        isOver = true;
        failures.held--;
        this.#freeOf(from);
        if (isTold && !isRight) this.#count(key);
      },
    };
  }

  #freeOf(from: string): void {
    const left = (this.#heldByAddress.get(from) as number) - 1;
    if (left === 0) this.#heldByAddress.delete(from);
    else this.#heldByAddress.set(from, left);
  }

  #failuresOf(key: string): Failures | undefined {
    const failures = this.#known.get(key);
    if (failures !== undefined && this.#clock.coarse() - failures.lastAt >= this.#forgetAfterMs)
      failures.count = 0;
    return failures;
  }

  #count(key: string): void {
    const failures = this.#known.get(key) ?? { count: 0, lastAt: 0, held: 0 };
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

function networkOf(address: string): string | undefined {
  const bytes = parseIpAddress(address);
  return bytes?.toString('hex', 0, bytes.length === 4 ? 4 : ipv6Bytes);
}

/** A client may send any name, of any length. */
function keyOf(from: string, user: string): string {
  return `${from} ${createHash('sha256').update(user).digest('base64')}`;
}

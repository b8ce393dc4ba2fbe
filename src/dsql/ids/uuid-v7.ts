/**
 * UUIDs of version 7 (RFC 9562): 48 bits of milliseconds, then 74 random bits. Within a millisecond the random bits are
 * the last one's plus a random step (its method 2), so that each is larger than the one before.
 */
import { randomFillSync } from 'node:crypto';
import { InvalidUuidError } from './errors.js';
import { bytesToUuid, uuidToBytes } from './uuid.js';

export interface UuidV7Parts {
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Fills an array with random bits. */
  readonly fill: (words: Uint32Array) => void;
}

const largestTime = 2 ** 48 - 1;
/** A clock further behind than this was set on purpose: ids follow it. They stay unique, but are smaller than those before. */
const followBackMs = 10_000;
/** Random words fetched at once: one fetch costs as much as hundreds of words. */
const wordsAhead = 256;

/** The state of a generator. */
export class UuidV7Source {
  readonly #parts: UuidV7Parts;
  readonly #words = new Uint32Array(wordsAhead);
  #used = wordsAhead;
  #timeMs = Number.NEGATIVE_INFINITY;
  /** The 74 random bits: 12, 30 and 32 of them. */
  #high = 0;
  #middle = 0;
  #low = 0;

  constructor(parts: UuidV7Parts) {
    this.#parts = parts;
  }

  next(): string {
    const now = Math.floor(this.#parts.clock());
    if (now < 0 || now > largestTime)
      throw new InvalidUuidError(`The clock shows ${now} ms since 1970, which has no place in a UUID.`);
    if (now > this.#timeMs || this.#timeMs - now > followBackMs) this.#begin(now);
    else this.#step();
    return this.#text();
  }

  #begin(timeMs: number): void {
    this.#timeMs = timeMs;
    // The first bit is left free: there is room for 2^42 steps in a millisecond.
    this.#high = this.#word() & 0x7ff;
    this.#middle = this.#word() >>> 2;
    this.#low = this.#word();
  }

  #step(): void {
    this.#low += 1 + (this.#word() >>> 1);
    if (this.#low < 2 ** 32) return;
    this.#low -= 2 ** 32;
    if (++this.#middle < 2 ** 30) return;
    this.#middle = 0;
    this.#high++;
  }

  #word(): number {
    if (this.#used === wordsAhead) {
      this.#parts.fill(this.#words);
      this.#used = 0;
    }
    return this.#words[this.#used++] as number;
  }

  #text(): string {
    const bytes = new Uint8Array(16);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, Math.floor(this.#timeMs / 2 ** 16));
    view.setUint16(4, this.#timeMs % 2 ** 16);
    view.setUint16(6, 0x7000 | this.#high);
    view.setUint32(8, 0x8000_0000 + this.#middle);
    view.setUint32(12, this.#low);
    return bytesToUuid(bytes);
  }
}

const own = new UuidV7Source({ clock: Date.now, fill: randomFillSync });

/**
 * A new UUID of version 7. Those of a process grow, also within a millisecond and when the clock goes back a little.
 *
 * @example
 * ```ts
 * import { uuidV7, uuidV7Time } from 'headgate/dsql';
 *
 * const id = uuidV7();
 *
 * console.log(id < uuidV7()); // true
 * console.log(uuidV7Time(id)); // now
 * ```
 */
export function uuidV7(): string {
  return own.next();
}

/** When a UUID of version 7 was made. Throws an `InvalidUuidError` for other versions. */
export function uuidV7Time(uuid: string): Date {
  const bytes = uuidToBytes(uuid);
  const [version, variant] = [(bytes[6] as number) >> 4, (bytes[8] as number) >> 6];
  if (version !== 7 || variant !== 2)
    throw new InvalidUuidError(`A UUID of version 7 is needed, not one of version ${version}.`);
  return new Date(bytes.subarray(0, 6).reduce((time, byte) => time * 256 + byte, 0));
}

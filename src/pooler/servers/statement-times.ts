/** How long the statements of a pool take, by their texts without literals: what may share a connection with others is decided by it. */
import { isPlainStatement } from '../../sql/plain-statement.js';
import { readStatement } from '../../sql/read-statement.js';
import { ParseView } from '../../wire/frontend-views.js';

const view = new ParseView();

/**
 * Each new time counts for this part: what is quick most of the time is quick, since on a busy machine any statement takes long now and
 * then, and one that is slow by itself is never quick.
 */
const weightOfShorter = 1 / 2;
const weightOfLonger = 1 / 16;
/** So many texts are remembered. */
const mostTexts = 1_000;
/** Fingerprints have 32 bits; those of reads are told from others by one more. */
const readBit = 2 ** 32;

export class StatementProfile {
  readonly isRead: boolean;
  /** Milliseconds that it usually takes; Infinity before it was run. */
  usualMs = Number.POSITIVE_INFINITY;

  constructor(isRead: boolean) {
    this.isRead = isRead;
  }

  took(ms: number): void {
    const { usualMs } = this;
    const weight = ms < usualMs ? weightOfShorter : weightOfLonger;
    this.usualMs = usualMs === Number.POSITIVE_INFINITY ? ms : usualMs + weight * (ms - usualMs);
  }
}

export class StatementTimes {
  /** About those used longest ago first. */
  readonly #profiles = new Map<number, StatementProfile>();
  readonly #most: number;

  constructor(most = mostTexts) {
    this.#most = most;
  }

  get size(): number {
    return this.#profiles.size;
  }

  /** Of a text that `isPlainStatement()` accepts. Texts that differ only in their literals have the same. */
  profileOf(bytes: Buffer, start: number, end: number): StatementProfile {
    const { isRead, fingerprint } = readStatement(bytes, start, end);
    const key = isRead ? fingerprint + readBit : fingerprint;
    const known = this.#profiles.get(key);
    if (known !== undefined) return known;
    const profile = new StatementProfile(isRead);
    if (this.#profiles.size >= this.#most) this.#forgetOldest();
    this.#profiles.set(key, profile);
    return profile;
  }

  /** The one that came first: one that still comes is measured again at once. */
  #forgetOldest(): void {
    for (const key of this.#profiles.keys()) {
      this.#profiles.delete(key);
      return;
    }
  }
}

/** Of the text of a Parse; undefined where that is not plain whatever the session is set to. */
export function profileOfParse(
  parse: Buffer | undefined,
  times: StatementTimes,
): StatementProfile | undefined {
  if (parse === undefined) return undefined;
  const { textStart, textEnd } = view.read(parse, 0, parse.length);
  return isPlainStatement(parse, textStart, textEnd) ? times.profileOf(parse, textStart, textEnd) : undefined;
}

/** Usual run times of a pool's statements, by text without literals. They decide which statements may share a connection. */
import { isPlainStatement } from '../../sql/plain-statement.js';
import { readStatement } from '../../sql/read-statement.js';
import { ParseView } from '../../wire/frontend-views.js';

const view = new ParseView();

/**
 * Weights of a new time. On a busy machine any statement is slow now and then, so one that is quick most of the time counts as
 * quick. A statement that is slow by itself never does.
 */
const weightOfShorter = 1 / 2;
const weightOfLonger = 1 / 16;
/** Limit of remembered texts. */
const mostTexts = 1_000;
/** Fingerprints have 32 bits; one more bit marks reads. */
const readBit = 2 ** 32;

export class StatementProfile {
  readonly isRead: boolean;
  /** Usual run time in milliseconds; Infinity before the first run. */
  usualMs = Number.POSITIVE_INFINITY;
  /** The last run time that was not 0, when it ended, and how many runs ended within it then. */
  #lastMs = 0;
  #lastAt = 0;
  #together = 0;

  constructor(isRead: boolean) {
    this.isRead = isRead;
  }

  /**
   * A statement ran `ms` until `now`. 0: its answer was read together with those ahead of it on a shared connection. Then it took its
   * part of their time if the first of them had the same text, and otherwise nothing is known.
   */
  took(ms: number, now: number): void {
    if (ms > 0) {
      this.#lastMs = ms;
      this.#lastAt = now;
      this.#together = 1;
      this.#learn(ms);
    } else if (this.#lastAt === now) this.#learn(this.#lastMs / ++this.#together);
  }

  #learn(ms: number): void {
    const { usualMs } = this;
    const weight = ms < usualMs ? weightOfShorter : weightOfLonger;
    this.usualMs = usualMs === Number.POSITIVE_INFINITY ? ms : usualMs + weight * (ms - usualMs);
  }
}

export class StatementTimes {
  /** Roughly, the one used longest ago comes first. */
  readonly #profiles = new Map<number, StatementProfile>();
  readonly #most: number;

  constructor(most = mostTexts) {
    this.#most = most;
  }

  get size(): number {
    return this.#profiles.size;
  }

  /** Profile of a text that `isPlainStatement()` accepts. Texts that differ only in their literals share one. */
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

  /** Drops the entry added first: a text that still comes is measured again at once. */
  #forgetOldest(): void {
    for (const key of this.#profiles.keys()) {
      this.#profiles.delete(key);
      return;
    }
  }
}

/** Profile for the text of a Parse; undefined unless the text is plain whatever the session's settings. */
export function profileOfParse(
  parse: Buffer | undefined,
  times: StatementTimes,
): StatementProfile | undefined {
  if (parse === undefined) return undefined;
  const { textStart, textEnd } = view.read(parse, 0, parse.length);
  return isPlainStatement(parse, textStart, textEnd) ? times.profileOf(parse, textStart, textEnd) : undefined;
}

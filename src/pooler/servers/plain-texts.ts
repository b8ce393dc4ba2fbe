/** The plain Queries that a pool's clients send most, by their texts without values: each text is read once. */
import { patternHash, TextPattern } from '../../sql/text-pattern.js';
import type { QueryCount } from './query-stats.js';
import type { StatementProfile } from './statement-times.js';

/** Texts are looked up by the highest bits of their hashes, in one of 64 sets of up to four texts. */
const setBits = 6;
const mostInSet = 4;
/** Limit in bytes of all patterns. With more, all are forgotten. */
const mostBytes = 65_536;
/** One of so many unknown texts takes the place of a known one. */
const unknownPerEntry = 32;

/** A plain text, whatever the settings of a session and the values in it. */
export class PlainText {
  readonly pattern: TextPattern;
  /** Usual run time; undefined until it was asked for. */
  profile: StatementProfile | undefined;
  /** Entry in the statistics; undefined until there is one. */
  count: QueryCount | undefined;

  constructor(pattern: TextPattern) {
    this.pattern = pattern;
  }
}

export class PlainTexts {
  /** Roughly, the most frequent texts of a set come first. */
  #sets: (PlainText[] | undefined)[] | undefined;
  #bytes = 0;
  /** Most clients send what was sent last. */
  #last: PlainText | undefined;
  /** Number of the set for the text that `find()` was asked for last. */
  #place = 0;
  #unknown = 0;

  find(bytes: Buffer, start: number, end: number): PlainText | undefined {
    if (this.#last?.pattern.matches(bytes, start, end) === true) return this.#last;
    this.#place = patternHash(bytes, start, end) >>> (32 - setBits);
    const texts = this.#sets?.[this.#place];
    if (texts === undefined) return undefined;
    for (let index = 0; index < texts.length; index++) {
      const text = texts[index] as PlainText;
      if (!text.pattern.matches(bytes, start, end)) continue;
      if (index > 0) {
        texts[index] = texts[index - 1] as PlainText;
        texts[index - 1] = text;
      }
      this.#last = text;
      return text;
    }
    return undefined;
  }

  /** Takes note of a text that `find()` has just not found and `isPlainStatement()` accepts. */
  note(bytes: Buffer, start: number, end: number): void {
    const isFull = this.#sets?.[this.#place]?.length === mostInSet;
    if (isFull && this.#unknown++ % unknownPerEntry !== 0) return;
    const pattern = TextPattern.of(bytes, start, end);
    if (pattern === undefined) return;
    if (this.#bytes + pattern.size > mostBytes) this.#forgetAll();
    this.#sets ??= new Array<PlainText[] | undefined>(1 << setBits).fill(undefined);
    this.#sets[this.#place] ??= [];
    const texts = this.#sets[this.#place] as PlainText[];
    if (texts.length === mostInSet) this.#bytes -= texts.pop()?.pattern.size ?? 0;
    texts.push(new PlainText(pattern));
    this.#bytes += pattern.size;
  }

  #forgetAll(): void {
    this.#sets = this.#last = undefined;
    this.#bytes = 0;
  }
}

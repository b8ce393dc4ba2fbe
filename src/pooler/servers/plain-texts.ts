/** The plain Queries that a pool's clients send most, by their texts without values: each text is read once. */
import { TextPattern } from '../../sql/text-pattern.js';
import type { QueryCount } from './query-stats.js';
import type { StatementProfile } from './statement-times.js';

/** Each is compared with a text that is none of them. */
const mostPatterns = 8;
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
  /** Roughly, the most frequent ones come first. */
  readonly #texts: PlainText[] = [];
  #unknown = 0;

  find(bytes: Buffer, start: number, end: number): PlainText | undefined {
    const texts = this.#texts;
    for (let index = 0; index < texts.length; index++) {
      const text = texts[index] as PlainText;
      if (!text.pattern.matches(bytes, start, end)) continue;
      if (index > 0) {
        texts[index] = texts[index - 1] as PlainText;
        texts[index - 1] = text;
      }
      return text;
    }
    return undefined;
  }

  /** Takes note of a text that `find()` does not know and `isPlainStatement()` accepts. */
  note(bytes: Buffer, start: number, end: number): void {
    const isFull = this.#texts.length >= mostPatterns;
    if (isFull && this.#unknown++ % unknownPerEntry !== 0) return;
    const pattern = TextPattern.of(bytes, start, end);
    if (pattern === undefined) return;
    if (isFull) this.#texts.pop();
    this.#texts.push(new PlainText(pattern));
  }
}

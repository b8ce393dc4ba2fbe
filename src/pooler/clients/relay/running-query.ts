/**
 * Statistics of a client's running query and of those sent behind it. Finds the entry of each, and records the cost at its
 * ReadyForQuery. A batch counts for the statement that it executes last.
 */
import { Fifo } from '../../../kernel/fifo.js';
import type { PoolQueries, QueryCount, QueryRef } from '../../servers/query-stats.js';

/** A parsed statement that can keep its entry, which saves the next search. */
export interface CountedStatement {
  readonly parse: Buffer | undefined;
  count: QueryCount | undefined;
}

/** A text that can keep its entry. */
export interface CountedText {
  count: QueryCount | undefined;
}

/** Limits of statement names that are tracked where the pooler does not rename them; beyond them, a client starts anew. */
const mostNames = 1_000;
/** In bytes of all names. */
const longestNames = 65_536;
const [digit0, digit9, space] = [0x30, 0x39, 0x20];

export class RunningQuery {
  readonly #queries: PoolQueries;
  /** Entry of the query that is sent and not answered yet. */
  current: QueryCount | undefined;
  /** Entry of the statement whose portal is executed next. */
  #bound: QueryCount | undefined;
  #last: QueryCount | undefined;
  #isError = false;
  /** Entries of queries sent before `current` was answered; undefined until there is one. */
  #behind: Fifo<QueryRef | undefined> | undefined;
  #names: Map<string, QueryRef | undefined> | undefined;
  #namesLength = 0;

  constructor(queries: PoolQueries) {
    this.#queries = queries;
  }

  /**
   * Counts a whole Query, with its text between these positions. `isBehind`: an earlier request is not answered yet. `known`: what is
   * known about the text.
   */
  asksText(source: Buffer, start: number, end: number, isBehind: boolean, known?: CountedText): void {
    let count = known?.count;
    if (count?.isForgotten !== false) {
      count = this.#queries.ofText(source, start, end);
      if (known !== undefined) known.count = count;
    }
    this.#ask(count, isBehind);
  }

  /** Counts a whole batch that runs this statement. */
  asks(statement: CountedStatement | undefined, isBehind: boolean): void {
    this.#ask(statement && this.#entryOf(statement), isBehind);
  }

  bound(statement: CountedStatement): void {
    this.#bound = this.#entryOf(statement);
  }

  /** Notes a statement that keeps the client's name on the server. */
  parsedAs(name: string, parse: Buffer): void {
    this.#names ??= new Map();
    if (!this.#names.has(name)) {
      if (name.length > longestNames) return;
      if (this.#names.size >= mostNames || this.#namesLength + name.length > longestNames) {
        this.#names.clear();
        this.#namesLength = 0;
      }
      this.#namesLength += name.length;
    }
    this.#names.set(name, this.#queries.ofParse(parse)?.ref);
  }

  boundTo(name: string): void {
    this.#bound = this.#names?.get(name)?.count;
  }

  /** The batch ends, or a request without a text is sent. */
  batchEnds(isBehind: boolean): void {
    this.#ask(this.#bound, isBehind);
    this.#bound = undefined;
  }

  errorCame(): void {
    this.#isError = true;
  }

  /** Counts bytes sent to the client. */
  took(bytes: number): void {
    const entry = this.current ?? this.#last;
    if (entry !== undefined) entry.bytes += bytes;
  }

  /** The tag of a command ends here: `SELECT 5`, and a zero. */
  tagCame(source: Buffer, start: number, end: number): void {
    if (this.current === undefined) return;
    let rows = 0;
    let unit = 1;
    let at = end - 2;
    for (; at > start; at--) {
      const byte = source[at] as number;
      if (byte < digit0 || byte > digit9) break;
      rows += (byte - digit0) * unit;
      unit *= 10;
    }
    if (source[at] === space) this.current.rows += rows;
  }

  answered(ms: number, waitMs: number): void {
    const { current } = this;
    if (current !== undefined) {
      current.record(ms, waitMs, this.#isError);
      this.#last = current;
    }
    this.#isError = false;
    this.current = this.#behind?.shift()?.count;
  }

  #ask(entry: QueryCount | undefined, isBehind: boolean): void {
    if (isBehind) {
      this.#behind ??= new Fifo();
      this.#behind.push(entry?.ref);
      return;
    }
    this.current = entry;
    this.#isError = false;
    this.#behind?.clear();
  }

  #entryOf(statement: CountedStatement): QueryCount | undefined {
    const { count, parse } = statement;
    if (count?.isForgotten === false || parse === undefined) return count;
    statement.count = this.#queries.ofParse(parse);
    return statement.count;
  }
}

/**
 * The query that a client has asked, and those it has asked behind it: finds the entry of each in the statistics and records what it cost
 * when its ReadyForQuery comes. A batch counts for the statement that it executes last.
 */
import type { PoolQueries, QueryCount } from '../../servers/query-stats.js';

/** Whatever can keep its entry, so that it need not be looked for again: a statement as it was parsed. */
export interface CountedStatement {
  readonly parse: Buffer | undefined;
  count: QueryCount | undefined;
}

/** Names of statements that are followed where the pooler does not rename them. */
const mostNames = 1_000;
const [digit0, digit9, space] = [0x30, 0x39, 0x20];

export class RunningQuery {
  readonly #queries: PoolQueries;
  /** Asked, and not answered yet. */
  current: QueryCount | undefined;
  /** What the portal is bound to that is executed next. */
  #bound: QueryCount | undefined;
  #last: QueryCount | undefined;
  #isError = false;
  /** Those that were asked before `current` was answered; undefined until there is one. */
  #behind: (QueryCount | undefined)[] | undefined;
  #names: Map<string, QueryCount | undefined> | undefined;

  constructor(queries: PoolQueries) {
    this.#queries = queries;
    this.current = undefined;
    this.#bound = undefined;
    this.#last = undefined;
    this.#behind = undefined;
    this.#names = undefined;
  }

  /** A Query, whole: its text is between these. `isBehind`: something asked before is not answered yet. */
  asksText(source: Buffer, start: number, end: number, isBehind: boolean): void {
    this.#ask(this.#queries.ofText(source, start, end), isBehind);
  }

  /** A batch that runs this statement, whole. */
  asks(statement: CountedStatement | undefined, isBehind: boolean): void {
    this.#ask(statement && this.#entryOf(statement), isBehind);
  }

  bound(statement: CountedStatement): void {
    this.#bound = this.#entryOf(statement);
  }

  /** A statement that keeps the name that the client gave it. */
  parsedAs(name: string, parse: Buffer): void {
    this.#names ??= new Map();
    if (this.#names.size >= mostNames) this.#names.clear();
    this.#names.set(name, this.#queries.ofParse(parse));
  }

  boundTo(name: string): void {
    this.#bound = this.#names?.get(name);
  }

  /** The batch ends, or something that has no text is asked. */
  batchEnds(isBehind: boolean): void {
    this.#ask(this.#bound, isBehind);
    this.#bound = undefined;
  }

  errorCame(): void {
    this.#isError = true;
  }

  /** So many bytes go to the client. */
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
    this.current = this.#behind?.shift();
  }

  #ask(entry: QueryCount | undefined, isBehind: boolean): void {
    if (isBehind) {
      this.#behind ??= [];
      this.#behind.push(entry);
      return;
    }
    this.current = entry;
    this.#isError = false;
    if (this.#behind !== undefined && this.#behind.length > 0) this.#behind = undefined;
  }

  #entryOf(statement: CountedStatement): QueryCount | undefined {
    const { count, parse } = statement;
    if (count?.isForgotten === false || parse === undefined) return count;
    statement.count = this.#queries.ofParse(parse);
    return statement.count;
  }
}

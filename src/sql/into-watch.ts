/**
 * Finds the INTO that makes a table out of a SELECT. INSERT INTO and MERGE INTO make none, but `insert` and `merge` are also
 * names of columns (SELECT 1 AS insert INTO t): they count only where a statement may begin.
 */
import { isWord } from './scan.js';
import { isQuery } from './statements.js';
import { Token, type Tokenizer } from './tokenizer.js';

const Place = { elsewhere: 0, statementStart: 1, behindInsert: 2 } as const;
const into = Buffer.from('into');
const insert = Buffer.from('insert');
const merge = Buffer.from('merge');

export class IntoWatch {
  #place: number = Place.elsewhere;
  #depth = 0;
  /** Between WITH and the verb of the statement itself, which comes after a parenthesis. */
  #isBeforeVerb = false;

  /** A statement begins with this word. */
  begin(verb: string): void {
    this.#place = verb === 'insert' || verb === 'merge' ? Place.behindInsert : Place.elsewhere;
    this.#depth = 0;
    this.#isBeforeVerb = verb === 'with';
  }

  /** Call for each token behind the first word; true for an INTO that makes a table. */
  makesTable(tokens: Tokenizer): boolean {
    const place = this.#place;
    this.#place = Place.elsewhere;
    switch (tokens.token) {
      case Token.word:
        return this.#readWord(tokens, place);
      case Token.open:
        this.#depth++;
        this.#place = Place.statementStart;
        return false;
      case Token.close:
        this.#depth--;
        if (this.#isBeforeVerb && this.#depth === 0) this.#place = Place.statementStart;
        return false;
      default:
        return false;
    }
  }

  #readWord(tokens: Tokenizer, place: number): boolean {
    const { bytes, start, end } = tokens;
    if (isWord(bytes, start, end, into)) return place !== Place.behindInsert;
    if (
      place === Place.statementStart &&
      (isWord(bytes, start, end, insert) || isWord(bytes, start, end, merge))
    )
      this.#place = Place.behindInsert;
    if (this.#isBeforeVerb && this.#depth === 0 && isQuery(tokens.name() as string))
      this.#isBeforeVerb = false;
    return false;
  }
}

/** The prepared statements that one server connection has, the one used longest ago first. */
import type { PreparedStatement } from './prepared-statement.js';
import type { ReplyQueue } from './reply-queue.js';

export class ServerStatements {
  readonly #most: number;
  /** Those that it has, or was asked to prepare. */
  readonly #statements = new Set<PreparedStatement>();
  /** Those that it may have lost without a word: they are closed, which is never an error, before they are prepared again. */
  readonly #doubtful = new Set<PreparedStatement>();
  /** In which turn it was asked to prepare or to close them last, as long as that matters. */
  readonly #asked = new Map<PreparedStatement, number>();
  /** The one that was used last. */
  #last: PreparedStatement | undefined;

  /** With more than `most`, the one used longest ago is closed. */
  constructor(most: number) {
    this.#most = most;
    this.#last = undefined;
  }

  get size(): number {
    return this.#statements.size;
  }

  /** Whether the server has it, or was asked to prepare it; it counts as used. */
  has(statement: PreparedStatement): boolean {
    // Most clients use the same one again and again.
    if (statement === this.#last) return true;
    if (!this.#statements.delete(statement)) return false;
    this.#put(statement);
    return true;
  }

  /** It was prepared or closed in a turn that may yet fail: nobody knows whether the server has it. */
  isUnsure(statement: PreparedStatement, replies: ReplyQueue): boolean {
    return replies.isUnsure(this.#asked.get(statement));
  }

  /** Takes out one that nobody needs, to be closed; false when the server does not have it. */
  drop(statement: PreparedStatement, replies: ReplyQueue): boolean {
    if (!this.#statements.has(statement)) return false;
    this.delete(statement);
    this.#ask(statement, replies);
    return true;
  }

  /** It is about to be prepared. */
  add(statement: PreparedStatement, replies: ReplyQueue): void {
    this.#forgetOld(replies);
    this.#ask(statement, replies);
    this.#put(statement);
  }

  /** What was asked in a turn that is over does not matter any more. */
  #forgetOld({ turnsOver }: ReplyQueue): void {
    for (const [statement, turn] of this.#asked) {
      if (turn >= turnsOver) return;
      this.#asked.delete(statement);
    }
  }

  /** Something that nobody sees may have thrown some of them away, or all. */
  distrust(): void {
    for (const statement of this.#statements) this.#doubtful.add(statement);
    this.#statements.clear();
    this.#last = undefined;
  }

  /** It is about to be prepared: whether it has to be closed first. */
  takeDoubtful(statement: PreparedStatement): boolean {
    return this.#doubtful.delete(statement);
  }

  /** Takes out the one that must go because there are too many, if any. */
  evict(replies: ReplyQueue): PreparedStatement | undefined {
    if (this.#statements.size + this.#doubtful.size <= this.#most) return undefined;
    const [doubtful] = this.#doubtful;
    if (doubtful !== undefined) {
      this.#doubtful.delete(doubtful);
      this.#ask(doubtful, replies);
      return doubtful;
    }
    for (const statement of this.#statements) {
      if (statement === this.#last || this.isUnsure(statement, replies)) continue;
      this.#statements.delete(statement);
      this.#ask(statement, replies);
      return statement;
    }
    return undefined;
  }

  /** The oldest stay in front. */
  #ask(statement: PreparedStatement, { turnsSent }: ReplyQueue): void {
    this.#asked.delete(statement);
    this.#asked.set(statement, turnsSent);
  }

  /** The server has ignored a Close: it has the statement still. */
  putBack(statement: PreparedStatement): void {
    this.#put(statement);
  }

  /** It could not be prepared. */
  delete(statement: PreparedStatement): void {
    this.#statements.delete(statement);
    if (statement === this.#last) this.#last = undefined;
  }

  #put(statement: PreparedStatement): void {
    this.#statements.add(statement);
    this.#last = statement;
  }

  /** The server has thrown all of them away. */
  clear(): void {
    this.#statements.clear();
    this.#doubtful.clear();
    this.#asked.clear();
    this.#last = undefined;
  }
}

/** The prepared statements that one server connection has, the one used longest ago first. */
import type { PreparedStatement } from './prepared-statement.js';

export class ServerStatements {
  readonly #most: number;
  /** The value says whether the server has confirmed it. */
  readonly #statements = new Map<PreparedStatement, boolean>();
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
    const isConfirmed = this.#statements.get(statement);
    if (isConfirmed === undefined) return false;
    this.#statements.delete(statement);
    this.#put(statement, isConfirmed);
    return true;
  }

  /** Whether the server has said that it has it. Until then it may turn out that it could not be prepared. */
  isConfirmed(statement: PreparedStatement): boolean {
    return this.#statements.get(statement) === true;
  }

  /** It is about to be prepared; the one that must go for it, if any. */
  add(statement: PreparedStatement): PreparedStatement | undefined {
    this.#put(statement, false);
    if (this.#statements.size <= this.#most) return undefined;
    const [oldest] = this.#statements.keys();
    this.delete(oldest as PreparedStatement);
    return oldest;
  }

  confirm(statement: PreparedStatement): void {
    if (this.#statements.has(statement)) this.#statements.set(statement, true);
  }

  /** The server has ignored a Close: it has the statement still. */
  putBack(statement: PreparedStatement): void {
    this.#put(statement, true);
  }

  delete(statement: PreparedStatement): void {
    this.#statements.delete(statement);
    if (statement === this.#last) this.#last = undefined;
  }

  #put(statement: PreparedStatement, isConfirmed: boolean): void {
    this.#statements.set(statement, isConfirmed);
    this.#last = statement;
  }

  /** The server has thrown all of them away. */
  clear(): void {
    this.#statements.clear();
    this.#last = undefined;
  }
}

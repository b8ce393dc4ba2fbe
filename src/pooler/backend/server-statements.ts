/** The prepared statements that one server connection has, the one used longest ago first. */
import type { PreparedStatement } from './prepared-statement.js';

export class ServerStatements {
  readonly #most: number;
  /** The value says whether the server has confirmed it. */
  readonly #statements = new Map<PreparedStatement, boolean>();

  /** With more than `most`, the one used longest ago is closed. */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#statements.size;
  }

  /** Whether the server has it, or was asked to prepare it; it counts as used. */
  has(statement: PreparedStatement): boolean {
    const isConfirmed = this.#statements.get(statement);
    if (isConfirmed === undefined) return false;
    this.#statements.delete(statement);
    this.#statements.set(statement, isConfirmed);
    return true;
  }

  /** Whether the server has said that it has it. Until then it may turn out that it could not be prepared. */
  isConfirmed(statement: PreparedStatement): boolean {
    return this.#statements.get(statement) === true;
  }

  /** It is about to be prepared; the one that must go for it, if any. */
  add(statement: PreparedStatement): PreparedStatement | undefined {
    this.#statements.set(statement, false);
    if (this.#statements.size <= this.#most) return undefined;
    const [oldest] = this.#statements.keys();
    this.#statements.delete(oldest as PreparedStatement);
    return oldest;
  }

  confirm(statement: PreparedStatement): void {
    if (this.#statements.has(statement)) this.#statements.set(statement, true);
  }

  /** The server has ignored a Close: it has the statement still. */
  putBack(statement: PreparedStatement): void {
    this.#statements.set(statement, true);
  }

  delete(statement: PreparedStatement): void {
    this.#statements.delete(statement);
  }

  /** The server has thrown all of them away. */
  clear(): void {
    this.#statements.clear();
  }
}

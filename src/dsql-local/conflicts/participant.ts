/** A session as conflicts see it: its connection to PostgreSQL, and its transaction. */
import type { Link, Part } from '../postgres/link.js';
import type { Conflict, Transaction } from './transaction.js';
import { Turn } from './turn.js';

export class Participant {
  readonly link: Link;
  transaction: Transaction | undefined;
  /** BEGIN, which goes out together with the transaction's first statement. */
  pendingBegin: Part | undefined;
  /** The version of the catalog that the session has seen; undefined until it has run a statement. */
  catalog: number | undefined;
  /** Why its statement was cancelled, where another session had that done. */
  interruption: Conflict | undefined;
  /** One request at a time uses the connection: the client's, or another session's that takes its locks away. */
  readonly turn = new Turn();
  #endTurn: () => void = () => {};

  constructor(link: Link) {
    this.link = link;
  }

  /** Sends requests of the transaction, BEGIN before the first of them. */
  exchange(parts: readonly Part[]): Promise<unknown> {
    const begin = this.pendingBegin;
    this.pendingBegin = undefined;
    if (begin !== undefined) return this.link.exchange([begin, ...parts]);
    return parts.length === 0 ? Promise.resolve() : this.link.exchange(parts);
  }

  async take(): Promise<void> {
    this.#endTurn = await this.turn.take();
  }

  giveBack(): void {
    this.#endTurn();
  }

  /** Lets others use the connection while this one waits for something that they may have. */
  async waitFor<T>(something: Promise<T>): Promise<T> {
    this.giveBack();
    try {
      return await something;
    } finally {
      await this.take();
    }
  }
}

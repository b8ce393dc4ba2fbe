/** Prepared statements of one server connection, the one used longest ago first. */
import type { PreparedStatement } from './prepared-statement.js';
import type { ReplyQueue } from './reply-queue.js';

/** A statement as prepared on one server. */
export class ServerCopy {
  /** Name on the server, unique in the pool. */
  readonly name: Buffer;
  /** Registry tick when the server was asked to prepare it: the analysis is not older than that. */
  readonly preparedAt: number;
  /** The batch in which the server was asked to prepare it. */
  readonly batch: number;
  /** Memory that the statement counts for while a server connection has it. */
  bytes = 0;

  constructor(name: Buffer, preparedAt: number, batch: number) {
    this.name = name;
    this.preparedAt = preparedAt;
    this.batch = batch;
  }
}

/** A request to prepare a statement, and the copy that it makes. */
export interface Preparation {
  readonly statement: PreparedStatement;
  readonly copy: ServerCopy;
  /** The client has asked for a description: if preparing fails, the parameters are described all the same. */
  readonly isForDescribe?: boolean;
}

export class ServerStatements {
  /** With more than so many, the one used longest ago is closed. */
  most: number;
  readonly #mostBytes: number;
  readonly #copies = new Map<PreparedStatement, ServerCopy>();
  /** Copies that will not be used again: closed along with the next Parse. Closing one that does not exist is no error. */
  readonly #stale = new Set<ServerCopy>();
  /** The statement that was used last. */
  #last: PreparedStatement | undefined;
  #lastCopy: ServerCopy | undefined;
  #bytes = 0;
  /** Batches that were done when nothing more could be closed. Until another is done, there is nothing to look for. */
  #searchedAt = -1;

  /** Beyond `most` statements or `mostBytes` bytes, the one used longest ago is closed. */
  constructor(most: number, mostBytes: number) {
    this.most = most;
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#copies.size;
  }

  /** Number of statements on the server under names of the pooler's, if none was deallocated. */
  get count(): number {
    return this.#copies.size + this.#stale.size;
  }

  /** The copy that the server has or was asked to prepare; this counts as a use. */
  find(statement: PreparedStatement): ServerCopy | undefined {
    // Most clients use the same statement again and again.
    if (statement === this.#last) return this.#lastCopy;
    const copy = this.#copies.get(statement);
    if (copy !== undefined) this.#put(statement, copy);
    return copy;
  }

  /** Prepared in an earlier batch that may yet fail: whether the server has it is unknown. */
  isUnsure(statement: PreparedStatement, replies: ReplyQueue): boolean {
    return replies.isUnsure(this.#copies.get(statement)?.batch);
  }

  /** The server is about to be asked to prepare the statement. An older copy is not used any more. */
  add(statement: PreparedStatement, copy: ServerCopy): void {
    this.#retire(this.#copies.get(statement));
    this.#forget(statement);
    copy.bytes = bytesOf(statement);
    this.#bytes += copy.bytes;
    this.#put(statement, copy);
  }

  /** The description showed that this copy is of another statement. */
  rename(from: PreparedStatement, to: PreparedStatement): void {
    const copy = this.#copies.get(from);
    if (copy === undefined || from === to) return;
    this.#forget(from);
    this.add(to, copy);
  }

  /** The server's copy is not needed any more. */
  drop(statement: PreparedStatement): void {
    const copy = this.#copies.get(statement);
    this.#forget(statement);
    this.#retire(copy);
  }

  /** Something unseen may have deallocated some or all of the statements. */
  distrust(): void {
    for (const copy of this.#copies.values()) this.#stale.add(copy);
    this.#copies.clear();
    this.#bytes = 0;
    this.#last = this.#lastCopy = undefined;
  }

  /**
   * Takes out the copies to close: stale ones, and those used longest ago if there are too many. Decides before any of them is
   * closed: the answers to the Closes are owed as well, and with every answer owed no copy of the present batch can be closed.
   */
  evict(replies: ReplyQueue): ServerCopy[] {
    const evicted = [...this.#stale];
    this.#stale.clear();
    const { batchesDone } = replies;
    if (!this.#hasTooMany || (replies.size > 0 && batchesDone === this.#searchedAt)) return evicted;
    this.#searchedAt = -1;
    for (const [statement, copy] of this.#copies) {
      // The server may lack it, or have it for another statement.
      const isUnanswered = replies.size > 0 && copy.batch >= batchesDone;
      if (statement === this.#last || isUnanswered) continue;
      this.#forget(statement);
      evicted.push(copy);
      if (!this.#hasTooMany) return evicted;
    }
    this.#searchedAt = batchesDone;
    return evicted;
  }

  /** True if `evict()` may find something. */
  get mayEvict(): boolean {
    return this.#stale.size > 0 || this.#hasTooMany;
  }

  get #hasTooMany(): boolean {
    return this.#copies.size > this.most || this.#bytes > this.#mostBytes;
  }

  /** Too many unanswered copies, which can't be closed yet: the next one has to wait. */
  get isCrowded(): boolean {
    return this.#copies.size > 2 * this.most + 16 || this.#bytes > 2 * this.#mostBytes;
  }

  /** The server has ignored a Close and still has the copy. */
  putBack(copy: ServerCopy): void {
    this.#stale.add(copy);
  }

  /** The server could not prepare the statement. */
  failed({ statement, copy }: Preparation): void {
    if (this.#copies.get(statement) === copy) this.#forget(statement);
  }

  /** The server has deallocated all statements. */
  clear(): void {
    this.#copies.clear();
    this.#stale.clear();
    this.#bytes = 0;
    this.#last = this.#lastCopy = undefined;
  }

  #put(statement: PreparedStatement, copy: ServerCopy): void {
    this.#copies.delete(statement);
    this.#copies.set(statement, copy);
    this.#last = statement;
    this.#lastCopy = copy;
  }

  #retire(copy: ServerCopy | undefined): void {
    if (copy !== undefined) this.#stale.add(copy);
  }

  #forget(statement: PreparedStatement): void {
    this.#bytes -= this.#copies.get(statement)?.bytes ?? 0;
    this.#copies.delete(statement);
    if (statement === this.#last) this.#last = this.#lastCopy = undefined;
  }
}

/** Bytes of a statement without its text and parameter types. */
const smallest = 512;

function bytesOf({ parse }: PreparedStatement): number {
  return smallest + parse.length;
}

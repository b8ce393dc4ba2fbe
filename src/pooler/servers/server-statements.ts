/** The prepared statements that one server connection has, the one used longest ago first. */
import type { PreparedStatement } from './prepared-statement.js';
import type { ReplyQueue } from './reply-queue.js';

/** A statement as one server has it. */
export class ServerCopy {
  /** On the server. No other statement of the pool has it. */
  readonly name: Buffer;
  /** The registry's tick when the server was asked to prepare it: what it means is not older than that. */
  readonly preparedAt: number;
  /** The batch in which the server was asked to prepare it. */
  readonly batch: number;
  /** Memory that the statement counts as, while it is among those of a server connection. */
  bytes = 0;

  constructor(name: Buffer, preparedAt: number, batch: number) {
    this.name = name;
    this.preparedAt = preparedAt;
    this.batch = batch;
  }
}

/** A statement that a server is asked to prepare, and the copy that this makes. */
export interface Preparation {
  readonly statement: PreparedStatement;
  readonly copy: ServerCopy;
  /** The client has asked for a description: should it fail, the parameters are described all the same. */
  readonly isForDescribe?: boolean;
}

export class ServerStatements {
  /** With more than so many, the one used longest ago is closed. */
  most: number;
  readonly #mostBytes: number;
  readonly #copies = new Map<PreparedStatement, ServerCopy>();
  /** Copies that nobody will use again: closed along with the next Parse. Closing one that does not exist is no error. */
  readonly #stale = new Set<ServerCopy>();
  /** The statement that was used last. */
  #last: PreparedStatement | undefined;
  #lastCopy: ServerCopy | undefined;
  #bytes = 0;

  /** With more bytes than `mostBytes`, the one used longest ago is closed as well. */
  constructor(most: number, mostBytes: number) {
    this.most = most;
    this.#mostBytes = mostBytes;
    this.#last = undefined;
    this.#lastCopy = undefined;
  }

  get size(): number {
    return this.#copies.size;
  }

  /** How many the server has under names of the pooler's, if nothing was thrown away. */
  get count(): number {
    return this.#copies.size + this.#stale.size;
  }

  /** The copy that the server has, or was asked to prepare; it counts as used. */
  find(statement: PreparedStatement): ServerCopy | undefined {
    // Most clients use the same statement again and again.
    if (statement === this.#last) return this.#lastCopy;
    const copy = this.#copies.get(statement);
    if (copy !== undefined) this.#put(statement, copy);
    return copy;
  }

  /** Prepared in an earlier batch that may yet fail: nobody knows whether the server has it. */
  isUnsure(statement: PreparedStatement, replies: ReplyQueue): boolean {
    return replies.isUnsure(this.#copies.get(statement)?.batch);
  }

  /** The server is about to be asked to prepare it. An older copy is not used any more. */
  add(statement: PreparedStatement, copy: ServerCopy): void {
    this.#retire(this.#copies.get(statement));
    this.#forget(statement);
    copy.bytes = bytesOf(statement);
    this.#bytes += copy.bytes;
    this.#put(statement, copy);
  }

  /** The copy of one statement is a copy of another, as its description shows. */
  rename(from: PreparedStatement, to: PreparedStatement): void {
    const copy = this.#copies.get(from);
    if (copy === undefined || from === to) return;
    this.#forget(from);
    this.add(to, copy);
  }

  /** Nobody needs the server's copy any more. */
  drop(statement: PreparedStatement): void {
    const copy = this.#copies.get(statement);
    this.#forget(statement);
    this.#retire(copy);
  }

  /** Something that nobody sees may have thrown some of them away, or all. */
  distrust(): void {
    for (const copy of this.#copies.values()) this.#stale.add(copy);
    this.#copies.clear();
    this.#bytes = 0;
    this.#last = this.#lastCopy = undefined;
  }

  /** Takes out a copy that has to be closed: a stale one, or the one used longest ago if there are too many. */
  evict(replies: ReplyQueue): ServerCopy | undefined {
    const [stale] = this.#stale;
    if (stale !== undefined) {
      this.#stale.delete(stale);
      return stale;
    }
    if (this.#copies.size <= this.most && this.#bytes <= this.#mostBytes) return undefined;
    for (const [statement, copy] of this.#copies) {
      // Nobody knows yet whether the server has it, nor what it is a copy of.
      const isUnanswered = replies.size > 0 && copy.batch >= replies.turnsOver;
      if (statement === this.#last || isUnanswered) continue;
      this.#forget(statement);
      return copy;
    }
    return undefined;
  }

  /** So many are not answered yet, and can't be closed, that the next one has to wait. */
  get isCrowded(): boolean {
    return this.#copies.size > 2 * this.most + 16 || this.#bytes > 2 * this.#mostBytes;
  }

  /** The server has ignored a Close: it has the copy still. */
  putBack(copy: ServerCopy): void {
    this.#stale.add(copy);
  }

  /** It could not be prepared. */
  failed({ statement, copy }: Preparation): void {
    if (this.#copies.get(statement) === copy) this.#forget(statement);
  }

  /** The server has thrown all of them away. */
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

/** A statement without its text, and the types of its parameters. */
const smallest = 512;

function bytesOf({ parse }: PreparedStatement): number {
  return smallest + parse.length;
}

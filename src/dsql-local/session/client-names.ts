/**
 * Names of a client's statements and portals. What a message changes is final when PostgreSQL has answered it: an error before
 * undoes it.
 */

import type { JudgedStatement } from '../../dialect/judgement.js';
import { Backend } from '../../wire/message-types.js';

/** A statement as its Parse message had it. */
export interface ClientStatement {
  /** Undefined: the text has no statement. */
  readonly judged: JudgedStatement | undefined;
  readonly parameterTypes: readonly number[];
}

export interface Portal {
  readonly statement: ClientStatement;
  readonly bind: Buffer;
  /** PostgreSQL's transaction that the portal was bound in. */
  readonly generation: number;
  /** Has been executed, and may have answered a part of its rows. */
  isStarted: boolean;
}

type Entry = ClientStatement | Portal;

interface Change {
  /** Type of the message that confirms it. */
  readonly answer: number;
  readonly names: Map<string, Entry>;
  readonly key: string;
  /** Undefined: closed. */
  readonly entry: Entry | undefined;
}

export class ClientNames {
  readonly #statements = new Map<string, ClientStatement>();
  readonly #portals = new Map<string, Portal>();
  /** In the order of the messages that PostgreSQL has not answered. */
  #changes: Change[] = [];

  get statementCount(): number {
    return this.#statements.size;
  }

  statement(key: string): ClientStatement | undefined {
    return this.#find(this.#statements, key);
  }

  portal(key: string): Portal | undefined {
    return this.#find(this.#portals, key);
  }

  parsed(key: string, statement: ClientStatement): void {
    this.#changes.push({ answer: Backend.parseComplete, names: this.#statements, key, entry: statement });
  }

  bound(key: string, portal: Portal): void {
    this.#changes.push({ answer: Backend.bindComplete, names: this.#portals, key, entry: portal });
  }

  closed(isStatement: boolean, key: string): void {
    const names: Map<string, Entry> = isStatement ? this.#statements : this.#portals;
    this.#changes.push({ answer: Backend.closeComplete, names, key, entry: undefined });
  }

  /** A message of PostgreSQL's, or the stand-in's own in its place, was sent to the client. */
  answered(type: number): void {
    const [change] = this.#changes;
    if (change?.answer !== type) return;
    this.#changes.shift();
    if (change.entry === undefined) change.names.delete(change.key);
    else change.names.set(change.key, change.entry);
  }

  /** After an error nothing comes of messages that are not answered. A Parse without a name that fails ends the last one all the same. */
  undo(): void {
    const [failed] = this.#changes;
    if (failed?.names === this.#statements && failed.key === '') this.#statements.delete('');
    this.#changes = [];
  }

  forgetUnnamedStatement(): void {
    this.#statements.delete('');
  }

  /** A Query ends the unnamed statement and the unnamed portal. */
  forgetUnnamed(): void {
    this.#statements.delete('');
    this.#portals.delete('');
  }

  /** The transaction is over, and its portals with it. */
  forgetPortals(): void {
    if (this.#portals.size > 0) this.#portals.clear();
  }

  /** DEALLOCATE ALL: all that have names. */
  forgetStatements(): void {
    for (const key of this.#statements.keys()) if (key !== '') this.#statements.delete(key);
  }

  #find<T extends Entry>(names: Map<string, T>, key: string): T | undefined {
    const change = this.#changes.findLast((one) => one.names === names && one.key === key);
    return change === undefined ? names.get(key) : (change.entry as T | undefined);
  }
}

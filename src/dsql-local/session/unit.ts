/** One execution of a statement: the messages that run it on PostgreSQL, as they came or on copies of its tables. */

import type { JudgedStatement } from '../../dialect/judgement.js';
import { sync } from '../../wire/fixed-messages.js';
import { BindView } from '../../wire/frontend-views.js';
import { writeClose, writeDescribe, writeParse, writeQuery } from '../../wire/frontend-writers.js';
import { Backend, Frontend, Target } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import type { Copy } from '../conflicts/transaction.js';
import type { Message } from './channel.js';

/** A request on copies: its bytes, and how often messages of which types answer what the client did not ask for. */
export interface UnitOnCopies {
  readonly bytes: Buffer;
  readonly unsynced: Buffer | undefined;
  readonly leftOut: readonly number[];
}

export interface Unit {
  readonly statement: JudgedStatement;
  /** As the client sent it, up to the Sync or the end of the Query. */
  readonly bytes: Buffer;
  /** The bytes without the Sync; undefined for a Query, which needs none. */
  readonly unsynced: Buffer | undefined;
  /**
   * With this text in place of its own, which names copies. `isParsed`: PostgreSQL has the client's statement already. Undefined where
   * it can't be run a second time.
   */
  again(sql: string, isParsed: boolean): UnitOnCopies | undefined;
}

/** A statement of a Query message. */
export class QueryUnit implements Unit {
  readonly statement: JudgedStatement;
  readonly unsynced = undefined;
  readonly #whole: Buffer | undefined;

  /** `whole`: the client's message, where the statement is all of it and needs no other text. */
  constructor(statement: JudgedStatement, whole: Buffer | undefined) {
    this.statement = statement;
    this.#whole = whole;
  }

  get bytes(): Buffer {
    return this.#whole ?? queryBytes(this.statement.sql);
  }

  again(sql: string): UnitOnCopies {
    return { bytes: queryBytes(sql), unsynced: undefined, leftOut: [] };
  }
}

const copyName = 'dsql_local_copy';
const bindView = new BindView();

/** Parse, Bind, Describe and Execute of one portal, as far as the client has sent them. */
export class ExtendedUnit implements Unit {
  readonly statement: JudgedStatement;
  readonly bytes: Buffer;
  readonly unsynced: Buffer;
  readonly #parameterTypes: readonly number[];
  readonly #messages: readonly Message[];
  readonly #bind: Buffer | undefined;

  /** `bind`: the message that has bound the portal, if it is not among the messages and the portal can be bound again. */
  constructor(
    statement: JudgedStatement,
    parameterTypes: readonly number[],
    messages: readonly Message[],
    bind: Buffer | undefined,
  ) {
    this.statement = statement;
    this.#parameterTypes = parameterTypes;
    this.#messages = messages;
    this.#bind = bind;
    this.unsynced = Buffer.concat(messages.map(({ bytes }) => bytes));
    this.bytes = Buffer.concat([this.unsynced, sync]);
  }

  again(sql: string, isParsed: boolean): UnitOnCopies | undefined {
    const has = (wanted: number): boolean => this.#messages.some(({ type }) => type === wanted);
    const hasBind = has(Frontend.bind);
    if (!hasBind && this.#bind === undefined) return undefined;
    const writer = new MessageWriter();
    writeClose(writer, Target.statement, copyName);
    writeParse(writer, { name: copyName, text: sql, parameterTypes: this.#parameterTypes });
    if (!hasBind) {
      const bind = this.#bind as Buffer;
      const { portalStart, portalEnd } = bindView.read(bind, 0, bind.length);
      writeClose(writer, Target.portal, bind.subarray(portalStart, portalEnd));
      bindToCopy(writer, bind);
    }
    for (const { type, bytes } of this.#messages) {
      if (type === Frontend.parse && isParsed) continue;
      if (type === Frontend.bind) bindToCopy(writer, bytes);
      else if (type === Frontend.describe && bytes[5] === Target.statement)
        writeDescribe(writer, Target.statement, copyName);
      else writer.append(bytes);
    }
    const unsynced = writer.take();
    return {
      unsynced,
      bytes: Buffer.concat([unsynced, sync]),
      leftOut: [
        Backend.closeComplete,
        // The answer to the copy's Parse stands for the client's where that is not repeated.
        ...(has(Frontend.parse) && isParsed ? [] : [Backend.parseComplete]),
        ...(hasBind ? [] : [Backend.closeComplete, Backend.bindComplete]),
      ],
    };
  }
}

/** The statement's text with `pg_temp` for the schemas of tables that the transaction has copies of. */
export function onCopies({ sql, schemaMentions }: JudgedStatement, copies: Iterable<Copy>): string {
  const schemas = new Map([...copies].map(({ schema, name }) => [name, schema]));
  let text = '';
  let at = 0;
  for (const { schema, relation, start, end } of schemaMentions) {
    if (schemas.get(relation) !== schema) continue;
    text += `${sql.slice(at, start)}pg_temp`;
    at = end;
  }
  return text + sql.slice(at);
}

/** True if the statement names a table that the transaction has a copy of. */
export function usesCopies({ relations }: JudgedStatement, copies: Iterable<Copy>): boolean {
  for (const copy of copies)
    if (relations.some(({ name, schema }) => name === copy.name && (schema ?? copy.schema) === copy.schema))
      return true;
  return false;
}

function queryBytes(sql: string): Buffer {
  const writer = new MessageWriter();
  writeQuery(writer, sql);
  return writer.take();
}

/** A Bind message with the name of the statement on copies in place of its own. */
function bindToCopy(writer: MessageWriter, bytes: Buffer): void {
  const view = bindView.read(bytes, 0, bytes.length);
  writer.begin(Frontend.bind);
  writer.bytes(bytes, 5, view.nameStart);
  writer.text(copyName);
  writer.bytes(bytes, view.nameEnd + 1);
  writer.end();
}

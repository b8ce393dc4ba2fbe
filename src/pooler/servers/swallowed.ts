/** Statements that a client sends and its server does not get, and the answers made up for them. */
import { type ErrorFields, writeNotice } from '../../wire/error-fields.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { writeCommandComplete, writeDataRow, writeRowDescription } from '../../wire/rows.js';
import type { StatementEffects } from '../settings/statement-effects.js';

/** The only column of an answer, and its value in the only row; undefined: no row. */
export interface OwnColumn {
  readonly name: string;
  readonly value: string | undefined;
}

/** A statement that the pooler answers in the server's place. */
export class SwallowedStatement {
  readonly tag: string;
  readonly column: OwnColumn | undefined;
  /** Runs when the statement is executed. */
  readonly run: () => void;
  readonly #warning: ErrorFields | undefined;

  constructor(tag: string, run: () => void, column?: OwnColumn, warning?: ErrorFields) {
    this.tag = tag;
    this.run = run;
    this.column = column;
    this.#warning = warning;
  }

  /** Writes the answer, without ReadyForQuery. */
  write(writer: MessageWriter): void {
    const { column, tag } = this;
    if (this.#warning !== undefined) writeNotice(writer, this.#warning);
    if (column !== undefined) {
      writeRowDescription(writer, [{ name: column.name }]);
      if (column.value !== undefined) writeDataRow(writer, [column.value]);
    }
    writeCommandComplete(writer, tag);
  }
}

/** A statement that sets `search_path`. Once it is run, the session wants another path, which its next statement brings to the server. */
export class PathStatement extends SwallowedStatement {
  /** Undefined: the value is the first parameter. */
  readonly value: string | undefined;
  readonly #set: (value: string | null) => void;

  constructor(value: string | undefined, set: (value: string | null) => void) {
    super('SELECT 1', () => set(value ?? null), { name: 'set_config', value });
    this.value = value;
    this.#set = set;
  }

  /** Makes the statement with the value of a Bind. */
  with(value: string | null): SwallowedStatement {
    return new SwallowedStatement(this.tag, () => this.#set(value));
  }
}

/** One Query with several statements, only some of which go to the server. Answers to the others are inserted between the server's. */
export class MixedQuery {
  /** Effects of the text that the server gets. */
  readonly effects: StatementEffects;
  readonly text: string;
  /** Statements to answer before the server's first answer, before its second and so on; the last entry is for the end. */
  readonly #before: readonly (readonly SwallowedStatement[])[];
  /** By number of the server's statement: true if its answer is not for the client. */
  readonly #areSilent: readonly boolean[];
  #written = -1;
  #completed = 0;
  /** After an error, nothing more is answered. */
  hasFailed = false;

  constructor(
    text: string,
    effects: StatementEffects,
    before: readonly (readonly SwallowedStatement[])[],
    areSilent: readonly boolean[],
  ) {
    this.text = text;
    this.effects = effects;
    this.#before = before;
    this.#areSilent = areSilent;
  }

  /** A message of the present answer has come: writes what belongs before it. */
  writeBefore(writer: () => MessageWriter): void {
    if (this.hasFailed || this.#written >= this.#completed) return;
    this.#written = this.#completed;
    for (const swallowed of this.#before[this.#completed] ?? []) {
      swallowed.run();
      swallowed.write(writer());
    }
  }

  /** A statement of the server's is complete. Returns whether its answer is for the client. */
  complete(): boolean {
    return this.#areSilent[this.#completed++] !== true;
  }
}

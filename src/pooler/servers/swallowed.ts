/** Statements of a client that its server does not get to see, and what stands in for them in its answers. */
import { type ErrorFields, writeNotice } from '../../wire/error-fields.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { writeCommandComplete, writeDataRow, writeRowDescription } from '../../wire/rows.js';
import type { StatementEffects } from '../settings/statement-effects.js';

/** The only column of an answer, and its value in the only row; undefined: there is no row. */
export interface OwnColumn {
  readonly name: string;
  readonly value: string | undefined;
}

/** One that the pooler has swallowed. */
export class SwallowedStatement {
  readonly tag: string;
  readonly column: OwnColumn | undefined;
  /** Run when it is executed. */
  readonly run: () => void;
  readonly #warning: ErrorFields | undefined;

  constructor(tag: string, run: () => void, column?: OwnColumn, warning?: ErrorFields) {
    this.tag = tag;
    this.run = run;
    this.column = column;
    this.#warning = warning;
  }

  /** Its answer, without ReadyForQuery. */
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

/** One that sets `search_path`: as soon as it is run, the session wants another one, and its next statement brings that to the server. */
export class PathStatement extends SwallowedStatement {
  /** Undefined: the value is the first parameter. */
  readonly value: string | undefined;
  readonly #set: (value: string | null) => void;

  constructor(value: string | undefined, set: (value: string | null) => void) {
    super('SELECT 1', () => set(value ?? null), { name: 'set_config', value });
    this.value = value;
    this.#set = set;
  }

  /** The same with the value of a Bind. */
  with(value: string | null): SwallowedStatement {
    return new SwallowedStatement(this.tag, () => this.#set(value));
  }
}

/** A text of several statements, some of which the server gets, in one Query; the answers to the others are put between its own. */
export class MixedQuery {
  /** What the text for the server does. */
  readonly effects: StatementEffects;
  readonly text: string;
  /** Before the answer to the first statement of the server, to the second and so on; the last is for the end. */
  readonly #before: readonly (readonly SwallowedStatement[])[];
  /** By the number of the server's statement: its answer is not for the client. */
  readonly #areSilent: readonly boolean[];
  #written = -1;
  #completed = 0;
  /** After an error nothing more is answered. */
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

  /** A message of the present answer came: what has to come before it. */
  writeBefore(writer: () => MessageWriter): void {
    if (this.hasFailed || this.#written >= this.#completed) return;
    this.#written = this.#completed;
    for (const swallowed of this.#before[this.#completed] ?? []) {
      swallowed.run();
      swallowed.write(writer());
    }
  }

  /** A statement of the server's is complete; whether that is for the client. */
  complete(): boolean {
    return this.#areSilent[this.#completed++] !== true;
  }
}

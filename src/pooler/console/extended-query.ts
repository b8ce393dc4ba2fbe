/** Prepared statements and portals of the console, for drivers that only use the extended protocol. */
import { emptyQueryResponse } from '../../wire/fixed-messages.js';
import type { BindView, ParseView, TargetView } from '../../wire/frontend-views.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { writeParameterDescription } from '../../wire/rows.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Command } from './command.js';
import { parseCommands } from './command-parser.js';
import { ConsoleError } from './console-error.js';
import { ResultCursor, writeDescription } from './result-writer.js';
import { columnsOf, type Outcome } from './run-command.js';

/** Limit of prepared statements; a client with more has forgotten to close them. */
const mostStatements = 1_000;
/** Limit of portals. Each may hold the rows of a command until the next Sync. */
const mostPortals = 100;

/** A statement with its result formats. It runs at the first Execute; later ones fetch the remaining rows. */
export class Portal {
  /** Undefined for an empty text. */
  readonly command: Command | undefined;
  readonly #formats: readonly number[];
  #result: ResultCursor | undefined;

  constructor(command: Command | undefined, formats: readonly number[]) {
    this.command = command;
    this.#formats = formats;
  }

  get hasRun(): boolean {
    return this.command === undefined || this.#result !== undefined;
  }

  describe(writer: MessageWriter): void {
    writeDescription(writer, this.command && columnsOf(this.command), this.#formats);
  }

  ran(outcome: Outcome): void {
    this.#result = new ResultCursor(this.command && columnsOf(this.command), outcome, this.#formats);
  }

  /** The result with its next part; undefined for an empty text, whose answer is written. */
  fetch(writer: MessageWriter, maxRows: number): ResultCursor | undefined {
    if (this.#result === undefined) writer.append(emptyQueryResponse);
    else this.#result.fetch(maxRows);
    return this.#result;
  }
}

export class ExtendedQuery {
  readonly #statements = new Map<string, Command | undefined>();
  readonly #portals = new Map<string, Portal>();

  parse(view: ParseView): void {
    const name = view.nameKey();
    if (view.parameterCount > 0)
      throw new ConsoleError(
        SqlState.featureNotSupported,
        `commands of the console take no parameters; ${view.parameterCount} were declared`,
      );
    if (!view.isUnnamed && this.#statements.has(name))
      throw new ConsoleError(
        SqlState.duplicatePreparedStatement,
        `prepared statement "${view.name()}" already exists`,
      );
    const commands = parseCommands(view.text());
    if (commands.length > 1)
      throw new ConsoleError(
        SqlState.syntaxError,
        `a prepared statement can hold one command, not ${commands.length}`,
      );
    if (this.#statements.size >= mostStatements && !this.#statements.has(name))
      throw new ConsoleError(
        SqlState.configurationLimitExceeded,
        `the console keeps ${mostStatements} prepared statements of a client, and no more`,
      );
    this.#statements.set(name, commands[0]);
  }

  bind(view: BindView): void {
    const command = this.#statement(view.nameKey(), view.name());
    const portal = view.portalKey();
    if (portal !== '' && this.#portals.has(portal))
      throw new ConsoleError(SqlState.duplicateCursor, `portal "${view.portal()}" already exists`);
    if (this.#portals.size >= mostPortals && !this.#portals.has(portal))
      throw new ConsoleError(
        SqlState.configurationLimitExceeded,
        `the console keeps ${mostPortals} portals of a client up to the next Sync, and no more`,
      );
    const { values, resultFormats } = view.parameters();
    if (values.length > 0)
      throw new ConsoleError(
        SqlState.protocolViolation,
        `commands of the console take no parameters; ${values.length} were given`,
      );
    checkFormats(resultFormats, command && columnsOf(command)?.length);
    this.#portals.set(portal, new Portal(command, resultFormats));
  }

  describe(view: TargetView, writer: MessageWriter): void {
    if (!view.isStatement) {
      this.portal(view.nameKey(), view.name()).describe(writer);
      return;
    }
    const command = this.#statement(view.nameKey(), view.name());
    writeParameterDescription(writer, []);
    writeDescription(writer, command && columnsOf(command));
  }

  close(view: TargetView): void {
    if (view.isStatement) this.#statements.delete(view.nameKey());
    else this.#portals.delete(view.nameKey());
  }

  portal(key: string, name: string): Portal {
    const portal = this.#portals.get(key);
    if (portal === undefined)
      throw new ConsoleError(SqlState.invalidCursorName, `portal "${name}" does not exist`);
    return portal;
  }

  /** Portals live for a transaction, which ends at the next Sync here. */
  forgetPortals(): void {
    this.#portals.clear();
  }

  #statement(key: string, name: string): Command | undefined {
    if (!this.#statements.has(key))
      throw new ConsoleError(SqlState.invalidStatementName, `prepared statement "${name}" does not exist`);
    return this.#statements.get(key);
  }
}

function checkFormats(formats: readonly number[], columns = 0): void {
  if (formats.length > 1 && formats.length !== columns)
    throw new ConsoleError(
      SqlState.protocolViolation,
      `${formats.length} result formats were given for ${columns} columns`,
    );
  const wrong = formats.find((format) => format !== 0 && format !== 1);
  if (wrong !== undefined)
    throw new ConsoleError(
      SqlState.invalidParameterValue,
      `a result format is 0 for text or 1 for binary, not ${wrong}`,
    );
}

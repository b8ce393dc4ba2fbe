/** Console protocol: simple and extended queries, one command at a time, in order. */
import { writeError, writeNotice } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import {
  bindComplete,
  closeComplete,
  emptyQueryResponse,
  parseComplete,
  readyIdle,
} from '../../wire/fixed-messages.js';
import { BindView, ExecuteView, ParseView, QueryView, TargetView } from '../../wire/frontend-views.js';
import type { MessageScanner } from '../../wire/message-scanner.js';
import { Frontend, frontendName } from '../../wire/message-types.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { frontendRules } from '../../wire/scan-rules.js';
import { SqlState } from '../../wire/sql-states.js';
import type { ConfigError } from '../config/config-problems.js';
import { type Command, describeCommand, isHarmless } from './command.js';
import { parseCommands } from './command-parser.js';
import { ConsoleError, errorFieldsOf, pgbouncerFieldsOf } from './console-error.js';
import { ExtendedQuery } from './extended-query.js';
import { ResultCursor, writeDescription } from './result-writer.js';
import { type ConsoleTools, columnsOf, type Outcome, runCommand } from './run-command.js';

export interface DialogueListener {
  commandCame(): void;
  commandGiven(command: string, problem: ConfigError | undefined): void;
  commandFailed(command: string, error: unknown): void;
  /** The running command is done, and its answer is written. */
  commandSettled(): void;
}

/** Limit of a message; a longer one gets an error and is skipped. */
const longestMessage = 65_536;

const whole = { wholeUpTo: longestMessage };
export const consoleRules = frontendRules({
  query: whole,
  parse: whole,
  bind: whole,
  describe: whole,
  execute: whole,
  close: whole,
});

const queryView = new QueryView();
const parseView = new ParseView();
const bindView = new BindView();
const executeView = new ExecuteView();
const describeView = new TargetView('Describe');
const closeView = new TargetView('Close');

/** A command that waits for something. */
interface Running {
  readonly command: Command;
  readonly abort: AbortController;
}

/** Only writes; the caller sends. While `isRunning` or `hasMore`, no further message may be handed in. */
export class ConsoleDialogue {
  readonly #tools: ConsoleTools;
  readonly #writer: MessageWriter;
  readonly #listener: DialogueListener;
  readonly #extended = new ExtendedQuery();
  /** Remaining commands of a simple query. */
  #query: Command[] | undefined;
  /** A result of which rows are to be written. */
  #result: ResultCursor | undefined;
  /** After an error in the extended protocol: everything is skipped up to the next Sync. */
  #isSkipping = false;
  #running: Running | undefined;
  /** Text of the last simple query. */
  #text = '';
  /** This client has suspended the pooler; its end resumes the pooler. */
  #hasSuspended = false;

  constructor(tools: ConsoleTools, writer: MessageWriter, listener: DialogueListener) {
    this.#tools = tools;
    this.#writer = writer;
    this.#listener = listener;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** A simple query or a result is not over. */
  get hasMore(): boolean {
    return this.#query !== undefined || this.#result !== undefined;
  }

  // ---- messages ---------------------------------------------------------------------------------------------------

  /** Handles the first piece of a message, which is the whole message unless it is too long. */
  handle(message: MessageScanner): void {
    const { type } = message;
    if (type === Frontend.sync) {
      this.#isSkipping = false;
      this.#extended.forgetPortals();
      this.#writer.append(readyIdle);
    } else if (this.#isSkipping) {
      return;
    } else if (type === Frontend.query || type === Frontend.functionCall) {
      // From here on the query ends with ReadyForQuery in any case.
      this.#query = [];
      this.#attempt(() => this.#simply(message));
    } else this.#attempt(() => this.#extendedly(message));
  }

  #simply(message: MessageScanner): void {
    if (message.type === Frontend.functionCall)
      throw new ConsoleError(SqlState.featureNotSupported, 'the console has no functions to call');
    expectShort(message);
    this.#text = queryView.read(message.source, message.start, message.end).text();
    this.#query = parseCommands(this.#text);
    if (this.#query.length === 0) this.#writer.append(emptyQueryResponse);
  }

  /** Writes the next rows of a result, or runs the next command of a simple query, or ends it. */
  goOn(): void {
    const result = this.#result;
    if (result !== undefined) {
      this.#attempt(() => {
        // Where a row can't be made, the error ends the result.
        this.#result = undefined;
        if (!result.write(this.#writer)) this.#result = result;
      });
      return;
    }
    const command = this.#query?.shift();
    if (command === undefined) {
      this.#query = undefined;
      this.#writer.append(readyIdle);
      return;
    }
    this.#run(command, (outcome) => {
      const columns = columnsOf(command);
      if (outcome.notice !== undefined) writeNotice(this.#writer, outcome.notice);
      if (columns !== undefined) writeDescription(this.#writer, columns);
      this.#result = new ResultCursor(columns, outcome);
      this.#result.fetch(0);
    });
  }

  #extendedly(message: MessageScanner): void {
    const { type, source, start, end } = message;
    switch (type) {
      case Frontend.parse:
        expectShort(message);
        this.#extended.parse(parseView.read(source, start, end));
        this.#writer.append(parseComplete);
        break;
      case Frontend.bind:
        expectShort(message);
        this.#extended.bind(bindView.read(source, start, end));
        this.#writer.append(bindComplete);
        break;
      case Frontend.describe:
        this.#extended.describe(describeView.read(source, start, end), this.#writer);
        break;
      case Frontend.close:
        this.#extended.close(closeView.read(source, start, end));
        this.#writer.append(closeComplete);
        break;
      case Frontend.execute:
        this.#execute(executeView.read(source, start, end));
        break;
      default:
      // Flush needs nothing, as everything is sent anyway. Rests of a COPY are ignored, as in PostgreSQL.
    }
  }

  #execute(view: ExecuteView): void {
    const { maxRows } = view;
    const portal = this.#extended.portal(view.nameKey(), view.name());
    if (portal.hasRun) {
      this.#result = portal.fetch(this.#writer, maxRows);
      return;
    }
    this.#run(portal.command as Command, (outcome) => {
      if (outcome.notice !== undefined) writeNotice(this.#writer, outcome.notice);
      portal.ran(outcome);
      this.#result = portal.fetch(this.#writer, maxRows);
    });
  }

  // ---- commands ---------------------------------------------------------------------------------------------------

  #run(command: Command, finish: (outcome: Outcome) => void): void {
    this.#listener.commandCame();
    this.#attempt(() => {
      const abort = new AbortController();
      const outcome = runCommand(command, this.#tools, abort.signal);
      const problem = outcome instanceof Promise ? undefined : outcome.problem;
      if (!isHarmless(command)) this.#listener.commandGiven(describeCommand(command), problem);
      if (command.verb === 'resume') this.#hasSuspended = false;
      if (outcome instanceof Promise) this.#wait({ command, abort }, outcome, finish);
      else finish(outcome);
    }, command);
  }

  #wait(running: Running, outcome: Promise<Outcome>, finish: (outcome: Outcome) => void): void {
    this.#running = running;
    const settle = (answer: () => void) => {
      // The command was cancelled meanwhile.
      if (this.#running !== running) return;
      this.#running = undefined;
      answer();
      this.#listener.commandSettled();
    };
    outcome.then(
      (done) =>
        settle(() => {
          if (running.command.verb === 'suspend') this.#hasSuspended = true;
          finish(done);
        }),
      (error: unknown) => settle(() => this.#fail(error, running.command)),
    );
  }

  #attempt(work: () => void, command?: Command): void {
    try {
      work();
    } catch (error) {
      if (error instanceof ProtocolViolationError) throw error;
      this.#fail(error, command);
    }
  }

  /** Tells the client the error, and skips what depends on the command. */
  #fail(error: unknown, command: Command | undefined): void {
    const { compatibility } = this.#tools.view.config.admin;
    const fields =
      compatibility === 'pgbouncer' ? pgbouncerFieldsOf(error, this.#text) : errorFieldsOf(error);
    if (fields.code === SqlState.internalError)
      this.#listener.commandFailed(command === undefined ? '' : describeCommand(command), error);
    writeError(this.#writer, fields);
    if (this.#query === undefined) this.#isSkipping = true;
    else this.#query = [];
  }

  // ---- cancelling -------------------------------------------------------------------------------------------------

  /** Ends the client's wait with an error. */
  cancel(): void {
    const running = this.#running;
    if (running === undefined) return;
    this.#stopWaiting();
    const what = describeCommand(running.command);
    const message = this.#undo(running.command)
      ? `${what} was cancelled, and undone`
      : `waiting for ${what} was cancelled; what it began goes on`;
    this.#fail(new ConsoleError(SqlState.queryCanceled, message), running.command);
    this.#listener.commandSettled();
  }

  /** The client has disconnected. */
  leave(): void {
    const isSuspended = this.#hasSuspended || this.#running?.command.verb === 'suspend';
    this.#stopWaiting();
    this.#hasSuspended = false;
    const { view, controls } = this.#tools;
    if (isSuspended && view.state === 'suspended') controls.resume(undefined);
  }

  #stopWaiting(): void {
    const running = this.#running;
    this.#running = undefined;
    running?.abort.abort(
      new ConsoleError(SqlState.queryCanceled, 'the client no longer waits for the answer'),
    );
  }

  /** Cancelling PAUSE or SUSPEND resumes the pooler. Other commands can't be undone: false. */
  #undo(command: Command): boolean {
    if (command.verb !== 'pause' && command.verb !== 'suspend') return false;
    this.#tools.controls.resume(command.verb === 'pause' ? command.database : undefined);
    return true;
  }
}

/** Only the scanner decides whether a message is in pieces, but one within the limit never is. */
function expectShort(message: MessageScanner): void {
  if (message.size > longestMessage)
    throw new ConsoleError(
      SqlState.programLimitExceeded,
      `${frontendName(message.type)} has ${message.size} bytes; the console takes up to ${longestMessage}`,
    );
}

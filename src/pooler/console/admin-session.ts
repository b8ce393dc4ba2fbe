/**
 * A connected console client: takes its bytes, and sends the answers.
 *
 * Bytes that arrive while a command waits, or while the client does not read, are held until that is over. Disconnecting ends
 * the wait.
 */

import type { Transport, TransportListener } from '../../net/transport.js';
import { systemClock } from '../../runtime/system.js';
import { type ErrorFields, writeError } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Frontend } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { SqlState } from '../../wire/sql-states.js';
import type { ConfigError } from '../config/config-problems.js';
import { ConsoleDialogue, consoleRules } from './console-dialogue.js';
import type { ConsoleTools } from './run-command.js';

/** Callbacks of a console session. */
export interface AdminKeeper {
  /** The client has disconnected. Called exactly once. */
  consoleEnded(session: AdminSession): void;
  /** A command of any kind was received. */
  commandCame(): void;
  /** A permitted command that changes something was given; for the log. `problem`: why its setting is held. */
  commandGiven(session: AdminSession, command: string, problem: ConfigError | undefined): void;
  /** A command failed with an internal error; the client was told no details. */
  commandFailed(session: AdminSession, command: string, error: unknown): void;
}

/** Limit of held bytes; more are left in the socket. */
const mostHeld = 65_536;
/** Limit of unsent bytes; beyond it they are sent, and other clients are served before this one goes on. */
const mostUnsent = 65_536;
/** Limit in milliseconds of work on commands before other clients are served. */
const mostMs = 0.5;
/** The answer to a command, and ReadyForQuery. */
const stepsOfAnswer = 2;

export class AdminSession implements TransportListener {
  readonly transport: Transport;
  readonly tools: ConsoleTools;
  readonly #keeper: AdminKeeper;
  readonly #scanner = new MessageScanner(consoleRules);
  readonly #writer = new MessageWriter();
  readonly #dialogue: ConsoleDialogue;
  /** The client does not read as fast as it asks. */
  #isDraining = false;
  /** Other clients are served before this one goes on. */
  #isResting = false;
  /** When other clients are to be served. */
  #endsAt = 0;
  readonly #now: () => number;
  #held: Buffer | undefined;
  #isReadingPaused = false;
  /** No more input will arrive. */
  #hasInputEnded = false;
  #isEnding = false;

  /** `now`: the time in milliseconds. */
  constructor(
    transport: Transport,
    tools: ConsoleTools,
    keeper: AdminKeeper,
    now: () => number = () => systemClock.now(),
  ) {
    this.#now = now;
    this.transport = transport;
    this.tools = tools;
    this.#keeper = keeper;
    this.#dialogue = new ConsoleDialogue(tools, this.#writer, {
      commandCame: () => keeper.commandCame(),
      commandGiven: (command, problem) => keeper.commandGiven(this, command, problem),
      commandFailed: (command, error) => keeper.commandFailed(this, command, error),
      // Also when its time is over: what the command has done may be the end of this session.
      commandSettled: () => this.#goOn(stepsOfAnswer),
    });
    transport.listener = this;
  }

  /** A command waits for something. */
  get isRunning(): boolean {
    return this.#dialogue.isRunning;
  }

  /** Bytes held while a command waits. */
  get heldBytes(): number {
    return this.#held?.length ?? 0;
  }

  // ---- from the client --------------------------------------------------------------------------------------------

  bytesCame(source: Buffer, start: number, end: number): void {
    if (this.#isEnding) return;
    if (this.#isBusy) {
      this.#hold(source.subarray(start, end));
      return;
    }
    this.#scanner.push(source, start, end);
    this.#portionBegins();
    this.#work();
  }

  drained(): void {
    if (!this.#isDraining) return;
    this.#isDraining = false;
    this.#portionBegins();
    this.#goOn();
  }

  ended(): void {
    this.#hasInputEnded = true;
    // A client that still reads gets its answers, as far as no command has to wait.
    if (this.#dialogue.isRunning || !this.#isBusy) this.end();
  }

  closed(): void {
    this.#isEnding = true;
    this.#leave();
    this.#keeper.consoleEnded(this);
  }

  /** A cancel request for the running command. Without one, nothing happens. */
  cancel(): void {
    this.#dialogue.cancel();
  }

  /** Ends the session, after the error if there is one. */
  end(error?: ErrorFields): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#leave();
    if (error !== undefined) writeError(this.#writer, error);
    this.#send();
    this.transport.end();
  }

  /** As `end()`, and closes the connection at once, even if it is ending already. */
  kill(error: ErrorFields): void {
    this.end(error);
    this.transport.endAtOnce();
  }

  // ---- commands in order ------------------------------------------------------------------------------------------

  get #isBusy(): boolean {
    return this.#dialogue.isRunning || this.#isDraining || this.#isResting;
  }

  #portionBegins(): void {
    this.#endsAt = this.#now() + mostMs;
  }

  get #isPortionOver(): boolean {
    return this.#now() >= this.#endsAt;
  }

  /** Handles everything that is possible now, and holds the rest. So many steps are taken in any case. */
  #work(least = 0): void {
    let steps = 0;
    try {
      while (this.#step()) {
        const isMuch = this.#writer.length > mostUnsent || (++steps >= least && this.#isPortionOver);
        if (isMuch && !this.#dialogue.isRunning) this.#rest();
      }
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      this.end({ severity: 'FATAL', code: SqlState.protocolViolation, message: error.message });
    }
    if (this.#isEnding) return;
    if (this.#isBusy) this.#hold(this.#scanner.takeRest());
    this.#send();
    if (this.#hasInputEnded && !this.#isBusy) this.end();
  }

  /** False when there is nothing to do, or nothing can be done. */
  #step(): boolean {
    if (this.#isEnding || this.#isBusy) return false;
    if (this.#dialogue.hasMore) {
      this.#dialogue.goOn();
      return true;
    }
    if (!this.#scanner.next()) return false;
    // The rest of an overlong message follows in pieces.
    if (!this.#scanner.isFirst) return true;
    if (this.#scanner.type === Frontend.terminate) this.end();
    else this.#dialogue.handle(this.#scanner);
    return true;
  }

  /** The session is no longer busy. */
  #goOn(least = 0): void {
    if (this.#isEnding || this.#isBusy) return;
    const held = this.#held;
    this.#held = undefined;
    if (this.#isReadingPaused) {
      this.#isReadingPaused = false;
      this.transport.resumeReading();
    }
    if (held !== undefined) this.#scanner.push(held);
    this.#work(least);
  }

  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#held = this.#held === undefined ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes]);
    if (this.#held.length <= mostHeld || this.#isReadingPaused) return;
    this.#isReadingPaused = true;
    this.transport.pauseReading();
  }

  /** Pauses, so that neither a long list of commands nor a long result blocks other clients. */
  #rest(): void {
    if (this.#isEnding) return;
    this.#send();
    if (this.#isResting) return;
    this.#isResting = true;
    setImmediate(() => {
      this.#isResting = false;
      this.#portionBegins();
      this.#goOn();
    });
  }

  #send(): void {
    const writer = this.#writer;
    if (writer.length === 0) return;
    if (!this.transport.send(writer.buffer, 0, writer.length)) this.#isDraining = true;
    writer.clear();
  }

  #leave(): void {
    this.#held = undefined;
    this.#dialogue.leave();
  }
}

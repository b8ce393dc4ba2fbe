/**
 * A client at the console, from the moment it was let in: takes its bytes, and sends the answers.
 *
 * What comes while a command waits for something, or while the client does not read, is held until that is over. A client
 * that goes away waits no more.
 */

import type { Transport, TransportListener } from '../../net/transport.js';
import { type ErrorFields, writeError } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Frontend } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { SqlState } from '../../wire/sql-states.js';
import { ConsoleDialogue, consoleRules } from './console-dialogue.js';
import type { ConsoleTools } from './run-command.js';

/** What a session tells whoever keeps it. */
export interface AdminKeeper {
  /** Gone for good; exactly once. */
  consoleEnded(session: AdminSession): void;
  /** Of whatever kind. */
  commandCame(): void;
  /** Someone has something changed, and may do so: for the log. */
  commandGiven(session: AdminSession, command: string): void;
  /** A command failed in a way that is not the client's fault, who was told no more than that. */
  commandFailed(session: AdminSession, command: string, error: unknown): void;
}

/** What is held beyond this stays with the client. */
const mostHeld = 65_536;
/** What is written beyond this is sent, and others get their turn, before anything else is done. */
const mostUnsent = 65_536;

export class AdminSession implements TransportListener {
  readonly transport: Transport;
  readonly tools: ConsoleTools;
  readonly #keeper: AdminKeeper;
  readonly #scanner = new MessageScanner(consoleRules);
  readonly #writer = new MessageWriter();
  readonly #dialogue: ConsoleDialogue;
  /** The client does not read as fast as it asks. */
  #isDraining = false;
  /** Others have their turn. */
  #isResting = false;
  #held: Buffer | undefined;
  #isReadingPaused = false;
  /** Nothing more will come. */
  #hasInputEnded = false;
  #isEnding = false;

  constructor(transport: Transport, tools: ConsoleTools, keeper: AdminKeeper) {
    this.transport = transport;
    this.tools = tools;
    this.#keeper = keeper;
    this.#dialogue = new ConsoleDialogue(tools, this.#writer, {
      commandCame: () => keeper.commandCame(),
      commandGiven: (command) => keeper.commandGiven(this, command),
      commandFailed: (command, error) => keeper.commandFailed(this, command, error),
      commandSettled: () => this.#goOn(),
    });
    transport.listener = this;
  }

  /** A command of it waits for something. */
  get isRunning(): boolean {
    return this.#dialogue.isRunning;
  }

  /** Bytes that wait for that. */
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
    this.#work();
  }

  drained(): void {
    if (!this.#isDraining) return;
    this.#isDraining = false;
    this.#goOn();
  }

  ended(): void {
    this.#hasInputEnded = true;
    // Whoever still reads gets what it asked for, as far as nothing has to be waited for.
    if (this.#dialogue.isRunning || !this.#isBusy) this.end();
  }

  closed(): void {
    this.#isEnding = true;
    this.#leave();
    this.#keeper.consoleEnded(this);
  }

  /** The client asked on another connection to have its command ended. Nothing happens where none waits. */
  cancel(): void {
    this.#dialogue.cancel();
  }

  /** Says goodbye; with an error, that first. */
  end(error?: ErrorFields): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#leave();
    if (error !== undefined) writeError(this.#writer, error);
    this.#send();
    this.transport.end();
  }

  /** As `end()`, and the connection is closed at once, also one that is ending already. */
  kill(error: ErrorFields): void {
    this.end(error);
    this.transport.endAtOnce();
  }

  // ---- one after the other ----------------------------------------------------------------------------------------

  get #isBusy(): boolean {
    return this.#dialogue.isRunning || this.#isDraining || this.#isResting;
  }

  /** Does all that can be done now, and holds the rest. */
  #work(): void {
    try {
      while (this.#step()) if (this.#writer.length > mostUnsent) this.#rest();
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
    // The rest of a message that was too long follows in pieces.
    if (!this.#scanner.isFirst) return true;
    if (this.#scanner.type === Frontend.terminate) this.end();
    else this.#dialogue.handle(this.#scanner);
    return true;
  }

  /** What it was busy with is over. */
  #goOn(): void {
    if (this.#isEnding || this.#isBusy) return;
    const held = this.#held;
    this.#held = undefined;
    if (this.#isReadingPaused) {
      this.#isReadingPaused = false;
      this.transport.resumeReading();
    }
    if (held !== undefined) this.#scanner.push(held);
    this.#work();
  }

  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#held = this.#held === undefined ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes]);
    if (this.#held.length <= mostHeld || this.#isReadingPaused) return;
    this.#isReadingPaused = true;
    this.transport.pauseReading();
  }

  /** A client may ask for more than can be answered in no time. */
  #rest(): void {
    this.#send();
    this.#isResting = true;
    setImmediate(() => {
      this.#isResting = false;
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

/** A server connection for replication: what comes is passed on message by message, and nothing is owed or made up. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { terminate } from '../../wire/fixed-messages.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Backend as From } from '../../wire/message-types.js';
import { backendRules } from '../../wire/scan-rules.js';
import { Backend, type BackendParts } from './backend.js';
import { isFatal, readErrorHead } from './error-head.js';
import { Outgoing } from './outgoing.js';
import { Asked } from './reply-queue.js';

const rules = backendRules({ error: { wholeUpTo: 16_384, head: 4_096 } });

/** The client that replicates. */
export interface ReplicationUser {
  /** Bytes for the client. False: the connection stops reading until `resume()`. */
  takeAnswer(answer: Outgoing): boolean;
  /** The connection accepts more bytes after it had refused them. */
  backendDrained(): void;
  /** The connection has ended. `fatal`: the server's last error; `isTold`: it was passed to `takeAnswer()`. */
  backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void;
}

export class ReplicationBackend extends Backend {
  client: ReplicationUser | undefined;
  /** Resolves when its socket is closed. */
  readonly gone: Promise<void>;
  readonly #messages = new MessageScanner(rules);
  #resolveGone!: () => void;
  /** Bytes for the client. */
  readonly #toClient = new Outgoing();
  #fatal: ErrorFields | undefined;
  /** Startup parameters of the client that it was opened for. */
  readonly #startup: ReadonlyMap<string, string>;
  #isClaimed = false;
  #isInside = false;
  #waits = false;
  #hasEnded = false;
  #hasClosed = false;

  constructor(parts: BackendParts, startup: ReadonlyMap<string, string>) {
    super(parts);
    this.#startup = startup;
    this.gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
    // Never at rest: no other client may have it, and a cancel request always has something to hit.
    this.replies.push(Asked.query);
  }

  override get hasClient(): boolean {
    return this.client !== undefined;
  }

  /** For all but its own client it is no usable connection. */
  override get isLost(): boolean {
    return this.#hasEnded || !this.#isClaimed;
  }

  /** Its own client has it from now on. False for another one. */
  claim(startup: ReadonlyMap<string, string> | undefined): boolean {
    if (startup === this.#startup) this.#isClaimed = true;
    return this.#isClaimed;
  }

  override get isGone(): boolean {
    return this.#hasClosed;
  }

  override get isInsideAnswer(): boolean {
    return this.#isInside;
  }

  override get isHeldUp(): boolean {
    return this.#waits;
  }

  override resume(): void {
    if (!this.#waits) return;
    this.#waits = false;
    this.transport.resumeReading();
  }

  /** Its client leaves. */
  close(): void {
    this.client = undefined;
    this.resume();
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.transport.send(terminate, 0, terminate.length);
    this.transport.end();
  }

  override bytesCame(source: Buffer, start: number, end: number): void {
    const { client } = this;
    const toClient = this.#toClient;
    const scanner = this.#messages;
    let violation: ProtocolViolationError | undefined;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst && scanner.type === From.error) {
          const error = readErrorHead(scanner.source, scanner.start, scanner.end);
          if (isFatal(error)) this.#fatal = error;
        }
        toClient.add(scanner.source, scanner.start, scanner.end);
        this.#isInside = !scanner.isLast;
      }
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      violation = error;
    }
    if (client === undefined) toClient.clear();
    else if (!toClient.isEmpty && !client.takeAnswer(toClient) && !this.#waits) {
      this.#waits = true;
      this.transport.pauseReading();
    }
    if (violation === undefined) return;
    this.transport.destroy(violation);
    this.#end(violation);
  }

  override drained(): void {
    this.client?.backendDrained();
  }

  override ended(): void {
    this.transport.destroy();
    this.#end(new Error('The server closed the connection.'));
  }

  override closed(error: Error | undefined): void {
    this.#hasClosed = true;
    const reason = error ?? new Error('The server closed the connection.');
    this.#end(reason);
    // A caretaker that closes the connection waits for this.
    const { user } = this;
    this.user = undefined;
    user?.backendLost(reason, undefined, false);
    this.#resolveGone();
  }

  #end(reason: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { client } = this;
    this.client = undefined;
    client?.backendLost(reason, this.#fatal, this.#fatal !== undefined);
  }
}

/** A server connection for replication: what comes is passed on message by message, and nothing is owed or made up. */
import { ProtocolViolationError } from '../../wire/errors.js';
import { terminate } from '../../wire/fixed-messages.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Backend as From } from '../../wire/message-types.js';
import { backendRules } from '../../wire/scan-rules.js';
import { Backend, type BackendParts } from './backend.js';
import { isFatal, readErrorHead } from './error-head.js';
import { Asked } from './reply-queue.js';

const rules = backendRules({ error: { wholeUpTo: 16_384, head: 4_096 } });

export class ReplicationBackend extends Backend {
  /** Resolves when its socket is closed. */
  readonly gone: Promise<void>;
  readonly #messages = new MessageScanner(rules);
  #resolveGone!: () => void;
  #isInside = false;
  #waits = false;
  #hasEnded = false;
  #hasClosed = false;

  constructor(parts: BackendParts) {
    super(parts);
    this.gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
    // It is never at rest: no other client may have it, and a cancel request always has something to hit.
    this.replies.push(Asked.query);
  }

  override get isLost(): boolean {
    return this.#hasEnded;
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
    this.user = undefined;
    this.resume();
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.transport.send(terminate, 0, terminate.length);
    this.transport.end();
  }

  override bytesCame(source: Buffer, start: number, end: number): void {
    const { toClient, user } = this;
    const scanner = this.#messages;
    let violation: ProtocolViolationError | undefined;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst && scanner.type === From.error) {
          const error = readErrorHead(scanner.source, scanner.start, scanner.end);
          if (isFatal(error)) this.lastFatal = error;
        }
        toClient.add(scanner.source, scanner.start, scanner.end);
        this.#isInside = !scanner.isLast;
      }
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      violation = error;
    }
    if (user === undefined) toClient.clear();
    else if (!toClient.isEmpty && !user.takeAnswer(toClient) && !this.#waits) {
      this.#waits = true;
      this.transport.pauseReading();
    }
    if (violation === undefined) return;
    this.transport.destroy(violation);
    this.#end(violation);
  }

  override ended(): void {
    this.transport.destroy();
    this.#end(new Error('The server closed the connection.'));
  }

  override closed(error: Error | undefined): void {
    this.#hasClosed = true;
    this.#end(error ?? new Error('The server closed the connection.'));
    this.#resolveGone();
  }

  #end(reason: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { user } = this;
    this.user = undefined;
    user?.backendLost(reason, this.lastFatal, this.lastFatal !== undefined);
  }
}

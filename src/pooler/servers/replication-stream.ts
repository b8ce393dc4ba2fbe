/** The bytes of a server connection for replication: passed on message by message. No answer is owed or made up. */
import type { Transport, TransportListener } from '../../net/transport.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { terminate } from '../../wire/fixed-messages.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Backend as From } from '../../wire/message-types.js';
import { backendRules } from '../../wire/scan-rules.js';
import { isFatal, readErrorHead } from './error-head.js';
import { Outgoing } from './outgoing.js';

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

export class ReplicationStream implements TransportListener {
  client: ReplicationUser | undefined;
  /** Resolves when the socket is closed. */
  readonly gone: Promise<void>;
  /** Bytes for the next `flush()`. */
  readonly toServer = new Outgoing();
  readonly #transport: Transport;
  readonly #closed: (error: Error) => void;
  readonly #messages = new MessageScanner(rules);
  #resolveGone!: () => void;
  /** Bytes for the client. */
  readonly #toClient = new Outgoing();
  #fatal: ErrorFields | undefined;
  /** Startup parameters of the client that the connection was opened for. */
  readonly #startup: ReadonlyMap<string, string>;
  #isClaimed = false;
  #isInside = false;
  #waits = false;
  #hasEnded = false;

  /** `closed`: called after the client was told that the socket is closed. */
  constructor(transport: Transport, startup: ReadonlyMap<string, string>, closed: (error: Error) => void) {
    this.#transport = transport;
    this.#startup = startup;
    this.#closed = closed;
    this.gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
    transport.listener = this;
  }

  /** The client that the connection was opened for has it, and it has not ended. */
  get isUsable(): boolean {
    return this.#isClaimed && !this.#hasEnded;
  }

  /** Gives the connection to the client with these startup parameters, if it was opened for that client. */
  claim(startup: ReadonlyMap<string, string> | undefined): void {
    if (startup === this.#startup) this.#isClaimed = true;
  }

  /** The client has received a part of a message. */
  get isInsideAnswer(): boolean {
    return this.#isInside;
  }

  /** Reading is paused until the client has read more. */
  get isHeldUp(): boolean {
    return this.#waits;
  }

  resume(): void {
    if (!this.#waits) return;
    this.#waits = false;
    this.#transport.resumeReading();
  }

  /** Sends the content of `toServer`; false to hold on until `backendDrained()`. */
  flush(): boolean {
    return this.toServer.sendTo(this.#transport);
  }

  /** Ends the connection: the client has left. */
  close(): void {
    this.client = undefined;
    this.resume();
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#transport.send(terminate, 0, terminate.length);
    this.#transport.end();
  }

  bytesCame(source: Buffer, start: number, end: number): void {
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
      this.#transport.pauseReading();
    }
    if (violation === undefined) return;
    this.#transport.destroy(violation);
    this.#end(violation);
  }

  drained(): void {
    this.client?.backendDrained();
  }

  ended(): void {
    this.#transport.destroy();
    this.#end(new Error('The server closed the connection.'));
  }

  closed(error: Error | undefined): void {
    const reason = error ?? new Error('The server closed the connection.');
    this.#end(reason);
    this.#closed(reason);
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

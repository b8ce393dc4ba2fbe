/** Conversation with a client before it is accepted: one packet or message after the other. */

import type { Transport, TransportListener } from '../../../net/transport.js';
import { ProtocolViolationError } from '../../../wire/errors.js';
import { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend } from '../../../wire/message-types.js';
import { authenticationRules, type ScanRules, startupRules } from '../../../wire/scan-rules.js';
import { repeatedStartup } from '../refusal.js';
import type { LoginScope } from './login-scope.js';

/** The client has disconnected or sent a Terminate. It is not answered. */
export class ClientGoneError extends Error {}

interface Reader {
  /** Rules for the message that is awaited; undefined for any bytes. */
  readonly rules: ScanRules | undefined;
  resolve(message: Buffer): void;
  reject(error: Error): void;
}

const nothing = Buffer.alloc(0);
/** Limit of bytes kept of a client that is not accepted yet. More are left in the socket. */
const mostUnread = 16_384;

export class StartupTalk implements TransportListener {
  readonly transport: Transport;
  readonly #scope: LoginScope;
  readonly #scanner = new MessageScanner(startupRules);
  #unread: Buffer = nothing;
  #reader: Reader | undefined;
  #hasEnded = false;

  /** Listens from here on, and ends the login when the client disconnects. `readAhead`: bytes that were read before. */
  constructor(transport: Transport, scope: LoginScope, readAhead: Uint8Array = nothing) {
    this.transport = transport;
    this.#scope = scope;
    this.#unread = readAhead.length === 0 ? nothing : Buffer.from(readAhead);
    transport.listener = this;
    transport.start();
  }

  /** Bytes behind the last message that was read. */
  get unread(): Buffer {
    return this.#unread;
  }

  /**
   * True if the next bytes are a Terminate. The first byte tells: it is no type of a login message, and a startup packet
   * that begins with it would be too long.
   */
  get hasTerminated(): boolean {
    return this.#unread[0] === Frontend.terminate && this.#scanner.isBetweenMessages;
  }

  /** Resolves with the unread bytes as soon as there are any. They stay unread. */
  firstBytes(): Buffer | Promise<Buffer> {
    return this.#read(undefined);
  }

  /**
   * The next packet without a type; a promise only where it is not there yet. Throws or rejects with a ProtocolViolationError or
   * a ClientGoneError.
   */
  packet(): Buffer | Promise<Buffer> {
    return this.#read(startupRules);
  }

  /** The next message with a password in it. A packet without a type is refused: the startup is over. */
  passwordMessage(): Buffer | Promise<Buffer> {
    return this.#read(authenticationRules);
  }

  send(message: Buffer): void {
    if (message.length > 0) this.transport.send(message, 0, message.length);
  }

  #read(rules: ScanRules | undefined): Buffer | Promise<Buffer> {
    const message = this.#next(rules);
    if (message !== undefined) {
      this.#readOn();
      return message;
    }
    return new Promise((resolve, reject) => {
      this.#reader = { rules, resolve, reject };
      this.#deliver();
    });
  }

  /**
   * Resolves the pending read, if its message is complete. Reading goes on while none is pending, so that a client that
   * leaves while its login waits is noticed.
   */
  #deliver(): void {
    const reader = this.#reader;
    try {
      const message = reader && this.#next(reader.rules);
      if (message !== undefined) {
        this.#reader = undefined;
        reader?.resolve(message);
      }
    } catch (error) {
      this.#fail(error as Error);
    }
    if (this.#reader !== undefined && this.#hasEnded) this.#fail(new ClientGoneError());
    else this.#readOn();
  }

  #readOn(): void {
    if (this.#unread.length > mostUnread) this.transport.pauseReading();
    else this.transport.resumeReading();
  }

  #next(rules: ScanRules | undefined): Buffer | undefined {
    if (this.hasTerminated) throw new ClientGoneError();
    if (rules === undefined) return this.#unread.length === 0 ? undefined : this.#unread;
    const scanner = this.#scanner;
    if (scanner.rules !== rules) scanner.use(rules);
    if (rules === authenticationRules && this.#unread[0] === 0 && scanner.isBetweenMessages)
      throw repeatedStartup();
    const came = this.#unread;
    scanner.push(came);
    this.#unread = nothing;
    if (!scanner.next()) return undefined;
    const { source, start, end, isWhole } = scanner;
    if (!isWhole) throw new ProtocolViolationError('A message came in pieces.');
    const found = source.subarray(start, end);
    // The scanner uses its own memory again.
    const message = source === came ? found : Buffer.from(found);
    this.#unread = scanner.takeRest();
    return message;
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    const came = Buffer.from(source.subarray(start, end));
    this.#unread = this.#unread.length === 0 ? came : Buffer.concat([this.#unread, came]);
    if (this.#reader === undefined && this.hasTerminated) this.#goneNow();
    else this.#deliver();
  }

  drained(): void {}

  ended(): void {
    this.#goneNow();
  }

  closed(): void {
    this.#goneNow();
  }

  #goneNow(): void {
    this.#hasEnded = true;
    const gone = new ClientGoneError();
    this.#fail(gone);
    this.#scope.end(gone);
  }

  #fail(error: Error): void {
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.reject(error);
  }
}

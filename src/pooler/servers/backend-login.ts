/** Login on an open transport: sends the startup packet, authenticates, and reads what the server reports until it is ready. */

import type { Transport, TransportListener } from '../../net/transport.js';
import { readErrorFields } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { backendName, Backend as From, StartupCode } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { backendRules } from '../../wire/scan-rules.js';
import { type BackendKey, readBackendKeyData, readParameterStatus } from '../../wire/session-messages.js';
import { writeStartup } from '../../wire/startup-packet.js';
import { BackendRefusedError, LoginEndedError } from '../errors.js';
import { ReportedSettings } from './reported-settings.js';

/** Answers the server's authentication requests. */
export interface Authenticator {
  /**
   * Answers an Authentication message with the bytes to send. The message's bytes are valid until this returns. Rejects when it
   * can't answer.
   */
  answer(source: Buffer, start: number, end: number): Promise<Buffer>;
  /** The server has accepted the login. */
  readonly isOver: boolean;
}

export interface LoginRequest {
  readonly transport: Transport;
  /** `user`, `database` and settings. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly authenticator: Authenticator;
  /** Limit on the bytes of parameters that the server reports. */
  readonly mostParameterBytes: number;
  /** Aborts the login. */
  readonly signal: AbortSignal;
}

export interface LoggedIn {
  readonly key: BackendKey | undefined;
  /** The settings that the server has reported. */
  readonly parameters: ReportedSettings;
}

/** A server waits for the answer to a question before it asks another; only a message that ends the login may come as well. */
const mostUnanswered = 8;
/** Limit per message. All login messages are short, and none is passed on. */
const longest = 65_536;
const read = [
  'authentication',
  'error',
  'notice',
  'parameterStatus',
  'backendKeyData',
  'readyForQuery',
  'negotiateProtocolVersion',
] as const;
const rules = backendRules(Object.fromEntries(read.map((name) => [name, { wholeUpTo: longest, longest }])));

/**
 * Resolves once the server is ready. Reading is then paused and the transport's listener is free. On failure the transport is
 * destroyed.
 */
export function logIn(request: LoginRequest): Promise<LoggedIn> {
  return new Promise((resolve, reject) => {
    new BackendLogin(request, resolve, reject).begin();
  });
}

class BackendLogin implements TransportListener {
  readonly #request: LoginRequest;
  readonly #succeed: (result: LoggedIn) => void;
  readonly #reject: (error: Error) => void;
  readonly #scanner = new MessageScanner(rules);
  readonly #parameters: ReportedSettings;
  #unanswered = 0;
  readonly #aborted = (): void => this.#fail(new LoginEndedError('it was given up'));
  #key: BackendKey | undefined;
  #isOver = false;
  /** Answers run one after the other, in the order of the questions. */
  #answers: Promise<void> = Promise.resolve();

  constructor(request: LoginRequest, succeed: (result: LoggedIn) => void, reject: (error: Error) => void) {
    this.#request = request;
    this.#parameters = new ReportedSettings(request.mostParameterBytes);
    this.#succeed = succeed;
    this.#reject = reject;
  }

  begin(): void {
    const { transport, parameters, signal } = this.#request;
    transport.listener = this;
    signal.addEventListener('abort', this.#aborted);
    if (signal.aborted) {
      this.#aborted();
      return;
    }
    const writer = new MessageWriter();
    writeStartup(writer, { version: StartupCode.version30, parameters });
    this.#send(writer.take());
    transport.start();
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    if (this.#isOver) return;
    try {
      this.#scanner.push(source, start, end);
      while (!this.#isOver && this.#scanner.next()) this.#read(this.#scanner);
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #read({ type, source, start, end }: MessageScanner): void {
    switch (type) {
      case From.authentication: {
        if (++this.#unanswered > mostUnanswered)
          throw new ProtocolViolationError(`The server asked ${mostUnanswered} questions in a row at login.`);
        // The bytes are valid for this call only, and earlier questions may still wait for their answers.
        const own = Buffer.from(source.subarray(start, end));
        this.#answers = this.#answers
          .then(() => this.#answer(own))
          .catch((error: Error) => this.#fail(error));
        return;
      }
      case From.parameterStatus: {
        const { name, value } = readParameterStatus(source, start, end);
        if (!this.#parameters.report(name, value))
          throw new ProtocolViolationError(
            `The server reports more settings than max_server_parameters_size allows: ${this.#parameters.size} bytes, and ${name}.`,
          );
        return;
      }
      case From.backendKeyData: {
        const key = readBackendKeyData(source, start, end);
        this.#key = { processId: key.processId, secretKey: Buffer.from(key.secretKey) };
        return;
      }
      case From.readyForQuery:
        // Bytes that arrive now are not lost: they wait until there is a listener.
        this.#request.transport.pauseReading();
        this.#answers.then(() => this.#finish());
        return;
      case From.error:
        this.#fail(new BackendRefusedError(readErrorFields(source, start, end)));
        return;
      case From.notice:
      case From.negotiateProtocolVersion:
        return;
      default:
        throw new ProtocolViolationError(`The server sent ${backendName(type)} while logging in.`);
    }
  }

  async #answer(question: Buffer): Promise<void> {
    this.#unanswered--;
    if (this.#isOver) return;
    const answer = await this.#request.authenticator.answer(question, 0, question.length);
    if (!this.#isOver) this.#send(answer);
  }

  /** ReadyForQuery counts only if authentication has completed first. */
  #finish(): void {
    if (this.#isOver) return;
    if (!this.#request.authenticator.isOver || this.#scanner.unread > 0) {
      this.#fail(
        new ProtocolViolationError('The server is ready before the login is over, or says too much.'),
      );
      return;
    }
    this.#end();
    this.#succeed({ key: this.#key, parameters: this.#parameters });
  }

  #send(message: Buffer): void {
    if (message.length > 0) this.#request.transport.send(message, 0, message.length);
  }

  drained(): void {}

  ended(): void {
    this.#fail(new LoginEndedError('the server closed the connection'));
  }

  closed(error: Error | undefined): void {
    this.#fail(new LoginEndedError(error?.message ?? 'the server closed the connection'));
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#end();
    this.#request.transport.destroy();
    this.#reject(error);
  }

  #end(): void {
    this.#isOver = true;
    this.#request.signal.removeEventListener('abort', this.#aborted);
  }
}

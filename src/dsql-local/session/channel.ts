/** A client's connection after TLS: its messages one by one, and what is sent to it. */
import type { Transport, TransportListener } from '../../net/transport.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Frontend } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { authenticationRules, frontendRules, type ScanRules, startupRules } from '../../wire/scan-rules.js';

export interface Message {
  /** 0 for the startup packet. */
  readonly type: number;
  /** The whole message, header included. */
  readonly bytes: Buffer;
}

/** DSQL closes the connection of a client that sends a longer message, without a word. */
const largestMessage = 10 * 1_048_576;
/** A client that sends faster than it is served is not read from beyond this. */
const largestQueue = 1_048_576;
/** Answers go out in pieces of at least this size, but for the last. */
const sentTogether = 16_384;

const { password: _, ...types } = Frontend;
const rule = { wholeUpTo: largestMessage, longest: largestMessage };
const clientRules = frontendRules(
  Object.fromEntries(
    Object.keys(types).map((name) => [
      name,
      ['flush', 'sync', 'terminate', 'copyDone'].includes(name) ? {} : rule,
    ]),
  ),
);

export class Channel implements TransportListener {
  readonly transport: Transport;
  /** The client has taken what was sent. */
  onDrained: () => void = () => {};
  readonly #scanner: MessageScanner;
  readonly #queue: Message[] = [];
  readonly #unsent = new MessageWriter();
  #queued = 0;
  #isPaused = false;
  #isOver = false;
  #wake: (() => void) | undefined;
  #hasLeft = false;
  readonly #leftListeners: (() => void)[] = [];

  constructor(transport: Transport, rules: ScanRules = startupRules) {
    this.transport = transport;
    this.#scanner = new MessageScanner(rules);
    transport.listener = this;
    transport.start();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  expectPassword(): void {
    this.#expect(authenticationRules);
  }

  expectMessages(): void {
    this.#expect(clientRules);
  }

  /** The client has left, or sends no more and no message of it is in the queue. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Calls back when `hasLeft` becomes true. */
  onLeft(listener: () => void): void {
    this.#leftListeners.push(listener);
  }

  /** Type of the next message, where one has come. */
  get nextType(): number | undefined {
    return this.#queue[0]?.type;
  }

  /** The next message; undefined when the client has left, or `isOver` was first. */
  async next(isOver?: Promise<unknown>): Promise<Message | undefined> {
    this.#flush();
    let isWanted = true;
    while (this.#queue.length === 0) {
      if (this.#isOver || !isWanted) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        isOver?.then(() => {
          isWanted = false;
          resolve();
        });
      });
    }
    if (!isWanted) return undefined;
    const message = this.#queue.shift() as Message;
    this.#queued -= message.bytes.length;
    if (this.#isPaused && this.#queued <= largestQueue) {
      this.#isPaused = false;
      this.transport.resumeReading();
    }
    return message;
  }

  /**
   * Sends bytes with others, at the latest when the next message is asked for. False: the client does not keep up; wait for
   * `onDrained`.
   */
  send(source: Buffer, start = 0, end: number = source.length): boolean {
    this.#unsent.append(source, start, end);
    return this.#unsent.length < sentTogether || this.#flush();
  }

  end(): void {
    this.#flush();
    this.transport.end();
  }

  destroy(): void {
    this.transport.destroy();
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    const scanner = this.#scanner;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) this.#came(scanner);
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      this.#over();
      this.transport.end();
    }
  }

  drained(): void {
    this.onDrained();
  }

  ended(): void {
    this.#over();
    if (this.#queue.length === 0) this.#left();
  }

  closed(): void {
    this.#queue.length = 0;
    this.#over();
    this.#left();
  }

  #left(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    for (const listener of this.#leftListeners) listener();
  }

  /** Bytes that came before they were asked for have been read by other rules. */
  #expect(rules: ScanRules): void {
    if (!this.#scanner.isBetweenMessages || this.#queue.length > 0)
      throw new ProtocolViolationError('The client sent a message before it was asked for it.');
    this.#scanner.use(rules);
  }

  #came({ type, source, start, end }: MessageScanner): void {
    this.#queue.push({ type, bytes: Buffer.from(source.subarray(start, end)) });
    this.#queued += end - start;
    if (this.#queued > largestQueue && !this.#isPaused) {
      this.#isPaused = true;
      this.transport.pauseReading();
    }
    this.#wakeUp();
  }

  #flush(): boolean {
    const { length, buffer } = this.#unsent;
    if (length === 0) return true;
    const isTaken = this.transport.send(buffer, 0, length);
    this.#unsent.clear();
    return isTaken;
  }

  #over(): void {
    this.#isOver = true;
    this.#wakeUp();
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

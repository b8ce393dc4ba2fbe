/** A socket through Node's streams: for TLS, and for plain sockets where the layer below is not available. */
import type { Socket } from 'node:net';
import type { SocketEnds } from './socket-ends.js';
import { SocketEvents } from './socket-events.js';
import { fileNumberOf } from './socket-options.js';
import { SocketTransport } from './socket-transport.js';
import type { TlsDetails } from './transport.js';

/** TLS has sent nothing when it returns, so unsent bytes mean little; more than this number do. */
const muchUnsent = 65_536;

export class StreamTransport extends SocketTransport {
  readonly socket: Socket;
  readonly #events: SocketEvents;
  readonly #tls: TlsDetails | undefined;
  #isStarted = false;
  #isPaused = false;
  /** Came while reading was paused. */
  #unread: Buffer | undefined;
  #isDeliveryDue = false;
  /** The other side ended behind bytes that are not delivered yet. */
  #isEndDue = false;
  /** Something was left unsent by `send()`. */
  #isDrainDue = false;

  /** The socket allows half-open connections and has no reader yet. */
  constructor(socket: Socket, ends: SocketEnds, tls?: TlsDetails) {
    super(ends);
    this.socket = socket;
    this.#tls = tls;
    this.#events = new SocketEvents(socket, {
      failed: (error) => this.socketFailed(error),
      closed: () => this.socketClosed(),
    });
  }

  override get fileNumber(): number {
    return fileNumberOf(this.socket);
  }

  protected override closeSocket(): void {
    this.socket.destroy();
  }

  protected override giveSocketAway(): Socket {
    this.#events.stop();
    return this.socket;
  }

  override get tls(): TlsDetails | undefined {
    return this.#tls;
  }

  get unsent(): number {
    return this.isOver ? 0 : this.socket.writableLength;
  }

  protected override beginReading(): void {
    if (!this.#isStarted) {
      this.#isStarted = true;
      this.socket.on('data', this.#dataCame);
      this.socket.on('end', this.#endCame);
    }
    this.#readOn();
  }

  pauseReading(): void {
    this.#isPaused = true;
  }

  resumeReading(): void {
    this.#isPaused = false;
    this.#readOn();
  }

  send(source: Buffer, start: number, end: number): boolean {
    if (this.isOver || this.isEnding) return false;
    const { socket } = this;
    if (start < end) socket.write(copyOf(source, start, end), this.#written);
    const { writableLength } = socket;
    if (writableLength > 0) this.#isDrainDue = true;
    return writableLength <= muchUnsent;
  }

  #readOn(): void {
    if (!this.#isStarted || this.#isPaused || this.isOver) return;
    if (this.#unread === undefined) this.socket.resume();
    else if (!this.#isDeliveryDue) {
      this.#isDeliveryDue = true;
      process.nextTick(this.#deliverUnread);
    }
  }

  readonly #dataCame = (chunk: Buffer): void => {
    if (this.isOver || this.isEnding) return;
    if (this.#isPaused) {
      this.#unread = chunk;
      this.socket.pause();
    } else this.listener.bytesCame(chunk, 0, chunk.length);
  };

  readonly #deliverUnread = (): void => {
    this.#isDeliveryDue = false;
    const unread = this.#unread;
    if (unread === undefined || this.#isPaused || this.isOver || this.isEnding) return;
    this.#unread = undefined;
    this.listener.bytesCame(unread, 0, unread.length);
    if (this.#isEndDue) this.#endCame();
    this.#readOn();
  };

  readonly #endCame = (): void => {
    if (this.isOver || this.isEnding) return;
    this.#isEndDue = this.#unread !== undefined;
    if (!this.#isEndDue) this.listener.ended();
  };

  readonly #written = (error?: Error | null): void => {
    if (!this.#isDrainDue || error || this.socket.writableLength > 0 || this.isOver || this.isEnding) return;
    this.#isDrainDue = false;
    this.listener.drained();
  };

  protected override sayGoodbye(): void {
    this.#unread = undefined;
    this.#isPaused = false;
    this.beginReading();
    this.socket.end();
  }

  protected override letGo(): boolean {
    this.socket.off('data', this.#dataCame);
    this.socket.off('end', this.#endCame);
    this.socket.pause();
    return this.#unread === undefined && this.socket.readableLength === 0;
  }
}

/** The stream may keep the bytes for long. */
function copyOf(source: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start);
  source.copy(copy, 0, start, end);
  return copy;
}

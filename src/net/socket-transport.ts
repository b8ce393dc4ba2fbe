/**
 * The part that all transports over a socket share: how a connection ends, whoever ends it and in whatever state.
 *
 * open -> ending (`end()`: all is sent, then goodbye, and the other side's goodbye is waited for) -> over -> closed
 * open or ending -> ending (`endAtOnce()`: the same, without waiting) -> over -> closed
 * open -> over (`destroy()`, an error, both sides said goodbye) -> closed
 * open -> over (`release()`: the socket is somebody else's, and this transport is silent for good)
 */
import type { Socket } from 'node:net';
import { UnsentBytesError } from './errors.js';
import { silentListener } from './silent-listener.js';
import type { SocketEnds } from './socket-ends.js';
import type { TlsDetails, Transport, TransportListener } from './transport.js';

/** So long after `end()` the other side has to take what is left and to say goodbye too. */
const lingerMs = 5_000;
/** So long after `endAtOnce()` TLS, or a full socket, has to send what is left. */
const shortLingerMs = 50;

export abstract class SocketTransport implements Transport {
  listener: TransportListener = silentListener;
  /** For what concerns the connection and not its bytes: `setKeepAlive()`, `unref()` and the like. */
  readonly socket: Socket;
  readonly isUnix: boolean;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** Only `closed()` is told from here on. */
  protected isOver = false;
  protected isEnding = false;
  #error: Error | undefined;
  /** Closed before anybody listened: told at the start. */
  #isClosedUnheard = false;
  #lingering: NodeJS.Timeout | undefined;

  constructor(socket: Socket, ends: SocketEnds) {
    this.socket = socket;
    this.isUnix = ends.isUnix;
    this.remoteAddress = ends.remoteAddress;
    this.remotePort = ends.remotePort;
    this.localAddress = ends.localAddress;
    this.localPort = ends.localPort;
    socket.on('error', this.#errorCame);
    socket.on('close', this.#socketClosed);
  }

  get tls(): TlsDetails | undefined {
    return undefined;
  }

  start(): void {
    if (this.#isClosedUnheard) {
      this.#isClosedUnheard = false;
      process.nextTick(this.#tellClosed);
    } else if (!this.isOver) this.beginReading();
  }

  abstract pauseReading(): void;
  abstract resumeReading(): void;
  abstract send(source: Buffer, start: number, end: number): boolean;
  abstract get unsent(): number;
  protected abstract beginReading(): void;
  /** Says goodbye when all is sent, and reads on, so that the other side's goodbye is heard. */
  protected abstract sayGoodbye(): void;
  /** Stops reading and hears no more of the socket. Answers false where bytes were read that nobody has got. */
  protected abstract letGo(): boolean;

  end(): void {
    if (this.isEnding || this.isOver) return;
    this.isEnding = true;
    this.lingerAtMost(lingerMs);
    this.sayGoodbye();
  }

  endAtOnce(): void {
    this.end();
    if (this.isOver) return;
    clearTimeout(this.#lingering);
    this.#lingering = setTimeout(() => this.#giveUp(shortLingerMs), shortLingerMs).unref();
    // Bytes of the client are read until then: a socket that is closed with something unread is reset, and the client
    // may never see what it was told.
    setImmediate(() => {
      if (this.unsent === 0) this.destroy();
    });
  }

  destroy(error?: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#error ??= error;
    this.socket.destroy();
  }

  /**
   * Gives the socket away, to put TLS on it; nothing more is heard of this transport. Otherwise the connection is
   * destroyed, and `closed()` is told: `unread` if bytes were read that have not been delivered (whoever sent those did
   * not wait for the answer, and they must not be taken for what comes through TLS), `gone` if it is over or stuck.
   */
  release(): Socket | 'unread' | 'gone' {
    const { socket } = this;
    const canGo = !this.isOver && !this.isEnding && this.unsent === 0;
    if (!canGo || !this.letGo()) {
      this.destroy();
      return canGo ? 'unread' : 'gone';
    }
    this.isOver = true;
    this.listener = silentListener;
    socket.off('error', this.#errorCame);
    socket.off('close', this.#socketClosed);
    return socket;
  }

  /** The first error is the one that is told at the end. */
  protected noteError(error: Error): void {
    this.#error ??= error;
  }

  /** The connection has so much time left. */
  protected lingerAtMost(milliseconds: number): void {
    this.#lingering ??= setTimeout(() => this.#giveUp(milliseconds), milliseconds).unref();
  }

  #giveUp(waitedMs: number): void {
    const { unsent } = this;
    this.destroy(unsent > 0 ? new UnsentBytesError(unsent, waitedMs) : undefined);
  }

  readonly #errorCame = (error: Error): void => {
    this.isOver = true;
    this.#error ??= error;
  };

  readonly #socketClosed = (): void => {
    this.isOver = true;
    if (this.#lingering !== undefined) clearTimeout(this.#lingering);
    if (this.listener === silentListener) this.#isClosedUnheard = true;
    else this.#tellClosed();
  };

  readonly #tellClosed = (): void => {
    const { listener } = this;
    this.listener = silentListener;
    listener.closed(this.#error);
  };
}

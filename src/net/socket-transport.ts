/**
 * The common part of all transports over a socket: how a connection ends, from either side and in any state.
 *
 * open -> ending (`end()`: all is sent, then goodbye, and the other side's goodbye is waited for) -> over -> closed
 * open or ending -> ending (`endAtOnce()`: the same, without waiting) -> over -> closed
 * open -> over (`destroy()`, an error, both sides said goodbye) -> closed
 * open -> over (`release()`: the socket has another owner, and this transport is silent for good)
 */
import type { Socket } from 'node:net';
import { UnsentBytesError } from './errors.js';
import { silentListener } from './silent-listener.js';
import type { SocketEnds } from './socket-ends.js';
import type { TlsDetails, Transport, TransportListener } from './transport.js';

/** Time after `end()` in which the other side has to take the remaining bytes and say goodbye. */
const lingerMs = 5_000;
/** Time after `endAtOnce()` in which TLS, or a full socket, has to send the remaining bytes. */
const shortLingerMs = 50;

export abstract class SocketTransport implements Transport {
  listener: TransportListener = silentListener;
  readonly isUnix: boolean;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** Only `closed()` is called from here on. */
  protected isOver = false;
  protected isEnding = false;
  #error: Error | undefined;
  /** Closed before a listener was set: reported at the start. */
  #isClosedUnheard = false;
  #lingering: NodeJS.Timeout | undefined;
  #givenAway: Socket | undefined;

  constructor(ends: SocketEnds) {
    this.isUnix = ends.isUnix;
    this.remoteAddress = ends.remoteAddress;
    this.remotePort = ends.remotePort;
    this.localAddress = ends.localAddress;
    this.localPort = ends.localPort;
  }

  /** For settings of the connection, not its bytes: `setKeepAlive()`, `unref()` and the like. */
  abstract get socket(): Socket;
  /** -1 where it is not known, as with a closed socket. */
  abstract get fileNumber(): number;
  /** Closes the socket at once; `socketClosed()` follows. */
  protected abstract closeSocket(): void;

  get tls(): TlsDetails | undefined {
    return undefined;
  }

  start(): void {
    if (this.#isClosedUnheard) {
      this.#isClosedUnheard = false;
      process.nextTick(tellClosed, this);
    } else if (!this.isOver) this.beginReading();
  }

  abstract pauseReading(): void;
  abstract resumeReading(): void;
  abstract send(source: Buffer, start: number, end: number): boolean;
  abstract get unsent(): number;
  protected abstract beginReading(): void;
  /** Says goodbye when all bytes are sent, and reads on, to receive the other side's goodbye. */
  protected abstract sayGoodbye(): void;
  /** Stops reading. Returns false if bytes were read that were not delivered. */
  protected abstract letGo(): boolean;
  /** The socket for its next owner; nothing of it is heard from then on. */
  protected abstract giveSocketAway(): Socket;

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
    // Reads the client's bytes until then: a socket closed with unread bytes is reset, and the client may never see its
    // last message.
    setImmediate(() => {
      if (this.unsent === 0) this.destroy();
    });
  }

  destroy(error?: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#error ??= error;
    this.closeSocket();
  }

  /**
   * Gives the socket away, to put TLS on it; this transport is silent from then on. Otherwise the connection is
   * destroyed and `closed()` is called: `unread` if bytes were read that have not been delivered (the sender did not
   * wait for the answer, and they must not be taken for what comes through TLS), `gone` if it is over or stuck.
   */
  release(): Socket | 'unread' | 'gone' {
    const canGo = !this.isOver && !this.isEnding && this.unsent === 0;
    if (!canGo || !this.letGo()) {
      this.destroy();
      return canGo ? 'unread' : 'gone';
    }
    this.isOver = true;
    this.listener = silentListener;
    this.#givenAway = this.giveSocketAway();
    return this.#givenAway;
  }

  /** Closes at once, even after `release()`. */
  hangUp(): void {
    this.destroy();
    this.#givenAway?.destroy();
  }

  /** Keeps the first error, which is reported at the end. */
  protected noteError(error: Error): void {
    this.#error ??= error;
  }

  /** Limits the remaining time of the connection. */
  protected lingerAtMost(milliseconds: number): void {
    this.#lingering ??= setTimeout(() => this.#giveUp(milliseconds), milliseconds).unref();
  }

  #giveUp(waitedMs: number): void {
    const { unsent } = this;
    this.destroy(unsent > 0 ? new UnsentBytesError(unsent, waitedMs) : undefined);
  }

  protected socketFailed(error: Error): void {
    this.isOver = true;
    this.#error ??= error;
  }

  socketClosed(): void {
    this.isOver = true;
    if (this.#lingering !== undefined) clearTimeout(this.#lingering);
    if (this.listener === silentListener) this.#isClosedUnheard = true;
    else this.tellClosed();
  }

  tellClosed(): void {
    const { listener } = this;
    this.listener = silentListener;
    listener.closed(this.#error);
  }
}

function tellClosed(transport: SocketTransport): void {
  transport.tellClosed();
}

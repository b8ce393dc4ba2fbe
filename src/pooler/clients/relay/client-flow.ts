/**
 * Decides when to read from a client. Reading pauses while its messages wait for a server, while the server accepts no more,
 * and while the client does not read its answers.
 *
 * With the last two pauses, a client that writes everything before it reads would deadlock: the client can't write on, the
 * server can't write on, and so the server does not read on. To prevent that, the server's answers are still taken as long as
 * their size is limited.
 */
import type { Transport } from '../../../net/transport.js';

/** Reasons not to read from a client. */
export const Pause = {
  /** Messages are held until a server or an answer is available. */
  held: 1,
  /** The server accepts no more. */
  serverFull: 2,
  /** The client does not read its answers. */
  clientFull: 4,
  /** SUSPEND on the console. */
  suspended: 8,
  /** The client has used its share of this round of the event loop. */
  roundIsOver: 16,
} as const;
export type Pause = (typeof Pause)[keyof typeof Pause];

/** A client that sends less at once is never paused for its share. */
const largeChunk = 8_192;
/** Bytes of one client that are read before other clients are served. */
const mostInARound = 131_072;

export class ClientFlow {
  readonly #transport: Transport;
  /** Limit of bytes kept for a client that does not read. */
  readonly #mostUnsent: number;
  #pauses = 0;
  /** Unread bytes at the last check, and since when their number is the same. */
  #unsentBefore = 0;
  #stalledSince = 0;
  /** Bytes in this round, counting large chunks only. */
  #inRound = 0;

  constructor(transport: Transport, mostUnsent: number) {
    this.#transport = transport;
    this.#mostUnsent = mostUnsent;
  }

  /** More bytes can be kept for the client. */
  get hasRoom(): boolean {
    return this.#transport.unsent < this.#mostUnsent;
  }

  pause(reason: Pause): void {
    if (this.#pauses === 0) this.#transport.pauseReading();
    this.#pauses |= reason;
  }

  resume(reason: Pause): void {
    if ((this.#pauses & reason) === 0) return;
    this.#pauses &= ~reason;
    if (this.#pauses === 0) this.#transport.resumeReading();
  }

  /** Counts a chunk. A client that sends without end must not starve the others. */
  took(bytes: number): void {
    if (bytes < largeChunk) return;
    if (this.#inRound === 0) setImmediate(endRound, this);
    this.#inRound += bytes;
    if (this.#inRound >= mostInARound) this.pause(Pause.roundIsOver);
  }

  roundEnded(): void {
    this.#inRound = 0;
    this.resume(Pause.roundIsOver);
  }

  /**
   * How long the client has read nothing of its waiting answers, for periodic checks. `holdsServerUp`: nothing more is read
   * from the server until the client reads, so any change is the client's doing.
   */
  stalledFor(now: number, holdsServerUp: boolean): number {
    const { unsent } = this.#transport;
    if (!holdsServerUp || unsent !== this.#unsentBefore) {
      this.#unsentBefore = unsent;
      this.#stalledSince = now;
    }
    return now - this.#stalledSince;
  }

  /** The client did not accept a whole answer at once. Returns whether the server is to send more all the same. */
  clientIsSlow(): boolean {
    if (!this.hasRoom) {
      this.pause(Pause.clientFull);
      return false;
    }
    return (this.#pauses & Pause.serverFull) !== 0;
  }
}

function endRound(flow: ClientFlow): void {
  flow.roundEnded();
}

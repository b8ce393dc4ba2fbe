/**
 * When a client is read from. It is not while its messages wait for a server, while the server takes no more, and while the
 * client itself does not read what it is sent.
 *
 * A client that writes all it has before it reads would stand still with the last two: it can't write on, so that the server
 * can't write on, so that the server does not read on. To that end the server's answers are taken from it as long as there
 * are not too many of them.
 */
import type { Transport } from '../../../net/transport.js';

/** Why a client is not read from. */
export const Pause = {
  /** Its messages are held until a server, or an answer, is there. */
  held: 1,
  /** The server takes no more. */
  serverFull: 2,
  /** The client does not take what is for it. */
  clientFull: 4,
  /** SUSPEND on the console. */
  suspended: 8,
  /** It has had its share of this round of the event loop. */
  hadItsTurn: 16,
} as const;
export type Pause = (typeof Pause)[keyof typeof Pause];

/** Whoever sends less at once is never held up. */
const largeChunk = 8_192;
/** So much of one client is looked at before others have their turn. */
const mostInARound = 131_072;

export class ClientFlow {
  readonly #transport: Transport;
  /** So much of what a client does not read is kept for it. */
  readonly #mostUnsent: number;
  #pauses = 0;
  /** What was not read when that was looked at last, and since when it is as much. */
  #unsentBefore = 0;
  #stalledSince = 0;
  /** Bytes of this round, in large chunks. */
  #inRound = 0;

  constructor(transport: Transport, mostUnsent: number) {
    this.#transport = transport;
    this.#mostUnsent = mostUnsent;
  }

  /** More can be kept for the client. */
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

  /** So many bytes came at once. One that sends without end must not keep the pooler from all others. */
  took(bytes: number): void {
    if (bytes < largeChunk) return;
    if (this.#inRound === 0) setImmediate(endRound, this);
    this.#inRound += bytes;
    if (this.#inRound >= mostInARound) this.pause(Pause.hadItsTurn);
  }

  roundEnded(): void {
    this.#inRound = 0;
    this.resume(Pause.hadItsTurn);
  }

  /**
   * How long the client has read nothing of what is there for it, to be asked once in a while. `holdsServerUp`: nothing more is
   * taken from the server until it does, so that any change is the client's doing.
   */
  stalledFor(now: number, holdsServerUp: boolean): number {
    const { unsent } = this.#transport;
    if (!holdsServerUp || unsent !== this.#unsentBefore) {
      this.#unsentBefore = unsent;
      this.#stalledSince = now;
    }
    return now - this.#stalledSince;
  }

  /** The client did not take all of an answer at once. Whether the server is to send more all the same. */
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

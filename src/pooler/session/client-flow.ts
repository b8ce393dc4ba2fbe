/**
 * When a client is read from. It is not while its messages wait for a server, while the server takes no more, and while the
 * client itself does not read what it is sent.
 *
 * A client that writes all it has before it reads would stand still with the last two: it can't write on, so that the server
 * can't write on, so that the server does not read on. To that end the server's answers are taken from it as long as there
 * are not too many of them.
 */
import type { Transport } from '../transport/transport.js';

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
} as const;
export type Pause = (typeof Pause)[keyof typeof Pause];

/** So much of what a client does not read is kept for it. */
const mostUnsent = 4_194_304;

export class ClientFlow {
  readonly #transport: Transport;
  #pauses = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** More can be kept for the client. */
  get hasRoom(): boolean {
    return this.#transport.unsent < mostUnsent;
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

  /** The client did not take all of an answer at once. Whether the server is to send more all the same. */
  clientIsSlow(): boolean {
    if (!this.hasRoom) {
      this.pause(Pause.clientFull);
      return false;
    }
    return (this.#pauses & Pause.serverFull) !== 0;
  }
}

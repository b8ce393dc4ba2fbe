/**
 * COPY from a client, as far as it stops the server from answering: while a server takes data, it ignores every Sync, and only
 * the server knows exactly when it stopped taking data.
 *
 * A Sync that the client sends while the server is known to take data is kept here. If the COPY fails, the Sync is sent after
 * all, since the client counts on its answer. A Sync sent before that was known is most likely ignored; if the COPY then fails,
 * it may have been answered, too. That leaves the connection in doubt, and it is not used again.
 */
import { Frontend } from '../../wire/message-types.js';
import type { ReplyQueue } from './reply-queue.js';

export class CopyIn {
  /** The server takes data, and the client has not ended the COPY. */
  isUnderWay = false;
  /** The number of ReadyForQuery messages still to come is unknown. */
  isInDoubt = false;
  #hasKeptSync = false;
  #hasIgnoredSync = false;

  /** The server asks for COPY data. */
  began(replies: ReplyQueue): void {
    const { hasEnded, ignoredSyncs } = replies.copyBegan();
    this.isUnderWay = !hasEnded;
    this.#hasIgnoredSync ||= ignoredSyncs > 0;
  }

  /** Keeps a Sync of the client's that the server would ignore. */
  keepSync(): void {
    this.#hasKeptSync = true;
  }

  succeeded(): void {
    this.isUnderWay = false;
    this.#hasKeptSync = false;
    this.#hasIgnoredSync = false;
  }

  /** The COPY has failed. Returns whether a Sync was kept, which is to be sent unless another one follows. */
  failed(): boolean {
    const hasKeptSync = this.#hasKeptSync;
    if (this.#hasIgnoredSync) this.isInDoubt = true;
    this.succeeded();
    return hasKeptSync;
  }
}

/** Messages that may come while the server takes COPY data, besides Terminate. */
export function isCopyMessage(type: number): boolean {
  switch (type) {
    case Frontend.copyData:
    case Frontend.copyDone:
    case Frontend.copyFail:
    case Frontend.sync:
    case Frontend.flush:
      return true;
    default:
      return false;
  }
}

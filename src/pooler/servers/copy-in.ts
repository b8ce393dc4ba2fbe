/**
 * COPY from a client, as far as it makes a server deaf: while it takes data, it ignores every Sync, and nobody but the server
 * knows exactly when it stopped to do so.
 *
 * A Sync that the client sends while the server is known to take data is kept here. Should the COPY fail, it is sent after all,
 * since the client counts on its answer. One that was sent before that was known is most likely ignored; if the COPY then fails,
 * it may have been answered, too. That leaves the connection in doubt, and it is not used again.
 */
import { Frontend } from '../../wire/message-types.js';
import type { ReplyQueue } from './reply-queue.js';

export class CopyIn {
  /** The server takes data, and the client has not ended it. */
  isUnderWay = false;
  /** Nobody knows how many ReadyForQuery are yet to come. */
  isInDoubt = false;
  #hasKeptSync = false;
  #hasIgnoredSync = false;

  /** The server asks for data. */
  began(replies: ReplyQueue): void {
    const { hasEnded, ignoredSyncs } = replies.copyBegan();
    this.isUnderWay = !hasEnded;
    this.#hasIgnoredSync ||= ignoredSyncs > 0;
  }

  /** A Sync of the client that the server would ignore. */
  keepSync(): void {
    this.#hasKeptSync = true;
  }

  succeeded(): void {
    this.isUnderWay = false;
    this.#hasKeptSync = false;
    this.#hasIgnoredSync = false;
  }

  /** Whether a Sync was kept, which is to be sent unless another one follows. */
  failed(): boolean {
    const hasKeptSync = this.#hasKeptSync;
    if (this.#hasIgnoredSync) this.isInDoubt = true;
    this.succeeded();
    return hasKeptSync;
  }
}

/** What may come while the server takes COPY data, besides a goodbye. */
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

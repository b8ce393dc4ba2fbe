/**
 * Leases on their way back. They are a number, not a list, so that no outage can make them grow without bound: what has
 * gathered is sent as one, under an id that stays the same until the coordinator has confirmed it. What has not been
 * sent yet can be had again, without asking anyone.
 */
import type { SignalledCall } from './timed-call.js';

export interface OutboxParts {
  /** Makes the call until it succeeds. */
  readonly send: (count: number, call: SignalledCall<unknown>) => Promise<void>;
  readonly release: (count: number, id: string, signal: AbortSignal) => PromiseLike<unknown>;
  readonly nextId: () => string;
  /** The coordinator has so many more to give. */
  readonly confirmed: (count: number) => void;
  /** Nothing is owed any more. */
  readonly emptied: () => void;
}

export class ReleaseOutbox {
  readonly #parts: OutboxParts;
  #unsent = 0;
  #sent = 0;
  #isSending = false;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** Not on their way yet. */
  get unsent(): number {
    return this.#unsent;
  }

  /** Not confirmed yet. */
  get owed(): number {
    return this.#unsent + this.#sent;
  }

  /** They leave when whoever gives them back is done, if nobody wants them until then. */
  add(count: number): void {
    this.#unsent += count;
    if (this.#isSending) return;
    this.#isSending = true;
    queueMicrotask(() => void this.#sendAll());
  }

  /** All of `count` or none. */
  takeBack(count: number): boolean {
    if (count > this.#unsent) return false;
    this.#unsent -= count;
    return true;
  }

  async #sendAll(): Promise<void> {
    while (this.#unsent > 0) {
      const count = this.#unsent;
      const id = this.#parts.nextId();
      this.#unsent = 0;
      this.#sent = count;
      await this.#parts.send(count, (signal) => this.#parts.release(count, id, signal));
      this.#sent = 0;
      this.#parts.confirmed(count);
    }
    this.#isSending = false;
    this.#parts.emptied();
  }
}

/**
 * Leases on their way back. They are a number, not a list, so that no outage can make them grow without bound: gathered
 * releases are sent as one, under an id that stays the same until the coordinator has confirmed it. Leases that are not
 * sent yet can be taken again without a call.
 */

export interface OutboxParts {
  /** Sends them until the coordinator has confirmed that, and then calls `done`. */
  readonly send: (count: number, done: () => void) => void;
  readonly soon: (run: () => void) => void;
  /** The coordinator has this many more free leases. */
  readonly confirmed: (count: number) => void;
  /** All releases are confirmed. */
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

  /** Leases that are not on their way yet. */
  get unsent(): number {
    return this.#unsent;
  }

  /** Leases that are not confirmed yet. */
  get owed(): number {
    return this.#unsent + this.#sent;
  }

  /** Sent after the holder's call, unless another holder wants them before that. */
  add(count: number): void {
    this.#unsent += count;
    if (this.#isSending) return;
    this.#isSending = true;
    this.#parts.soon(() => this.#send());
  }

  /** Takes back all of `count` or none. */
  takeBack(count: number): boolean {
    if (count > this.#unsent) return false;
    this.#unsent -= count;
    return true;
  }

  #send(): void {
    const count = this.#unsent;
    if (count === 0) {
      this.#isSending = false;
      this.#parts.emptied();
      return;
    }
    this.#unsent = 0;
    this.#sent = count;
    this.#parts.send(count, () => {
      this.#sent = 0;
      this.#parts.confirmed(count);
      this.#send();
    });
  }
}

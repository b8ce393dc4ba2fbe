/**
 * The time between a client's first byte and its session: it ends early when the client goes, or takes too long. Clients come by
 * the hundred at once, so a signal is made only for whom it is worth it: who waits for a server, or for TLS.
 */
export class LoginScope {
  #why: Error | undefined;
  #aborter: AbortController | undefined;
  /** Rejects the step that is under way. */
  #interrupt: ((why: Error) => void) | undefined;

  constructor() {
    this.#why = undefined;
    this.#aborter = undefined;
    this.#interrupt = undefined;
  }

  get isOver(): boolean {
    return this.#why !== undefined;
  }

  /** Fires when it is over, with the reason. */
  get signal(): AbortSignal {
    if (this.#aborter === undefined) {
      this.#aborter = new AbortController();
      if (this.#why !== undefined) this.#aborter.abort(this.#why);
    }
    return this.#aborter.signal;
  }

  throwIfOver(): void {
    if (this.#why !== undefined) throw this.#why;
  }

  /** Only the first reason counts. */
  end(why: Error): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    this.#aborter?.abort(why);
    this.#interrupt?.(why);
  }

  /** One step after the other. Rejects as soon as it is over, whatever becomes of the step. */
  during<T>(step: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      if (this.#why !== undefined) reject(this.#why);
      step.then(resolve, reject);
    });
  }
}

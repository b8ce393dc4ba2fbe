/**
 * Scope of a login, from a client's first byte to its session. It ends early when the client disconnects or takes too long.
 * Clients connect by the hundred at once, so a signal is made only when one is needed: to wait for a server or for TLS.
 */
export class LoginScope {
  #why: Error | undefined;
  #aborter: AbortController | undefined;
  /** Rejects the step that is under way. */
  #interrupt: ((why: Error) => void) | undefined;

  get isOver(): boolean {
    return this.#why !== undefined;
  }

  /** Fires when the login is over, with the reason. */
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

  /**
   * Runs one step at a time. Rejects as soon as the login is over, whatever the step does. What is no promise is returned as it
   * is: nothing can have happened meanwhile.
   */
  during<T>(step: T | Promise<T>): T | Promise<T> {
    if (!(step instanceof Promise)) {
      this.throwIfOver();
      return step;
    }
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      if (this.#why !== undefined) reject(this.#why);
      step.then(resolve, reject);
    });
  }
}

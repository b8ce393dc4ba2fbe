/**
 * Waits for the answer to a statement whose client has disconnected while statements of other clients were sent behind it. They can't
 * be taken back, so the statement's time stays limited: it is cancelled, and if that does not end it the connection is closed.
 */
import type { Backend } from './backend.js';
import type { BackendPool } from './backend-pool.js';
import { Caretaker } from './backend-user.js';

export class AbandonedStatement extends Caretaker {
  readonly #pool: BackendPool;
  readonly #backend: Backend;
  readonly #generation: number;
  readonly #timer: NodeJS.Timeout;
  #isCancelled = false;

  /** Takes over the connection. */
  constructor(pool: BackendPool, backend: Backend, generation: number) {
    super();
    const { limits, plan } = pool;
    const longestMs = Math.min(limits.queryTimeout || Number.POSITIVE_INFINITY, plan.cleaningTimeoutMs);
    this.#pool = pool;
    this.#backend = backend;
    this.#generation = generation;
    this.#timer = setInterval(() => this.#tookTooLong(longestMs), longestMs).unref();
    backend.user = this;
  }

  #tookTooLong(longestMs: number): void {
    if (this.#isCancelled)
      this.#backend.destroy(new Error(`A statement could not be cancelled within ${longestMs} ms.`));
    else void this.#pool.canceller.cancel(this.#backend);
    this.#isCancelled = true;
  }

  override backendSettled(backend: Backend): void {
    if (backend.followers.length > 0 || backend.isSettled) clearInterval(this.#timer);
    if (backend.handOn(this.#generation) || !backend.isSettled) return;
    backend.user = undefined;
    if (backend.isInDoubt)
      this.#pool.discard(
        backend,
        this.#generation,
        new Error('The state of the server connection is unknown.'),
      );
    else this.#pool.release(backend, this.#generation);
  }

  backendLost(error: Error): void {
    clearInterval(this.#timer);
    this.#pool.lost(this.#backend, this.#generation, error);
  }
}

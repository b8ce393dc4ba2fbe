/** Waits for the answer to a statement whose client has disconnected while statements of other clients were sent behind it. */
import type { Backend } from './backend.js';
import type { BackendPool } from './backend-pool.js';
import { Caretaker } from './backend-user.js';

export class AbandonedStatement extends Caretaker {
  readonly #pool: BackendPool;
  readonly #backend: Backend;
  readonly #generation: number;

  /** Takes over the connection. */
  constructor(pool: BackendPool, backend: Backend, generation: number) {
    super();
    this.#pool = pool;
    this.#backend = backend;
    this.#generation = generation;
    backend.user = this;
  }

  override backendSettled(backend: Backend): void {
    if (backend.handOn(this.#generation) || !backend.isSettled) return;
    backend.user = undefined;
    if (backend.isInDoubt)
      this.#pool.discard(backend, this.#generation, new Error('Nobody knows what state the server is in.'));
    else this.#pool.release(backend, this.#generation);
  }

  backendLost(error: Error): void {
    this.#pool.lost(this.#backend, this.#generation, error);
  }
}

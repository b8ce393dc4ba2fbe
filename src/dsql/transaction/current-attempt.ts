/** The attempt that is under way. */
import type { TransactionPhase } from './errors.js';
import type { StopSignal } from './stop-signal.js';

export class CurrentAttempt<T> {
  readonly number: number;
  readonly #stop: StopSignal;
  phase: TransactionPhase = 'connecting';
  /** Result of the transaction's function, once COMMIT was about to be sent. */
  result: { readonly value: T } | undefined;

  constructor(number: number, stop: StopSignal) {
    this.number = number;
    this.#stop = stop;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  began(): void {
    if (this.phase === 'connecting') this.phase = 'running';
  }

  committing(value: T): void {
    // The caller has been told that nothing was kept.
    if (this.#stop.isStopped) throw this.#stop.error(this.number, undefined);
    this.phase = 'committing';
    this.result = { value };
  }

  rolledBack(): void {
    this.phase = 'running';
    this.result = undefined;
  }
}

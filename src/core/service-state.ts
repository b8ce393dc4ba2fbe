/** The service state of a pool: whether it hands out connections, opens them, or drains. */
import type { PoolState } from './pool-counts.js';
import type { PoolListener } from './pool-listener.js';

/**
 *     open <-> paused
 *     open, paused --> draining --> closed
 */
export class ServiceState<C> {
  readonly #listener: PoolListener<C> | undefined;
  #current: PoolState = 'open';

  constructor(listener: PoolListener<C> | undefined) {
    this.#listener = listener;
  }

  get current(): PoolState {
    return this.#current;
  }

  /** Takes no more callers. */
  get isEnding(): boolean {
    return this.#current === 'draining' || this.#current === 'closed';
  }

  change(state: PoolState): void {
    this.#current = state;
    this.#listener?.stateChanged(state);
  }
}

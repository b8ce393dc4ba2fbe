/** The end of a pool: waiters are served, released connections are closed, and at the deadline the rest is destroyed. */
import type { Clock } from '../kernel/clock.js';
import type { Checkouts } from './checkouts.js';
import type { Dialing } from './dialing.js';
import { PoolClosedError } from './errors.js';
import type { Ledger } from './ledger.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolPolicy } from './pool-policy.js';
import type { Readiness } from './readiness.js';
import type { ServiceState } from './service-state.js';
import type { Serving } from './serving.js';
import type { CallerQueue } from './waiters.js';
import type { WakeUp } from './wake-up.js';

export interface DrainingParts<C> {
  readonly policy: PoolPolicy;
  readonly clock: Clock;
  readonly wakeUp: WakeUp;
  readonly service: ServiceState<C>;
  readonly ledger: Ledger;
  readonly connections: LiveConnections<C>;
  readonly dialing: Dialing<C>;
  readonly waiters: CallerQueue<C>;
  readonly serving: Serving<C>;
  readonly checkouts: Checkouts<C>;
  readonly readiness: Readiness;
}

const never = Infinity;

export class Draining<C> {
  readonly #parts: DrainingParts<C>;
  #deadline = never;
  #onDrained: (() => void)[] = [];

  constructor(parts: DrainingParts<C>) {
    this.#parts = parts;
  }

  /** When the remaining connections are destroyed. */
  get deadline(): number {
    return this.#deadline;
  }

  /** Begins to drain, or moves the deadline of a drain forward. */
  begin(deadline: number, onDrained: () => void): void {
    const { service, wakeUp } = this.#parts;
    this.#onDrained.push(onDrained);
    this.#deadline = Math.min(this.#deadline, deadline);
    if (service.current !== 'draining') service.change('draining');
    wakeUp.by(this.#deadline);
  }

  /** Closes what no waiter can use any more. */
  closeUnneeded(): void {
    const { policy, clock, wakeUp, connections, dialing, waiters } = this.#parts;
    if (waiters.size > 0) return;
    const { idle } = connections;
    for (let c = idle.longestIdle; c !== undefined; c = idle.longestIdle) {
      idle.remove(c);
      connections.retire(c, 'drained');
    }
    // A dial given up half-way may leave a session behind for a moment; one that arrives is closed in good order.
    dialing.dials.hurry(clock.now() + policy.closeTimeout);
    wakeUp.by(dialing.dials.nextDeadline);
  }

  /** Closes the pool if no connection and no dial is left. */
  finish(): void {
    const { service, ledger, waiters, readiness, wakeUp } = this.#parts;
    if (waiters.size > 0 || ledger.total > 0) return;
    service.change('closed');
    readiness.settle(0, never);
    wakeUp.stop();
    for (const onDrained of this.#onDrained.splice(0)) onDrained();
  }

  /** At the deadline: refuses the queue and destroys what is in use. */
  cutShort(): void {
    const { clock, connections, dialing, serving, checkouts } = this.#parts;
    this.#deadline = never;
    serving.failAll(() => new PoolClosedError(': its deadline passed before a connection was free'));
    for (const connection of [...connections.all()]) {
      if (connection.state !== 'in_use') continue;
      checkouts.cutShort(connection);
      connections.destroy(connection, 'drain_deadline');
    }
    dialing.dials.hurry(clock.now());
  }
}

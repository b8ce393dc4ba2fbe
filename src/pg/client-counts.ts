/** The clients of a pool and their numbers, under the names that pg-pool has for them. */
import type { ConnectionPool } from '../core/connection-pool.js';
import { systemClock } from '../runtime/system.js';
import type { PgClient } from './client.js';
import type { PgConnection } from './pg-connection.js';
import type { PgDialer } from './pg-dialer.js';
import type { ConnectionLife } from './pool-interface.js';

export class ClientCounts {
  readonly #engine: ConnectionPool<PgConnection>;
  readonly #dialer: PgDialer;

  constructor(engine: ConnectionPool<PgConnection>, dialer: PgDialer) {
    this.#engine = engine;
    this.#dialer = dialer;
  }

  /** Connecting and live clients. Callers whose dial is held back count as connecting, as they would in pg-pool. */
  get total(): number {
    return this.#engine.live + this.#engine.pending + this.#dialsToCome();
  }

  get idle(): number {
    return this.#engine.idle;
  }

  get waiting(): number {
    return Math.max(0, this.#engine.waiting - this.#engine.pending - this.#dialsToCome());
  }

  get expired(): number {
    const now = systemClock.now();
    let expired = 0;
    for (const pooled of this.#engine.connections()) if (now >= pooled.expiresAt) expired++;
    return expired;
  }

  clients(): PgClient[] {
    return [
      ...this.#dialer.clients,
      ...Array.from(this.#engine.connections(), ({ connection }) => connection.client),
    ];
  }

  /** In the form of pg-pool's list, in no order. */
  idleItems(): { readonly client: PgClient }[] {
    const idle = Array.from(this.#engine.connections()).filter(({ state }) => state === 'idle');
    return idle.map(({ connection: { client } }) => ({ client }));
  }

  *lives(): IterableIterator<ConnectionLife> {
    const now = systemClock.now();
    for (const { bornAt, lendUntil } of this.#engine.connections())
      yield { ageMs: now - bornAt, remainingMs: Math.max(0, lendUntil - now) };
  }

  #dialsToCome(): number {
    const { waiting, pending, room, state } = this.#engine;
    return state === 'paused' ? 0 : Math.min(Math.max(0, waiting - pending), room);
  }
}

/** Publishes what an engine does, and tells its pool. */
import type { PooledConnection } from '../../core/pooled-connection.js';
import { ChannelPublisher } from '../../runtime/channels.js';
import type { Backend } from './backend.js';

export interface EngineEvents {
  opened(pooled: PooledConnection<Backend>, dialMs: number): void;
  closed(): void;
  dialFailed(error: Error): void;
}

export class EngineNotes extends ChannelPublisher<Backend> {
  readonly #events: EngineEvents;

  constructor(pool: object, name: string, events: EngineEvents) {
    super(pool, name);
    this.#events = events;
  }

  override opened(pooled: PooledConnection<Backend>, dialMs: number): void {
    this.#events.opened(pooled, dialMs);
    super.opened(pooled, dialMs);
  }

  override closed(pooled: PooledConnection<Backend>): void {
    super.closed(pooled);
    this.#events.closed();
  }

  override dialFailed(error: Error, failuresInARow: number, dialMs: number): void {
    super.dialFailed(error, failuresInARow, dialMs);
    this.#events.dialFailed(error);
  }
}

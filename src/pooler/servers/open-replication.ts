/**
 * Opens a server connection for replication. It takes the place of an idle connection of the pool, which is closed for it, or is
 * dialed by the pool itself: so it waits, and counts in the pool's limits and in all budgets, as any other, and is never handed to
 * another client.
 */
import { terminate } from '../../wire/fixed-messages.js';
import type { Backend } from './backend.js';
import type { BackendPool } from './backend-pool.js';
import { Caretaker } from './backend-user.js';
import { type BorrowOptions, borrow } from './borrow.js';
import type { ReplicationStream } from './replication-stream.js';

/** A server connection for replication, and what carries its bytes. */
export interface ReplicationServer {
  readonly backend: Backend;
  readonly stream: ReplicationStream;
}

/** `parameters`: what the client's startup packet says, `replication` included. */
export function openReplication(
  pool: BackendPool,
  options: BorrowOptions,
  parameters: ReadonlyMap<string, string>,
): Promise<ReplicationServer> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    const hand = async (backend: Backend): Promise<void> => {
      const stream = backend.replication as ReplicationStream;
      resolve({ backend, stream });
      // The place is free again when the server connection is closed, and not before.
      await stream.gone;
    };
    borrow(pool, { ...options, replication: parameters }, async (place) => {
      // Dialed for this client.
      if (place.replication !== undefined) {
        await hand(place);
        return;
      }
      pool.openingWatcher?.evicted(place);
      evictAboveLimit(pool);
      place.isEvicted = true;
      await vacate(place);
      signal.throwIfAborted();
      await hand(await pool.openReplication(place, parameters, signal));
    }).catch(reject);
  });
}

/** A reserve may have left more connections than the pool is to have. */
function evictAboveLimit(pool: BackendPool): void {
  while (pool.stats().live > pool.limits.poolSize) {
    const idle = pool.tryTake();
    if (idle === undefined) return;
    idle.connection.isEvicted = true;
    pool.openingWatcher?.evicted(idle.connection);
    pool.discard(idle.connection, idle.generation, new Error('It makes room for replication.'));
  }
}

/** Resolves when its socket is closed. */
function vacate(backend: Backend): Promise<void> {
  if (backend.isGone) return Promise.resolve();
  return new Promise((resolve) => {
    backend.user = new ClosingWatcher(resolve);
    const { transport } = backend;
    transport.send(terminate, 0, terminate.length);
    transport.end();
  });
}

class ClosingWatcher extends Caretaker {
  readonly #gone: () => void;

  constructor(gone: () => void) {
    super();
    this.#gone = gone;
  }

  override backendLost(): void {
    this.#gone();
  }
}

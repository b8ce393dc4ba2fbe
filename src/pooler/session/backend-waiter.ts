/** A client in the queue for a server connection. */
import type { PooledConnection } from '../../core/pooled-connection.js';
import { Waiter } from '../../core/waiters.js';
import type { Backend } from '../backend/backend.js';

export interface WaitingClient {
  granted(pooled: PooledConnection<Backend>, waiter: BackendWaiter): void;
  refused(error: Error, waiter: BackendWaiter): void;
}

export class BackendWaiter extends Waiter<Backend> {
  readonly #client: WaitingClient;

  constructor(client: WaitingClient) {
    super();
    this.#client = client;
  }

  /** From the middle of a decision of the engine: what the client does with it comes after that. */
  override granted(pooled: PooledConnection<Backend>): void {
    process.nextTick(grant, this.#client, pooled, this);
  }

  override failed(error: Error): void {
    process.nextTick(refuse, this.#client, error, this);
  }
}

function grant(client: WaitingClient, pooled: PooledConnection<Backend>, waiter: BackendWaiter): void {
  client.granted(pooled, waiter);
}

function refuse(client: WaitingClient, error: Error, waiter: BackendWaiter): void {
  client.refused(error, waiter);
}

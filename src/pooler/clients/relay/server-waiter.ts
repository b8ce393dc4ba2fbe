/** A client in the queue for a server connection. It can wait again when it has had its answer. */
import type { PooledConnection } from '../../../core/pooled-connection.js';
import { Waiter } from '../../../core/waiters.js';
import { afterTurn, type Task } from '../../../runtime/turn.js';
import type { Backend } from '../../servers/backend.js';

export interface WaitingClient {
  granted(pooled: PooledConnection<Backend>, waiter: ServerWaiter): void;
  refused(error: Error, waiter: ServerWaiter): void;
}

export class ServerWaiter extends Waiter<Backend> implements Task {
  readonly #client: WaitingClient;
  #answer: PooledConnection<Backend> | Error | undefined;

  constructor(client: WaitingClient) {
    super();
    this.#client = client;
    // Whoever is in is not sent away because a server is, which may be about to come back.
    this.isPatient = true;
    this.#answer = undefined;
  }

  /** Whether it can stand in the queue once more: nothing of its last wait, such as a dial, is under way. */
  get isFree(): boolean {
    return !this.queued && this.#answer === undefined && this.dial === undefined;
  }

  /** From the middle of a decision of the engine: what the client does with it comes after that. */
  override granted(pooled: PooledConnection<Backend>): void {
    this.#answer = pooled;
    afterTurn(this);
  }

  override failed(error: Error): void {
    this.#answer = error;
    afterTurn(this);
  }

  run(): void {
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer instanceof Error) this.#client.refused(answer, this);
    else if (answer !== undefined) this.#client.granted(answer, this);
  }
}

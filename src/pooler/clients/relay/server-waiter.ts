/** A client in the queue for a server connection. It is reused once it was answered. */
import type { PooledConnection } from '../../../core/pooled-connection.js';
import { Waiter } from '../../../core/waiters.js';
import { afterTurn, type Task } from '../../../runtime/turn.js';
import type { Backend } from '../../servers/backend.js';

export interface WaitingClient {
  granted(pooled: PooledConnection<Backend>, waiter: ServerWaiter): void;
  refused(error: Error, waiter: ServerWaiter): void;
  /** A connection is about to be granted for a long statement. */
  longBegins(): void;
  /** Writes the client's held statement behind a statement of another client; false where that is not possible. */
  follow(backend: Backend): boolean;
}

export class ServerWaiter extends Waiter<Backend> implements Task {
  readonly client: WaitingClient;
  #answer: PooledConnection<Backend> | Error | undefined;

  constructor(client: WaitingClient) {
    super();
    this.client = client;
    // Connected clients wait for an unreachable server, which may be about to come back.
    this.isPatient = true;
  }

  /** Reusable: nothing of the last wait, such as a dial, is under way. */
  get isFree(): boolean {
    return !this.queued && this.#answer === undefined && this.dial === undefined;
  }

  /** Called from the middle of an engine decision: the client handles the connection after it. */
  override granted(pooled: PooledConnection<Backend>): void {
    this.#answer = pooled;
    // Counted at once: the engine may grant several connections before the first client has its own.
    if (this.isLong) this.client.longBegins();
    afterTurn(this);
  }

  override failed(error: Error): void {
    this.#answer = error;
    afterTurn(this);
  }

  run(): void {
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer instanceof Error) this.client.refused(answer, this);
    else if (answer !== undefined) this.client.granted(answer, this);
  }
}

/** A statement that was sent behind another client's statement, and the client that waits for its answer. */
import type { Backend } from './backend.js';

export interface Follower {
  /** The client's number; undefined where the client has left. */
  readonly clientId: number | undefined;
  /** All ahead of it is answered: its statement is the one that runs. `generation`: the checkout, which is its own from here on. */
  takeOver(backend: Backend, generation: number): void;
  /** The connection has ended before that. `hasNotBegun`: the server has said that it ends before it came to this statement. */
  serverLost(error: Error, hasNotBegun: boolean): void;
  /** A cancel request is sent for a statement ahead of it, and may hit this one. */
  mayBeHit(): void;
}

/** A requested end of a client: waits until the client is idle, holds the error to send, and knows whether a pinned client may stay. */
import type { ErrorFields } from '../../../wire/error-fields.js';

/** State of the client. */
export interface EndingClient {
  /** Server connection in use by the client. */
  readonly backend: object | undefined;
  readonly keepsServer: boolean;
  readonly state: string;
  /** The client waits for a server that it will get. */
  readonly isServedSoon: boolean;
  /** The client waits for a server of its own. */
  readonly isWaiting: boolean;
}

export class RequestedEnd {
  #goodbye: ErrorFields | undefined;
  /** May stay past shutdown while it holds a server. */
  #mayKeepServer = false;
  /** Ends the client no earlier than it needs a server. */
  #isOnDemand = false;

  get isWanted(): boolean {
    return this.#goodbye !== undefined;
  }

  /** Ends the client as soon as it is in no transaction and waits for nothing. */
  whenIdle(goodbye: ErrorFields): void {
    this.#goodbye = goodbye;
    this.#mayKeepServer = this.#isOnDemand = false;
  }

  /** As `whenIdle()`, but a client that keeps its server beyond a transaction may stay. */
  withoutServer(goodbye: ErrorFields): void {
    this.#mayKeepServer = this.#goodbye === undefined;
    this.#goodbye ??= goodbye;
  }

  /** Ends the client as soon as it waits for a server, as PgBouncer does while it shuts down. */
  onDemand(goodbye: ErrorFields): void {
    if (this.#goodbye !== undefined) return;
    this.#isOnDemand = true;
    this.#goodbye = goodbye;
  }

  /** The error to end the client with, if it is due. */
  dueFor(client: EndingClient): ErrorFields | undefined {
    if (this.#goodbye === undefined) return undefined;
    if (this.#isOnDemand) return client.isWaiting ? this.#goodbye : undefined;
    const hasServer = client.backend !== undefined;
    if (hasServer && this.#mayKeepServer && client.keepsServer) return undefined;
    return (hasServer ? client.state === 'idle' : !client.isServedSoon) ? this.#goodbye : undefined;
  }
}

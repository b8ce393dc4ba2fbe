/** A client that is to go as soon as it holds nobody up: what it is told then, and whether it may keep its server until it goes by itself. */
import type { ErrorFields } from '../../../wire/error-fields.js';

/** How the client stands. */
export interface EndingClient {
  readonly hasServer: boolean;
  readonly keepsServer: boolean;
  readonly isIdle: boolean;
  /** It waits for a server that it will get. */
  readonly isServedSoon: boolean;
}

export class RequestedEnd {
  #goodbye: ErrorFields | undefined;
  /** May stay past shutdown while it holds a server. */
  #mayKeepServer = false;

  constructor() {
    this.#goodbye = undefined;
  }

  get isWanted(): boolean {
    return this.#goodbye !== undefined;
  }

  /** As soon as it is in no transaction and waits for nothing. */
  whenIdle(goodbye: ErrorFields): void {
    this.#goodbye = goodbye;
    this.#mayKeepServer = false;
  }

  /** The same, but one that keeps its server for longer than a transaction may go when it likes. */
  withoutServer(goodbye: ErrorFields): void {
    this.#mayKeepServer = this.#goodbye === undefined;
    this.#goodbye ??= goodbye;
  }

  /** What to tell it, if now is the time. */
  dueFor({ hasServer, keepsServer, isIdle, isServedSoon }: EndingClient): ErrorFields | undefined {
    if (hasServer && this.#mayKeepServer && keepsServer) return undefined;
    return (hasServer ? isIdle : !isServedSoon) ? this.#goodbye : undefined;
  }
}

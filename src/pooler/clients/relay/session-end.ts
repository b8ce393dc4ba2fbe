/** The end of a client's session: why, what the client is told, and how its connection is closed. */
import { type ErrorFields, writeError } from '../../../wire/error-fields.js';
import type { ClientOutput } from './client-output.js';
import type { SessionParts } from './session-parts.js';

/** The session that ends. */
export interface EndingSession {
  /** The client has received a part of a message, and nothing may come before the rest. */
  readonly isInsideAnswer: boolean;
  /** Leaves the server. `cancels`: nothing waits for running statements. May be called again. */
  leave(cancels: boolean): void;
}

type EndParts = Pick<SessionParts, 'transport' | 'ending' | 'ended' | 'failed' | 'word'>;

export class SessionEnd {
  readonly #parts: EndParts;
  readonly #client: EndingSession;
  readonly #output: ClientOutput;
  #hasBegun = false;
  #why = 'the client hung up';

  constructor(parts: EndParts, client: EndingSession, output: ClientOutput) {
    this.#parts = parts;
    this.#client = client;
    this.#output = output;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Ends the session, after the error if there is one. `hasSaidGoodbye`: the client has sent Terminate, and waits for nothing. */
  begin(error: ErrorFields | undefined, hasSaidGoodbye: boolean): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { transport, word, ending, failed } = this.#parts;
    if (hasSaidGoodbye) this.#why = 'the client said goodbye';
    else if (error !== undefined) this.#why = word(error).message;
    const { isInsideAnswer } = this.#client;
    // Logged before the client gets the error, so that the entry exists when somebody looks for it.
    if (error !== undefined) ending(this.#why);
    this.#client.leave(!hasSaidGoodbye);
    if (error !== undefined) failed(error);
    if (error !== undefined && !isInsideAnswer) writeError(this.#output.writer, word(error));
    this.#output.send();
    // TLS has a closing message of its own, which some clients would miss.
    if (hasSaidGoodbye && transport.unsent === 0 && transport.tls === undefined) transport.destroy();
    else transport.end();
  }

  /** The socket is closed. */
  over(): void {
    this.#hasBegun = true;
    this.#client.leave(true);
    this.#parts.ended(this.#why);
  }
}

/**
 * Passes cancel requests on to servers, a few at a time, over the same kind of connection as the one that is cancelled. A
 * connection is not handed to another client until its cancel request is over: the request might hit the next client's query.
 */

import { connectTransport, type DialOptions } from '../../net/connect-transport.js';
import { MessageWriter } from '../../wire/message-writer.js';
import type { BackendKey } from '../../wire/session-messages.js';
import { writeCancelRequest } from '../../wire/startup-packet.js';
import type { Backend } from './backend.js';

export interface CancellerOptions {
  readonly mostAtOnce: number;
  /** 0: no limit. */
  readonly timeoutMs: number;
}

export class Canceller {
  #options: CancellerOptions;
  #underWay = 0;
  readonly #waiting: (() => void)[] = [];
  /** Requests by connection. Callers that cancel the same statement share one request. */
  readonly #requests = new Map<Backend, { readonly statement: number; readonly request: Promise<void> }>();
  sent = 0;
  failed = 0;

  constructor(options: CancellerOptions) {
    this.#options = options;
  }

  get underWay(): number {
    return this.#underWay;
  }

  change(options: CancellerOptions): void {
    this.#options = options;
  }

  /** Resolves when the server has been told, or could not be. Never rejects. */
  cancel(backend: Backend): Promise<void> {
    const statement = backend.statementNumber;
    const present = this.#requests.get(backend);
    if (present?.statement === statement) return present.request;
    backend.cancelBegan();
    // A pending request for an earlier statement on the same connection comes first.
    const run =
      present === undefined
        ? this.#run(backend, statement)
        : present.request.then(() => this.#run(backend, statement));
    const request = run.finally(() => {
      if (this.#requests.get(backend)?.request === request) this.#requests.delete(backend);
      backend.cancelEnded();
    });
    this.#requests.set(backend, { statement, request });
    return request;
  }

  async #run(backend: Backend, statement: number): Promise<void> {
    if (this.#underWay < this.#options.mostAtOnce) this.#underWay++;
    else await this.#place();
    try {
      if (isOver(backend, statement)) return;
      this.sent++;
      await this.#send(backend, statement);
    } catch {
      this.failed++;
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#underWay--;
      else next();
    }
  }

  /** Waits for a place. A finished request hands its place directly to the next. */
  #place(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  async #send(backend: Backend, statement: number): Promise<void> {
    const { key, dial } = backend;
    // Some servers, most of them poolers, give no key.
    if (key === undefined) return;
    const timeoutMs = this.#options.timeoutMs || 2 ** 31 - 1;
    const outcome = await sendCancel({ ...dial, timeoutMs }, key, () => {
      // On a shared connection, a late request would hit another client's statement.
      if (isOver(backend, statement)) return false;
      backend.cancelIsSent();
      return true;
    });
    if (outcome === 'done') return;
    if (outcome === 'withheld') {
      this.sent--;
      return;
    }
    this.failed++;
    backend.cancelWasLost();
  }
}

/** The statement to cancel has been answered meanwhile. */
function isOver(backend: Backend, statement: number): boolean {
  return backend.isLost || backend.replies.size === 0 || backend.statementNumber !== statement;
}

/**
 * `done`: the server has hung up, as it does when the request is done. `withheld`: `mayBeSent` returned false once the
 * connection was open. `cut_off`: it is unknown whether the request was read. Rejects if the server is unreachable.
 */
export async function sendCancel(
  dial: DialOptions,
  key: BackendKey,
  mayBeSent: () => boolean = () => true,
): Promise<'done' | 'withheld' | 'cut_off'> {
  const writer = new MessageWriter();
  writeCancelRequest(writer, key.processId, key.secretKey);
  const request = writer.take();
  const transport = await connectTransport(dial);
  let outcome: 'done' | 'withheld' | 'cut_off' = 'cut_off';
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => transport.destroy(), dial.timeoutMs).unref();
    transport.listener = {
      bytesCame() {},
      drained() {},
      // The server sends no answer: it hangs up when the request is done.
      ended() {
        outcome = 'done';
        transport.destroy();
      },
      closed() {
        clearTimeout(timer);
        resolve();
      },
    };
    if (!mayBeSent()) {
      outcome = 'withheld';
      transport.destroy();
      return;
    }
    transport.start();
    transport.send(request, 0, request.length);
  });
  return outcome;
}

/**
 * Passes requests to cancel on to servers, over the same kind of connection as the one that is cancelled, a few at a time.
 * A connection that is cancelled goes to nobody else until the request is over: it might hit the next one's query.
 */

import { connectTransport, type DialOptions } from '../../net/connect-transport.js';
import { MessageWriter } from '../../wire/message-writer.js';
import type { BackendKey } from '../../wire/session-messages.js';
import { writeCancelRequest } from '../../wire/startup-packet.js';
import type { Backend } from './backend.js';

export interface CancellerOptions {
  readonly mostAtOnce: number;
  /** 0: as long as it takes. */
  readonly timeoutMs: number;
}

export class Canceller {
  #options: CancellerOptions;
  #underWay = 0;
  readonly #waiting: (() => void)[] = [];
  /** By the connection: those who ask for the same wait for the same. */
  readonly #requests = new Map<Backend, Promise<void>>();
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
    const present = this.#requests.get(backend);
    if (present !== undefined) return present;
    backend.cancelBegan();
    const request = this.#run(backend).finally(() => {
      this.#requests.delete(backend);
      backend.cancelEnded();
    });
    this.#requests.set(backend, request);
    return request;
  }

  async #run(backend: Backend): Promise<void> {
    if (this.#underWay < this.#options.mostAtOnce) this.#underWay++;
    else await this.#turn();
    try {
      // It may be over meanwhile.
      if (backend.isLost || backend.replies.size === 0) return;
      this.sent++;
      await this.#send(backend);
    } catch {
      this.failed++;
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#underWay--;
      else next();
    }
  }

  /** The place of one that is over goes straight to the next. */
  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  async #send(backend: Backend): Promise<void> {
    const { key, dial } = backend;
    // Some servers, most of them poolers, give no key.
    if (key === undefined) return;
    const timeoutMs = this.#options.timeoutMs || 2 ** 31 - 1;
    if (await sendCancel({ ...dial, timeoutMs }, key)) return;
    this.failed++;
    backend.cancelWasLost();
  }
}

/** Whether the other side has hung up, as it does when the request is done, and not we. Rejects if it can't be reached. */
export async function sendCancel(dial: DialOptions, key: BackendKey): Promise<boolean> {
  const writer = new MessageWriter();
  writeCancelRequest(writer, key.processId, key.secretKey);
  const request = writer.take();
  const transport = await connectTransport(dial);
  let isDone = false;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => transport.destroy(), dial.timeoutMs).unref();
    transport.listener = {
      bytesCame() {},
      drained() {},
      // The server says nothing: it hangs up when the request is done.
      ended() {
        isDone = true;
        transport.destroy();
      },
      closed() {
        clearTimeout(timer);
        resolve();
      },
    };
    transport.start();
    transport.send(request, 0, request.length);
  });
  return isDone;
}

/** Messages of the pooler's own for one client, sent before the present event is handled. */
import type { Transport } from '../../../net/transport.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import { type ClientFlow, Pause } from './client-flow.js';

/** Empty between two events, so all clients share it. */
const own = new MessageWriter();
/**
 * The client that the bytes in it are for. One client's event may contain another's: a client that ends, or gives its server back, lets the next
 * one go on.
 */
let holder: ClientOutput | undefined;

export class ClientOutput {
  readonly #transport: Transport;
  readonly #flow: ClientFlow;

  constructor(transport: Transport, flow: ClientFlow) {
    this.#transport = transport;
    this.#flow = flow;
  }

  /** Ask for it anew for each message. */
  get writer(): MessageWriter {
    if (holder !== this) holder?.send();
    holder = this;
    return own;
  }

  /** Sends what was written for this client. */
  send(): void {
    if (holder !== this) return;
    holder = undefined;
    if (own.length === 0) return;
    // This client is answered here without a server; pause it if it does not read.
    if (!this.#transport.send(own.buffer, 0, own.length) && !this.#flow.hasRoom)
      this.#flow.pause(Pause.clientFull);
    own.clear();
  }
}

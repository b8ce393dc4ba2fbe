/** Messages of the pooler's own for one client, sent before the present event is handled. */
import type { Transport } from '../../../net/transport.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import { type ClientFlow, Pause } from './client-flow.js';

/** Empty between two events, so all clients share it. */
const own = new MessageWriter();

export class ClientOutput {
  readonly writer = own;
  readonly #transport: Transport;
  readonly #flow: ClientFlow;

  constructor(transport: Transport, flow: ClientFlow) {
    this.#transport = transport;
    this.#flow = flow;
  }

  /** Sends what was written. */
  send(): void {
    if (own.length === 0) return;
    // This client is answered here without a server; pause it if it does not read.
    if (!this.#transport.send(own.buffer, 0, own.length) && !this.#flow.hasRoom)
      this.#flow.pause(Pause.clientFull);
    own.clear();
  }
}

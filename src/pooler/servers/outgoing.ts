/**
 * What goes to one side in one turn: stretches of what came from the other side, and messages made here, in order, sent
 * with one write. A single stretch is sent as it is; only what is mixed is copied.
 */

import type { Transport } from '../../net/transport.js';
import { MessageWriter } from '../../wire/message-writer.js';

const nothing = Buffer.alloc(0);

export class Outgoing {
  /** For messages made here, after `mix()`. */
  readonly writer = new MessageWriter();
  #source: Buffer = nothing;
  #start = 0;
  #end = 0;

  get isEmpty(): boolean {
    return this.#start === this.#end && this.writer.length === 0;
  }

  /** Bytes of it. */
  get size(): number {
    return this.#end - this.#start + this.writer.length;
  }

  /** Bytes that stay as they are until `sendTo()`. */
  add(source: Buffer, start: number, end: number): void {
    if (this.writer.length > 0) {
      this.writer.append(source, start, end);
    } else if (this.#start === this.#end) {
      this.#source = source;
      this.#start = start;
      this.#end = end;
    } else if (source === this.#source && start === this.#end) {
      this.#end = end;
    } else {
      this.mix().append(source, start, end);
    }
  }

  /** The writer for what comes next; what was added before is in it. */
  mix(): MessageWriter {
    if (this.#start < this.#end) {
      this.writer.append(this.#source, this.#start, this.#end);
      this.#forget();
    }
    return this.writer;
  }

  /** Sends all of it; false when the transport would rather have no more for now. */
  sendTo(transport: Transport): boolean {
    if (this.#start < this.#end) {
      const goesOn = transport.send(this.#source, this.#start, this.#end);
      this.#forget();
      return goesOn;
    }
    const { writer } = this;
    if (writer.length === 0) return true;
    const goesOn = transport.send(writer.buffer, 0, writer.length);
    writer.clear();
    return goesOn;
  }

  /** A copy of all of it, in place of sending it. */
  take(): Buffer {
    return this.mix().take();
  }

  /** Forgets what was not sent. */
  clear(): void {
    this.#forget();
    this.writer.clear();
  }

  #forget(): void {
    this.#source = nothing;
    this.#start = this.#end = 0;
  }
}

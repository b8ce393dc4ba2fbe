/**
 * Bytes that go to one side with one write: stretches received from the other side and messages made here, in order. A single
 * stretch is sent without a copy; only mixed content is copied.
 */

import type { Transport } from '../../net/transport.js';
import { MessageWriter } from '../../wire/message-writer.js';

const nothing = Buffer.alloc(0);

export class Outgoing {
  /** Writer for messages made here; use it after `mix()`. */
  readonly writer = new MessageWriter();
  #source: Buffer = nothing;
  #start = 0;
  #end = 0;

  get isEmpty(): boolean {
    return this.#start === this.#end && this.writer.length === 0;
  }

  /** Bytes to send. */
  get size(): number {
    return this.#end - this.#start + this.writer.length;
  }

  /** Adds bytes, which must not change before `sendTo()`. */
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

  /** Returns the writer for the next messages, with everything added before already in it. */
  mix(): MessageWriter {
    if (this.#start < this.#end) {
      this.writer.append(this.#source, this.#start, this.#end);
      this.#forget();
    }
    return this.writer;
  }

  /** Sends everything; false when the transport wants no more for now. */
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

  /** Returns a copy of everything, in place of sending it. */
  take(): Buffer {
    return this.mix().take();
  }

  /** Discards everything that was not sent. */
  clear(): void {
    this.#forget();
    this.writer.clear();
  }

  #forget(): void {
    this.#source = nothing;
    this.#start = this.#end = 0;
  }
}

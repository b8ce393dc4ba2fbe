/** Bytes of a client that could not be passed on yet. Reading from the client pauses as long as there are any. */
import { copyRead } from '../../../net/byte-space.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { type ClientFlow, Pause } from './client-flow.js';

/** Limit in bytes of held input whose memory is reused. */
const memoryKept = 256;

export class HeldInput {
  readonly #flow: ClientFlow;
  #bytes: Buffer | undefined;
  /** Bytes that were sent and may have to be sent again: their memory must not be reused. */
  #inUse: Buffer | undefined;
  /** Memory used last, reused for the next query: with more clients than servers, every query waits. */
  #spare: Buffer | undefined;
  /** The bytes taken last, if their memory is not reused. */
  #taken: Buffer | undefined;

  constructor(flow: ClientFlow) {
    this.#flow = flow;
  }

  get bytes(): Buffer | undefined {
    return this.#bytes;
  }

  get size(): number {
    return this.#bytes?.length ?? 0;
  }

  /** Holds everything from the scanner's present message on. */
  holdBack(scanner: MessageScanner): void {
    const view = scanner.viewBack(this.#taken);
    if (view !== undefined) {
      this.#hold(view);
      return;
    }
    const held = this.#memoryFor(scanner.ahead);
    scanner.takeBack(held);
    this.#hold(held);
  }

  /** Holds bytes that the scanner has not seen. */
  hold(source: Buffer, start: number, end: number): void {
    const held = this.#memoryFor(end - start);
    copyRead(source, start, end, held);
    this.#hold(held);
  }

  #hold(held: Buffer): void {
    this.#bytes = held;
    this.#flow.pause(Pause.held);
  }

  /** Takes the bytes, to be passed on. Reading goes on. */
  take(): Buffer | undefined {
    const held = this.#bytes;
    if (held === undefined) return undefined;
    this.#bytes = undefined;
    this.#taken = held.length > memoryKept ? held : undefined;
    this.#flow.resume(Pause.held);
    return held;
  }

  /** The bytes of `take()` were all sent, copied or held back. */
  reuse(held: Buffer): void {
    this.#taken = undefined;
    if (isReusable(held) && held !== this.#inUse) this.#spare = held;
  }

  /** Nothing of the client is passed on any more. */
  drop(): void {
    this.#bytes = undefined;
  }

  // ---- bytes that may have to be sent again -----------------------------------------------------------------------

  keepInUse(bytes: Buffer): void {
    this.#inUse = bytes;
  }

  /** The held bytes were sent already. Returns them. */
  sent(): Buffer {
    const held = this.#bytes as Buffer;
    this.#inUse = held;
    this.#bytes = undefined;
    return held;
  }

  /** Bytes that were sent are answered. `again`: bytes to send once more, before the others. */
  answered(bytes: Buffer | undefined, again: Buffer | undefined): void {
    this.#inUse = undefined;
    if (again !== undefined)
      this.#bytes = this.#bytes === undefined ? again : Buffer.concat([again, this.#bytes]);
    else if (bytes !== undefined && isReusable(bytes)) this.#spare = bytes;
    if (this.#bytes === undefined) this.#flow.resume(Pause.held);
    else this.#flow.pause(Pause.held);
  }

  /** Allocates exactly this many bytes. Most queries of a client are as long as the one before, so its memory is reused. */
  #memoryFor(bytes: number): Buffer {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare?.length === bytes) return spare;
    if (bytes > memoryKept) return Buffer.allocUnsafe(bytes);
    return Buffer.from(spare?.buffer ?? new ArrayBuffer(memoryKept), 0, bytes);
  }
}

/** True for memory of its own that `#memoryFor()` made, and not for the rest of a larger chunk. */
function isReusable({ buffer }: Buffer): boolean {
  return buffer.byteLength === memoryKept;
}

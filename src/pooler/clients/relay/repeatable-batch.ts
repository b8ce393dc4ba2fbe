/** Messages that run a client's statement, kept until it is certain that they need not be sent again. */
import { copyRead } from '../../../net/byte-space.js';

/** Memory up to this many bytes is reused for the next batch. */
const memoryKept = 256;
const nothing = Buffer.alloc(0);

export class RepeatableBatch {
  #memory = nothing;
  #size = 0;

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  keep(source: Buffer, start: number, end: number): void {
    this.#size = end - start;
    if (this.#memory.length < this.#size)
      this.#memory = Buffer.allocUnsafeSlow(Math.max(this.#size, memoryKept));
    copyRead(source, start, end, this.#memory);
  }

  /** All bytes, valid until the next batch is kept. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#size);
  }

  forget(): void {
    this.#size = 0;
    if (this.#memory.length > memoryKept) this.#memory = nothing;
  }
}

/** Bytes that wait until the write before them is done: copied, and gathered in few blocks that go out together. */

const blockBytes = 16_384;

export class Outbox {
  #blocks: Buffer[] = [];
  /** Number of bytes filled in the last block. */
  #filled = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(source: Buffer, start: number, end: number): void {
    this.#size += end - start;
    let from = start;
    const last = this.#blocks.at(-1);
    if (last !== undefined && this.#filled < last.length) {
      const copied = source.copy(last, this.#filled, from, end);
      this.#filled += copied;
      from += copied;
    }
    if (from === end) return;
    const block = Buffer.allocUnsafeSlow(Math.max(blockBytes, end - from));
    this.#filled = source.copy(block, 0, from, end);
    this.#blocks.push(block);
  }

  /** Everything, in order; it is empty afterwards. */
  takeAll(): Buffer[] {
    const blocks = this.#blocks;
    const last = blocks.pop();
    if (last !== undefined) blocks.push(last.subarray(0, this.#filled));
    this.clear();
    return blocks;
  }

  clear(): void {
    this.#blocks = [];
    this.#filled = 0;
    this.#size = 0;
  }
}

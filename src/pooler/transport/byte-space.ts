/**
 * Memory that is read into or sent from, with views of its beginning. To make a view costs more than all else that is done
 * in JavaScript for a short write, and most writes are short: those views are made once and used again.
 */

/** Longer ones are made each time: they cost little compared to what they show. */
const longestKept = 1_024;

export class ByteSpace {
  readonly buffer: Buffer;
  /** By length; made when it is needed first. */
  #views: (Buffer | undefined)[] | undefined;

  constructor(buffer: Buffer) {
    this.buffer = buffer;
    this.#views = undefined;
  }

  view(start: number, end: number): Buffer {
    if (start !== 0 || end > longestKept) return this.buffer.subarray(start, end);
    this.#views ??= new Array<Buffer | undefined>(longestKept + 1).fill(undefined);
    const known = this.#views[end];
    if (known !== undefined) return known;
    const made = this.buffer.subarray(0, end);
    this.#views[end] = made;
    return made;
  }
}

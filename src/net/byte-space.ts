/**
 * Memory to read into or send from, with views of its beginning. Making a view costs more than all other JavaScript work
 * for a short write, and most writes are short: those views are made once and reused.
 */
import { copyBytes } from '../wire/bytes.js';

/** Longer views are made each time: they cost little compared to what they show. */
const longestKept = 1_024;

export class ByteSpace {
  readonly buffer: Buffer;
  /** By length; each is made on first use. */
  #views: (Buffer | undefined)[] | undefined;

  constructor(buffer: Buffer) {
    this.buffer = buffer;
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

const sharedBytes = 65_536;
let shared: ByteSpace | undefined;

export function newSpace(bytes = sharedBytes): ByteSpace {
  return new ByteSpace(Buffer.allocUnsafeSlow(bytes));
}

/** Memory to read into, shared by all transports that have none of their own, one after the other. */
export function sharedSpace(): ByteSpace {
  shared ??= newSpace();
  return shared;
}

/** Copies bytes that were read to the start of other memory. Uses an existing view if there is one, since that is fastest. */
export function copyRead(source: Buffer, start: number, end: number, target: Buffer): void {
  if (source === shared?.buffer) target.set(shared.view(start, end));
  else copyBytes(source, start, end, target, 0);
}

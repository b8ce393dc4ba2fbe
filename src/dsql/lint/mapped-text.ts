/** A text that is edited in rounds, and for each place in it the place in the original. */

/** Replaces `[start, end)`. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface Segment {
  /** In the current text. */
  readonly at: number;
  /** In the original: where the segment was copied from, or where it was inserted. */
  readonly from: number;
  readonly isCopied: boolean;
}

export class MappedText {
  #text: string;
  #segments: Segment[] = [{ at: 0, from: 0, isCopied: true }];

  constructor(original: string) {
    this.#text = original;
  }

  get text(): string {
    return this.#text;
  }

  /** Place in the original; that of the insertion for text that was inserted. */
  originOf(index: number): number {
    return originIn(this.#segments[this.#segmentAt(index)] as Segment, index);
  }

  /** Edits do not overlap, and are in order. */
  apply(edits: readonly Edit[]): void {
    const pieces: string[] = [];
    const segments: Segment[] = [];
    let length = 0;
    let from = 0;
    const copy = (to: number) => {
      for (const segment of this.#between(from, to))
        segments.push({ ...segment, at: segment.at - from + length });
      pieces.push(this.#text.slice(from, to));
      length += to - from;
    };
    for (const { start, end, text } of edits) {
      copy(start);
      if (text !== '') segments.push({ at: length, from: this.originOf(start), isCopied: false });
      pieces.push(text);
      length += text.length;
      from = end;
    }
    const end = this.originOf(this.#text.length);
    copy(this.#text.length);
    segments.push({ at: length, from: end, isCopied: true });
    this.#text = pieces.join('');
    this.#segments = segments;
  }

  *#between(from: number, to: number): Generator<Segment> {
    if (from >= to) return;
    for (let index = this.#segmentAt(from); index < this.#segments.length; index++) {
      const segment = this.#segments[index] as Segment;
      if (segment.at >= to) return;
      const at = Math.max(segment.at, from);
      yield { ...segment, at, from: originIn(segment, at) };
    }
  }

  /** The last segment that begins at or before the index. */
  #segmentAt(index: number): number {
    let [low, high] = [0, this.#segments.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#segments[middle] as Segment).at <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function originIn({ at, from, isCopied }: Segment, index: number): number {
  return isCopied ? from + index - at : from;
}

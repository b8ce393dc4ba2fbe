/** Lines and columns of a text. Columns count characters (code points); a line ends with LF or CRLF. */

export interface Position {
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

export class Positions {
  readonly #text: string;
  readonly #lineStarts: number[] = [0];

  constructor(text: string) {
    this.#text = text;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.#lineStarts.push(at + 1);
  }

  at(index: number): Position {
    const line = this.lineOf(index);
    const before = this.#text.slice(this.#lineStarts[line - 1], index);
    return { line, column: characters(withoutMark(before, line)) + 1 };
  }

  /** From 1. */
  lineOf(index: number): number {
    let [low, high] = [0, this.#lineStarts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#lineStarts[middle] as number) <= index) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  }
}

export const byteOrderMark = '\uFEFF';

function withoutMark(text: string, line: number): string {
  return line === 1 && text.startsWith(byteOrderMark) ? text.slice(1) : text;
}

function characters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/**
 * Standard output or standard error. A text that can't be written is dropped and counted: neither a full disk, nor a reader that has gone
 * or that has stopped to read, may end a program or make it grow.
 */
import { fstatSync, writeSync } from 'node:fs';

export class StandardStream {
  readonly #fd: 1 | 2;
  readonly #stream: NodeJS.WriteStream;
  readonly #isFile: boolean;
  readonly #mostWaiting: number;
  /** Texts that were dropped. */
  lost = 0;
  /** Why the last of them was. */
  lastProblem: string | undefined;

  /** `mostWaiting`: a reader that is so many bytes behind gets no more until it has read some. */
  constructor(stream: NodeJS.WriteStream & { readonly fd: 1 | 2 }, mostWaiting = Number.POSITIVE_INFINITY) {
    this.#fd = stream.fd;
    this.#stream = stream;
    this.#isFile = isFile(stream);
    this.#mostWaiting = mostWaiting;
    // Each text has its own answer.
    stream.on('error', () => {});
  }

  write(text: string): void {
    if (this.#isFile) this.#writeToFile(text);
    else if (this.#stream.writableLength > this.#mostWaiting) this.#drop('its reader does not read');
    else
      this.#stream.write(text, (error) => {
        if (error) this.#drop(error.message);
      });
  }

  /** Not by the stream: Node closes it for good at the first error, and a full disk may have room again. */
  #writeToFile(text: string): void {
    const bytes = Buffer.from(text);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
    } catch (error) {
      this.#drop((error as Error).message);
    }
  }

  #drop(problem: string): void {
    this.lost++;
    this.lastProblem = problem;
  }
}

/** A file or a device, which takes each text at once or refuses it. */
function isFile({ fd, isTTY }: NodeJS.WriteStream & { readonly fd: 1 | 2 }): boolean {
  if (isTTY) return false;
  try {
    const stat = fstatSync(fd);
    return !stat.isFIFO() && !stat.isSocket();
  } catch {
    return false;
  }
}

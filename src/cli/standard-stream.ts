/**
 * Standard output or standard error. A text that can't be written is dropped and counted: neither a full disk, nor a reader that has gone
 * or that has stopped to read, may end a program or make it grow.
 */
import { fstatSync } from 'node:fs';
import { DescriptorWriter } from './descriptor-writer.js';

export class StandardStream {
  readonly #stream: NodeJS.WriteStream;
  /** Not the stream: Node closes it for good at the first error, and a full disk may have room again. */
  readonly #file: DescriptorWriter | undefined;
  readonly #mostWaiting: number;
  #lost = 0;
  #lastProblem: string | undefined;

  /** `mostWaiting`: a reader that is so many bytes behind gets no more until it has read some. */
  constructor(stream: NodeJS.WriteStream & { readonly fd: 1 | 2 }, mostWaiting = Number.POSITIVE_INFINITY) {
    this.#stream = stream;
    this.#file = isFile(stream) ? new DescriptorWriter(stream.fd, mostWaiting) : undefined;
    this.#mostWaiting = mostWaiting;
    // Each text has its own answer.
    stream.on('error', () => {});
  }

  /** Texts that were dropped. */
  get lost(): number {
    return this.#file?.lost ?? this.#lost;
  }

  /** Why the last of them was. */
  get lastProblem(): string | undefined {
    return this.#file?.lastProblem ?? this.#lastProblem;
  }

  write(text: string): void {
    if (this.#file !== undefined) this.#file.write(text);
    else if (this.#stream.writableLength > this.#mostWaiting) this.#drop('its reader does not read');
    else
      this.#stream.write(text, (error) => {
        if (error) this.#drop(error.message);
      });
  }

  #drop(problem: string): void {
    this.#lost++;
    this.#lastProblem = problem;
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

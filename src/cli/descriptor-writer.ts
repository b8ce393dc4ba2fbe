/**
 * Writes lines to an open file, pipe or device, and never waits for it if it is open without blocking. A reader that is behind gets the
 * rest later; what is beyond the bound, or can't be written, is dropped and counted. After an error it goes on with the next line: a
 * full disk may have room again, and a pipe another reader.
 */
import { writeSync } from 'node:fs';

const retryMs = 50;

export class DescriptorWriter {
  readonly #fd: number;
  readonly #mostWaiting: number;
  /** Lines whose reader is behind. Of the first, part may be written. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** The last line was written in part, and its rest was dropped. */
  #isTorn = false;
  #timer: NodeJS.Timeout | undefined;
  /** Lines that were dropped. */
  lost = 0;
  /** Why the last of them was. */
  lastProblem: string | undefined;

  /** `mostWaiting`: bytes that wait for a reader; beyond them, lines are dropped. */
  constructor(fd: number, mostWaiting: number) {
    this.#fd = fd;
    this.#mostWaiting = mostWaiting;
  }

  write(line: string): void {
    const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
    if (this.#waiting.length === 0) {
      const rest = this.#writeNow(bytes);
      if (rest !== undefined) this.#keep(rest);
    } else if (this.#waitingBytes + bytes.length <= this.#mostWaiting) this.#keep(bytes);
    else this.#drop('its reader does not read');
  }

  /** Writes what waits, as far as that is possible at once. */
  flush(): void {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      const rest = this.#writeNow(first);
      this.#waitingBytes -= first.length - (rest?.length ?? 0);
      if (rest === undefined) this.#waiting.shift();
      else this.#waiting[0] = rest;
      if (rest !== undefined) return;
    }
  }

  /** Writes what can be written at once; the rest is lost. The descriptor stays open. */
  end(): void {
    this.flush();
    clearTimeout(this.#timer);
    for (const _line of this.#waiting) this.#drop('its reader does not read');
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  /** The part for which there is no room at the moment. */
  #writeNow(bytes: Buffer): Buffer | undefined {
    let at = 0;
    try {
      while (at < bytes.length) at += writeSync(this.#fd, bytes, at);
      this.#isTorn = false;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN') return bytes.subarray(at);
      this.#isTorn ||= at > 0;
      this.#drop(message);
    }
    return undefined;
  }

  #keep(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#flushLater();
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush();
      if (this.#waiting.length > 0) this.#flushLater();
    }, retryMs).unref();
  }

  #drop(problem: string): void {
    this.lost++;
    this.lastProblem = problem;
  }
}

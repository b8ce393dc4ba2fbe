/** The file that has the number of the process for as long as that serves. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { ServingError } from '../pooler/errors.js';

export class PidFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Throws a `ServingError` if it is another's, who lives. What a dead one has left behind is in nobody's way. */
  refuseIfTaken(): void {
    const pid = this.#read();
    if (pid === undefined || pid === process.pid || !isAlive(pid)) return;
    throw new ServingError(
      `The process ${pid} runs, and its number is in ${this.#path}. If that is no pooler, remove the file.`,
    );
  }

  write(): void {
    writeFileSync(this.#path, `${process.pid}\n`);
  }

  /** Someone else may have written to it since. */
  remove(): void {
    if (this.#read() === process.pid) rmSync(this.#path, { force: true });
  }

  /** Undefined where there is no number of a process. A file that can't be read can't be written either, which is told then. */
  #read(): number | undefined {
    try {
      const text = readFileSync(this.#path, 'utf8').trim();
      return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined;
    } catch {
      return undefined;
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It is there, and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

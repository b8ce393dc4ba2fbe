/** The file that has the number of the process for as long as that serves. */
import { closeSync, constants, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { ServingError } from '../pooler/errors.js';

/** Larger than any number with a line end. */
const mostBytes = 32;
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

export class PidFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Throws a `ServingError` if another process runs under the number in the file. The file of a dead process is ignored. */
  refuseIfTaken(): void {
    const pid = this.#read();
    if (pid === undefined || pid === process.pid || !isAlive(pid)) return;
    throw new ServingError(
      `The process ${pid} runs, and its number is in ${this.#path}. If that is no pooler, remove the file.`,
    );
  }

  /** Written under another name first: a symbolic link at the path is replaced, and its target is left alone. */
  write(): void {
    const draft = `${this.#path}.${process.pid}`;
    rmSync(draft, { force: true });
    try {
      writeFileSync(draft, `${process.pid}\n`, { flag: 'wx' });
      renameSync(draft, this.#path);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
  }

  /** Someone else may have written to it since. */
  remove(): void {
    if (this.#read() === process.pid) rmSync(this.#path, { force: true });
  }

  /**
   * Undefined where there is no number of a process: no such file, a link, or anything else in its place. A file that can't be
   * read can't be written either, which is told then.
   */
  #read(): number | undefined {
    let file: number | undefined;
    try {
      file = openSync(this.#path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      const bytes = Buffer.alloc(mostBytes);
      const text = bytes.toString('latin1', 0, readSync(file, bytes)).trim();
      return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined;
    } catch {
      return undefined;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process exists, and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

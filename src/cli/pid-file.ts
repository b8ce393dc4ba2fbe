/**
 * The file that has the number of the process for as long as that serves. Only a file that has such a number, or nothing, is
 * replaced: never a device, a pipe, a folder, or a file with something else in it.
 */
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { ServingError } from '../pooler/errors.js';

/** Larger than any number with a line end. */
const mostBytes = 32;
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

export class PidFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Throws a `ServingError` if it is that of another process that is alive, or no pid file at all. */
  refuseIfTaken(): void {
    const found = this.#read();
    if (found === 'other')
      throw new ServingError(
        `The pid file ${this.#path} can't be written: something else is there, which is not the number of a process. Name another file, or remove it.`,
      );
    if (found === undefined || found === process.pid || !isAlive(found)) return;
    throw new ServingError(
      `The process ${found} runs, and its number is in ${this.#path}. If that is no pooler, remove the file.`,
    );
  }

  /** Written under another name first: a symbolic link at the path is replaced, and its target is left alone. */
  write(): void {
    this.refuseIfTaken();
    const draft = `${this.#path}.${process.pid}`;
    try {
      rmSync(draft, { force: true });
      writeFileSync(draft, `${process.pid}\n`, { flag: 'wx' });
      renameSync(draft, this.#path);
    } catch (error) {
      removeIfPossible(draft);
      throw new ServingError(
        `The pid file ${this.#path} can't be written: ${(error as Error).message}`,
        error,
      );
    }
  }

  /** Someone else may have written to it since. */
  remove(): void {
    if (this.#read() === process.pid) removeIfPossible(this.#path);
  }

  /** Undefined where there is nothing, an empty file, or a link, which is replaced and not followed. */
  #read(): number | 'other' | undefined {
    const stat = lstatSync(this.#path, { throwIfNoEntry: false });
    if (stat === undefined || stat.isSymbolicLink()) return undefined;
    if (!stat.isFile()) return 'other';
    const text = this.#text();
    if (text === '') return undefined;
    return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 'other';
  }

  #text(): string {
    let file: number | undefined;
    try {
      file = openSync(this.#path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      const bytes = Buffer.alloc(mostBytes);
      return bytes.toString('latin1', 0, readSync(file, bytes)).trim();
    } catch {
      return 'not to be read';
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }
}

/** The process may be another user's by now: a file that stays has the number of a process that has ended. */
function removeIfPossible(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Told by nothing: the next start replaces it.
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

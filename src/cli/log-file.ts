/** The file that has the log. It is opened again when it is to be rotated, or when the configuration names another one. */
import { closeSync, fchownSync, openSync, writeSync } from 'node:fs';
import { ServingError } from '../pooler/errors.js';

export class LogFile {
  #path: string | undefined;
  #file: number | undefined;
  #isNew = false;
  /** Lines that could not be written. */
  lost = 0;

  /** Throws a `ServingError`, and goes on with the file that it has. */
  use(path: string | undefined): void {
    let opened: Opened | undefined;
    try {
      opened = path === undefined ? undefined : open(path);
    } catch (error) {
      throw new ServingError(`The log file ${path} can't be opened: ${(error as Error).message}`, error);
    }
    if (this.#file !== undefined) closeSync(this.#file);
    this.#path = path;
    this.#file = opened?.file;
    this.#isNew = opened?.isNew === true;
  }

  get path(): string | undefined {
    return this.#path;
  }

  /** Changes the owner of a file that was created here, and of no other. */
  giveTo(user: number, group: number): void {
    if (this.#file !== undefined && this.#isNew) fchownSync(this.#file, user, group);
  }

  /** At once: what a client is told afterwards can be looked up in it. */
  write(line: string): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, line);
    } catch {
      this.lost++;
    }
  }
}

interface Opened {
  readonly file: number;
  /** There was no file of this name. */
  readonly isNew: boolean;
}

function open(path: string): Opened {
  const mode = 0o640;
  try {
    return { file: openSync(path, 'ax', mode), isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return { file: openSync(path, 'a', mode), isNew: false };
  }
}

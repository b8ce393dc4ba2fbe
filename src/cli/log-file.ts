/** The file that has the log. It is opened again when it is to be rotated, or when the configuration names another one. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { ServingError } from '../pooler/errors.js';

export class LogFile {
  #path: string | undefined;
  #file: number | undefined;
  /** Lines that could not be written. */
  lost = 0;

  /** Throws a `ServingError`, and goes on with the file that it has. */
  use(path: string | undefined): void {
    let file: number | undefined;
    try {
      file = path === undefined ? undefined : openSync(path, 'a', 0o640);
    } catch (error) {
      throw new ServingError(`The log file ${path} can't be opened: ${(error as Error).message}`, error);
    }
    if (this.#file !== undefined) closeSync(this.#file);
    this.#path = path;
    this.#file = file;
  }

  get path(): string | undefined {
    return this.#path;
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

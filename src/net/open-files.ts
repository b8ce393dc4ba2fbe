/** The number of files a process may have open. Sockets are files, and at the limit not even a log can be opened. */
import { readFileSync } from 'node:fs';

/** Infinity where it can't be found out. */
export function openFileLimit(): number {
  if (process.platform !== 'linux') return Number.POSITIVE_INFINITY;
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/**
 * Detects from a socket just accepted whether files run out. The kernel gives each new file the lowest free number, so a
 * high number means that nearly all are taken, and no counting is needed.
 */
export class OpenFileWatch {
  readonly limit: number;
  readonly #reserve: number;

  constructor(reserve: number, limit: number = openFileLimit()) {
    this.limit = limit;
    // With a very low limit, the reserve must leave some files to use.
    this.#reserve = Math.min(reserve, Math.floor(limit / 2));
  }

  /** The files that are kept for other things than clients. */
  get reserve(): number {
    return this.#reserve;
  }

  isShort(fileNumber: number): boolean {
    return fileNumber >= this.limit - this.#reserve;
  }
}

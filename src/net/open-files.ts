/** How many files a process may have open. Sockets are files, and when there are no more, not even a log can be opened. */
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
 * Tells from a socket just accepted whether files run out. The kernel gives each new file the lowest number that is free,
 * so a high number means that nearly all are taken, and nothing has to be counted.
 */
export class OpenFileWatch {
  readonly limit: number;
  readonly #reserve: number;

  constructor(reserve: number, limit: number = openFileLimit()) {
    this.limit = limit;
    // Where hardly any are allowed at all, the reserve must leave some to use.
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

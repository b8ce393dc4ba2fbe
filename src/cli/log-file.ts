/**
 * The file that has the log; it may be a pipe or a device. It is opened again when it is to be rotated, or when the configuration
 * names another one.
 */
import { closeSync, constants, fchownSync, openSync } from 'node:fs';
import { ServingError } from '../pooler/errors.js';
import { DescriptorWriter } from './descriptor-writer.js';

/** Bytes that wait for the reader of a pipe. */
const mostWaiting = 1024 * 1024;
const { O_WRONLY, O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NONBLOCK = 0, O_NOCTTY = 0 } = constants;
const mode = 0o640;

interface Open {
  readonly path: string;
  readonly fd: number;
  /** There was no file of this name. */
  readonly isNew: boolean;
  readonly writer: DescriptorWriter;
}

export class LogFile {
  #open: Open | undefined;
  /** Lines of the files before this one. */
  #lostBefore = 0;

  /** Throws a `ServingError`, and goes on with the file that it has. */
  use(path: string | undefined): void {
    let next: Open | undefined;
    try {
      if (path !== undefined) {
        const { fd, isNew } = openOrCreate(path);
        next = { path, fd, isNew, writer: new DescriptorWriter(fd, mostWaiting) };
      }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const hint =
        code === 'ENXIO'
          ? '. A socket can not be opened: without a log file, the log goes to standard error'
          : '';
      throw new ServingError(`The log file ${path} can't be opened: ${message}${hint}`, error);
    }
    this.close();
    this.#open = next;
  }

  /** Lines that could not be written. */
  get lost(): number {
    return this.#lostBefore + (this.#open?.writer.lost ?? 0);
  }

  get path(): string | undefined {
    return this.#open?.path;
  }

  /** Changes the owner of a file that was created here, and of no other. */
  giveTo(user: number, group: number): void {
    if (this.#open?.isNew === true) fchownSync(this.#open.fd, user, group);
  }

  /** At once, but for a pipe that is full: what a client is told afterwards can be looked up in it. */
  write(line: string): void {
    this.#open?.writer.write(line);
  }

  close(): void {
    if (this.#open === undefined) return;
    const { fd, writer } = this.#open;
    writer.end();
    closeSync(fd);
    this.#lostBefore += writer.lost;
    this.#open = undefined;
  }
}

function openOrCreate(path: string): Pick<Open, 'fd' | 'isNew'> {
  try {
    return { fd: openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOCTTY, mode), isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return { fd: openWithoutBlocking(path), isNew: false };
  }
}

/** Neither opening nor writing waits for the reader of a pipe. */
function openWithoutBlocking(path: string): number {
  const open = (): number => openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, mode);
  try {
    return open();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
  }
  // A FIFO that nobody reads can only be opened while somebody does.
  const reader = openSync(path, O_RDWR | O_NONBLOCK | O_NOCTTY);
  try {
    return open();
  } finally {
    closeSync(reader);
  }
}

/** Errors of the file system, as mistakes that the user of a command can mend. */
import { UsageError } from './usage-error.js';

/** `what`: the beginning of the message, with the path. */
export function withFile<T>(what: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (typeof code !== 'string' || code.startsWith('HG_')) throw error;
    throw new UsageError(`${what}: ${message}`);
  }
}

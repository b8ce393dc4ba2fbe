/** A mistake in how a command was called: told in a line, without a stack. */
import { HeadgateError } from '../kernel/errors.js';

export class UsageError extends HeadgateError {
  constructor(message: string) {
    super('HG_USAGE', message);
  }
}

/** Exit codes of all commands. */
export const exitCodes = { good: 0, failed: 1, badUsage: 2 } as const;

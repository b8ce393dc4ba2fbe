/** Where a command writes to, handed in so that a test can read it. */
import { StandardStream } from './standard-stream.js';

/** A log goes on for ever, while a result is as long as it is. */
const mostWaitingLog = 1024 * 1024;

export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Texts for standard error that could not be written. */
  readonly lost?: number;
  /** The log is over. A reader of it that has stopped holds up the end of the program for so many milliseconds at most. */
  leaveLog?(ms: number): void;
  readonly hasColours: boolean;
  /** Standard error is a terminal that can write over a line. */
  readonly showsProgress: boolean;
  /** How wide standard error is; undefined where it is no terminal. */
  readonly columns?: number | undefined;
}

export function systemTerminal(): Terminal {
  const out = new StandardStream(process.stdout);
  const err = new StandardStream(process.stderr, mostWaitingLog);
  process.once('exit', () => {
    // A reader such as `| head` has seen enough; that is not an error.
    if (out.lost === 0 || out.lastProblem?.includes('EPIPE')) return;
    err.write(`headgate: standard output could not be written: ${out.lastProblem}\n`);
    process.exitCode ||= 1;
  });
  return {
    out: (text) => out.write(text),
    err: (text) => err.write(text),
    get lost() {
      return err.lost;
    },
    leaveLog(ms) {
      // The timer alone keeps nothing running.
      setTimeout(() => {
        if (process.stderr.writableLength > 0 && process.stdout.writableLength === 0) process.exit();
      }, ms).unref();
    },
    hasColours: process.stdout.isTTY === true && process.stdout.hasColors() && !process.env['NO_COLOR'],
    showsProgress: process.stderr.isTTY === true && process.env['TERM'] !== 'dumb',
    get columns() {
      return process.stderr.columns;
    },
  };
}

/** A command of `headgate`, as its file describes it. */
import type { Terminal } from './terminal.js';

export interface Command {
  readonly summary: string;
  readonly help: string;
  /** Help on one of several actions, named in the arguments. */
  helpFor?(args: readonly string[]): Promise<string>;
  /** Answers the exit code. */
  run(args: readonly string[], terminal: Terminal): number | Promise<number>;
}

/** The base of all errors of Headgate, and the two that belong to no folder in particular. */

/** All errors made by Headgate are of this class; `code` is stable and starts with `HG_`. */
export class HeadgateError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** A bug in Headgate: something that its own rules exclude has happened. Please report it. */
export class InvariantError extends HeadgateError {
  constructor(message: string) {
    super('HG_INVARIANT', `${message} This is a bug in Headgate; please report it.`);
  }
}

/** One problem with the given options, and its place. */
export interface OptionProblem {
  readonly path: string;
  readonly message: string;
}

/** The options make no sense; `problems` lists all that is wrong with them, not only the first. */
export class PoolOptionsError extends HeadgateError {
  readonly problems: readonly OptionProblem[];

  /** `subject`: the options, as the message calls them. */
  constructor(problems: readonly OptionProblem[], subject = "the pool's options") {
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
    const lines = problems.map(({ path, message }) => `  ${path}: ${message}`);
    super('HG_BAD_OPTIONS', [`${count} with ${subject}:`, ...lines].join('\n'));
    this.problems = Object.freeze([...problems]);
  }
}

/** What is wrong with a file of users or rules, and where. */

export interface FileProblem {
  readonly line: number;
  readonly message: string;
}

/** Either what the file says, or all that is wrong with it: half of a file must not decide who comes in. */
export type FileContent<T> =
  | { readonly value: T; readonly problems: readonly [] }
  | { readonly value: undefined; readonly problems: readonly FileProblem[] };

export function fileContent<T>(value: T, problems: readonly FileProblem[]): FileContent<T> {
  return problems.length === 0
    ? { value, problems: [] }
    : { value: undefined, problems: [...problems].sort((one, other) => one.line - other.line) };
}

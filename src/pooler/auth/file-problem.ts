/** A problem in a file of users or rules, and its line. */

export interface FileProblem {
  readonly line: number;
  readonly message: string;
}

/** Either the content of the file, or all its problems: half of a file must not decide about logins. */
export type FileContent<T> =
  | { readonly value: T; readonly problems: readonly [] }
  | { readonly value: undefined; readonly problems: readonly FileProblem[] };

export function fileContent<T>(value: T, problems: readonly FileProblem[]): FileContent<T> {
  return problems.length === 0
    ? { value, problems: [] }
    : { value: undefined, problems: [...problems].sort((one, other) => one.line - other.line) };
}

/** Which statements of a workload DSQL would refuse, how often and why. */

/** A statement that was refused, as it was first asked for. */
export interface RefusedStatement {
  readonly sql: string;
  /** SQLSTATE. */
  readonly code: string;
  readonly message: string;
  readonly count: number;
}

export interface StatementReport {
  /** Statements that were asked for, refused ones among them. */
  readonly statements: number;
  readonly refused: number;
  /** Most frequent first. */
  readonly refusals: readonly RefusedStatement[];
  /** Refused texts that were not kept, because there were too many. */
  readonly notKept: number;
}

/** Different texts that are kept, and how much of each. */
const mostTexts = 1_000;
const longestText = 1_000;

export class Report {
  readonly #refusals = new Map<string, RefusedStatement & { count: number }>();
  #statements = 0;
  #refused = 0;
  #notKept = 0;

  add(sql: string, refusal: { readonly code: string; readonly message: string } | undefined): void {
    this.#statements += 1;
    if (refusal !== undefined) this.refuse(sql, refusal);
  }

  /** A statement that was added before, or a startup packet. */
  refuse(sql: string, refusal: { readonly code: string; readonly message: string }): void {
    this.#refused += 1;
    const { code, message } = refusal;
    const text = sql.length > longestText ? `${sql.slice(0, longestText)}...` : sql;
    const key = `${code} ${message} ${text}`;
    const known = this.#refusals.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.#refusals.size < mostTexts) this.#refusals.set(key, { sql: text, code, message, count: 1 });
    else this.#notKept += 1;
  }

  read(): StatementReport {
    return {
      statements: this.#statements,
      refused: this.#refused,
      refusals: [...this.#refusals.values()].map((one) => ({ ...one })).sort((a, b) => b.count - a.count),
      notKept: this.#notKept,
    };
  }
}

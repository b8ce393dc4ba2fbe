/** Judges a client's SQL text as Aurora DSQL would, statement by statement. */

/** An answer of the server in place of running a statement. */
export interface Refusal {
  /** SQLSTATE. */
  readonly code: string;
  readonly message: string;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  /** Position in the statement's own text, counted from 1 in characters, as in an ErrorResponse. */
  readonly position?: number | undefined;
}

/**
 * - `read`: SELECT, VALUES, TABLE without data-modifying parts, SHOW, EXPLAIN without ANALYZE. A locking clause is told by `locking`.
 * - `write`: INSERT, UPDATE, DELETE, data-modifying WITH, COPY FROM STDIN, EXPLAIN ANALYZE of such.
 * - `ddl`: changes the catalog; GRANT, REVOKE, COMMENT and AWS IAM GRANT/REVOKE included.
 * - `session`: SET, RESET, DEALLOCATE ALL, SET CONSTRAINTS: neither data nor catalog.
 * - `call`: CALL sys.wait_for_job and other procedures.
 */
export type StatementKind =
  | 'read'
  | 'write'
  | 'ddl'
  | 'session'
  | 'begin'
  | 'commit'
  | 'rollback'
  | 'analyze'
  | 'call';

/** A relation that a statement names, and the place of its schema in the text, so that it can be replaced. */
export interface RelationUse {
  readonly schema: string | undefined;
  readonly name: string;
  /** Target of INSERT, UPDATE, DELETE or COPY FROM, or named by a locking clause. */
  readonly isChanged: boolean;
}

/** Position of a schema's name: `[start, end)` of the identifier token in `sql`, quotes included. */
export interface SchemaMention {
  readonly schema: string;
  /** The relation behind the dot. */
  readonly relation: string;
  readonly start: number;
  readonly end: number;
}

/** A background job that the statement begins; its answer is one row with the job's id. */
export interface AsyncJob {
  readonly type: 'INDEX_BUILD' | 'VALIDATE_CONSTRAINT';
  /** The command tag of the answer. */
  readonly tag: 'CREATE INDEX' | 'ALTER TABLE';
  readonly schema: string | undefined;
  /** The table. */
  readonly table: string;
  /** The index or constraint, where the text names it. */
  readonly object: string | undefined;
}

/** AWS IAM GRANT role TO 'arn' and AWS IAM REVOKE role FROM 'arn', which PostgreSQL's grammar does not have. */
export interface IamMapping {
  readonly isGrant: boolean;
  readonly role: string;
  readonly arn: string;
}

export interface JudgedStatement {
  /** The client's own text of this statement, without a semicolon behind it. */
  readonly source: string;
  /** The text in a form that PostgreSQL 16 can run: ASYNC taken out, `numeric` made `numeric(18,6)`, and so on. Often `source` itself. */
  readonly sql: string;
  readonly kind: StatementKind;
  /** DSQL's answer, when the text alone is enough to refuse it. */
  readonly refusal: Refusal | undefined;
  /**
   * Queries that decide about the statement by the catalog, before it is run and in its transaction. Each returns no row, or one
   * with the columns `code` and `message` of the refusal.
   */
  readonly checks: readonly string[];
  readonly relations: readonly RelationUse[];
  /** Mentions in `sql`, in ascending order. */
  readonly schemaMentions: readonly SchemaMention[];
  readonly locking: 'none' | 'key_share' | 'update';
  /** COPY FROM STDIN: the client sends rows before there is an answer. */
  readonly isCopyIn: boolean;
  /** BEGIN READ ONLY, or a mode of START TRANSACTION. */
  readonly isReadOnly: boolean;
  /** START TRANSACTION, which has a command tag of its own. */
  readonly isStart: boolean;
  /** COMMIT AND CHAIN, ROLLBACK AND CHAIN. */
  readonly isChained: boolean;
  readonly job: AsyncJob | undefined;
  readonly iam: IamMapping | undefined;
  /** A result that the stand-in returns itself, such as SHOW server_version: one column, one row. */
  readonly ownAnswer: { readonly column: string; readonly value: string; readonly tag: string } | undefined;
}

export interface Judgement {
  readonly statements: readonly JudgedStatement[];
  /** PostgreSQL's own grammar refuses the text. PostgreSQL is asked, and returns its own error. */
  readonly isMalformed: boolean;
}

/** Judges texts, and remembers its verdicts up to a bound in bytes. */
export interface Dialect {
  /** The day, `2026-09-15`, of the DSQL version. */
  readonly profile: string;
  judge(sql: string): Judgement;
  /** True if a startup packet may set this parameter to this value; not called for `user`, `database` and `options`. */
  judgeParameter(name: string, value: string): Refusal | undefined;
  /** A query to run after each DDL statement in its transaction: no row, or `code` and `message` of the limit that is exceeded. */
  readonly limitCheck: string;
}

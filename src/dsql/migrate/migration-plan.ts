/** Cuts files into steps: what is run in one transaction, recorded once, and resumed at. */
import type { AsyncJob, Dialect, JudgedStatement } from '../../dialect/judgement.js';
import type { MigrationFile } from './migration-files.js';
import { checksumOf, lineOf, namesIn, summaryOf, tokensOf, withoutHead } from './statement-text.js';

/**
 * - `ddl`: one DDL statement; its record can't be in its transaction on DSQL.
 * - `data`: statements that share a transaction with their record.
 * - `repeatable`: ANALYZE, which does no harm when it is run again.
 */
export type StepKind = 'ddl' | 'data' | 'repeatable';

export interface MigrationStep {
  readonly file: string;
  /** From 1. */
  readonly number: number;
  readonly line: number;
  readonly kind: StepKind;
  /** As the file has them, without BEGIN and COMMIT. */
  readonly statements: readonly string[];
  /** For plain PostgreSQL: without ASYNC, and with DSQL's own types. */
  readonly postgresStatements: readonly string[];
  /** SET and RESET before it in its file. */
  readonly settings: readonly string[];
  readonly job: AsyncJob | undefined;
  /** Names of all objects that a DDL statement may concern. */
  readonly names: readonly string[];
  /** AWS IAM GRANT or REVOKE. */
  readonly isIam: boolean;
  readonly checksum: string;
  readonly summary: string;
}

/** Something that DSQL, or the way migrations are run, does not allow. */
export interface MigrationProblem {
  readonly file: string;
  /** The step that has it; undefined where the whole file can't be read. */
  readonly step: number | undefined;
  readonly line: number;
  /** SQLSTATE of DSQL's answer, where it is DSQL that refuses. */
  readonly code: string | undefined;
  readonly message: string;
}

export interface PlannedFile {
  readonly name: string;
  readonly steps: readonly MigrationStep[];
  readonly checksum: string;
  readonly problems: readonly MigrationProblem[];
}

export function planFile(file: MigrationFile, dialect: Dialect): PlannedFile {
  const planner = new FilePlanner(file, dialect);
  return planner.plan();
}

interface PlacedStatement extends JudgedStatement {
  readonly text: string;
  readonly line: number;
}

class FilePlanner {
  readonly #file: MigrationFile;
  readonly #dialect: Dialect;
  readonly #steps: MigrationStep[] = [];
  readonly #problems: MigrationProblem[] = [];
  readonly #settings: string[] = [];
  /** Statements since BEGIN. */
  #block: PlacedStatement[] | undefined;
  #blockLine = 0;

  constructor(file: MigrationFile, dialect: Dialect) {
    this.#file = file;
    this.#dialect = dialect;
  }

  plan(): PlannedFile {
    const { name, text } = this.#file;
    const { statements, isMalformed } = this.#dialect.judge(text);
    if (isMalformed) this.#malformed();
    let from = 0;
    for (const statement of statements) {
      const at = text.indexOf(statement.source, from);
      from = at + statement.source.length;
      const own = withoutHead(statement.source);
      const line = lineOf(text, text.indexOf(own, at));
      this.#take({ ...statement, text: own, line });
    }
    if (this.#block !== undefined) this.#problem(this.#blockLine, 'BEGIN has no COMMIT in the same file.');
    const checksum = checksumOf(this.#steps.map((step) => step.checksum));
    return { name, steps: this.#steps, checksum, problems: this.#problems };
  }

  #take(statement: PlacedStatement): void {
    const { kind, refusal, line } = statement;
    if (refusal !== undefined) this.#problem(line, `${refusal.message}.`, refusal.code);
    if (isCopy(statement))
      this.#problem(line, 'COPY has no data to read or write here. Use INSERT, or psql.');
    if (refusal === undefined && kind === 'begin') this.#begin(statement);
    else if (refusal === undefined && kind === 'commit') this.#commit(statement);
    else if (refusal === undefined && kind === 'rollback')
      this.#problem(line, 'ROLLBACK would undo what is recorded as done. Take it out.');
    else if (this.#block !== undefined) this.#block.push(statement);
    else if (refusal === undefined && kind === 'session') this.#settings.push(statement.text);
    else this.#step([statement]);
  }

  #begin({ line }: PlacedStatement): void {
    if (this.#block !== undefined) this.#problem(line, 'BEGIN within a transaction. Take it out.');
    this.#block ??= [];
    this.#blockLine = line;
  }

  #commit({ line, isChained }: PlacedStatement): void {
    const block = this.#block;
    this.#block = undefined;
    if (block === undefined || isChained) {
      this.#problem(line, isChained ? 'COMMIT AND CHAIN is not for migrations.' : 'COMMIT has no BEGIN.');
      return;
    }
    const ddl = block.filter(isDdl).length;
    const data = block.filter((statement) => !isDdl(statement) && statement.kind !== 'session').length;
    const advice = 'Take BEGIN and COMMIT out: each statement is run in a transaction of its own.';
    if (ddl > 1)
      this.#problem(
        this.#blockLine,
        `multiple ddl statements not supported in a transaction. ${advice}`,
        '0A000',
      );
    else if (ddl === 1 && data > 0)
      this.#problem(
        this.#blockLine,
        `ddl and dml are not supported in the same transaction. ${advice}`,
        '0A000',
      );
    if (ddl + data > 0) this.#step(block);
    this.#settings.push(...block.filter(isLasting).map(({ text }) => text));
  }

  #step(statements: readonly PlacedStatement[]): void {
    const [first] = statements;
    if (first === undefined) return;
    const texts = statements.map(({ text }) => text);
    const ddl = statements.find(isDdl);
    const main = ddl ?? first;
    this.#steps.push({
      file: this.#file.name,
      number: this.#steps.length + 1,
      line: first.line,
      kind: ddl !== undefined ? 'ddl' : main.kind === 'analyze' ? 'repeatable' : 'data',
      statements: texts,
      postgresStatements: statements.map(({ sql }) => withoutHead(sql)),
      settings: [...this.#settings],
      job: ddl?.job,
      names: ddl === undefined ? [] : namesIn(ddl.text),
      isIam: ddl?.iam !== undefined,
      checksum: checksumOf([...this.#settings, ...texts].map(tokensOf)),
      summary: summaryOf(texts.length === 1 ? main.text : `BEGIN; ${texts.join('; ')}; COMMIT`),
    });
  }

  #problem(line: number, message: string, code?: string): void {
    const step = this.#steps.length + 1;
    this.#problems.push({ file: this.#file.name, step, line, code, message });
  }

  /** Finds the first statement that PostgreSQL's grammar refuses, by growing the text statement by statement. */
  #malformed(): void {
    const { name, text } = this.#file;
    const ends = [...text.matchAll(/;/g)].map(({ index }) => index + 1);
    const good = ends.filter((end) => !this.#dialect.judge(text.slice(0, end)).isMalformed).at(-1) ?? 0;
    const line = lineOf(text, good + text.slice(good).search(/\S|$/));
    this.#problems.push({
      file: name,
      step: undefined,
      line,
      code: '42601',
      message: "syntax error in the statement that begins here, by PostgreSQL's own grammar.",
    });
  }
}

/** A refused statement has no kind of its own. */
function isDdl({ kind, refusal }: JudgedStatement): boolean {
  return kind === 'ddl' || refusal !== undefined;
}

function isCopy({ text }: PlacedStatement): boolean {
  return /^COPY\b/i.test(text);
}

/** SET without LOCAL stays after COMMIT. */
function isLasting({ kind, text, refusal }: PlacedStatement): boolean {
  return refusal === undefined && kind === 'session' && !/^SET\s+(?:LOCAL|CONSTRAINTS)\b/i.test(text);
}

/** Runs the statements that the stand-in answers itself: BEGIN, COMMIT and ROLLBACK, jobs, IAM grants, SHOW server_version. */
import type { JudgedStatement } from '../../dialect/judgement.js';
import { abortedTransaction, fail, StatementFailed } from './errors.js';
import { newJobId, ownColumn, ownResult, warningBytes } from './own-answers.js';
import type { Runner } from './runner.js';

/** The session that they are run for. */
export interface OwnStatementsHost {
  readonly runner: Runner;
  send(bytes: Buffer): void;
  /** Throws what speaks against running the statement now. */
  admit(statement: JudgedStatement): void;
  /** Reports a refusal that the work ends with, and throws it. */
  reporting(sql: string, work: Promise<void>): Promise<void>;
  grantIam(isGrant: boolean, role: string, arn: string): Promise<void>;
  /** The client's transaction is over. */
  ended(): void;
}

interface Answer {
  readonly tag: string;
  /** For the only column of the result, where it has one. */
  readonly value?: string;
}

export class OwnStatements {
  readonly #host: OwnStatementsHost;

  constructor(host: OwnStatementsHost) {
    this.#host = host;
  }

  /** Answers the client too; `isDescribed`: with a description of the result before it. */
  async run(statement: JudgedStatement, isDescribed: boolean): Promise<void> {
    const { value, tag } = await this.#answer(statement);
    this.#host.send(ownResult(ownColumn(statement), value, tag, isDescribed));
  }

  async #answer(statement: JudgedStatement): Promise<Answer> {
    const { kind, isChained, iam, job, ownAnswer } = statement;
    if (kind === 'begin') return this.#begin(statement);
    if (kind === 'commit' || kind === 'rollback') return this.#end(kind, isChained);
    const host = this.#host;
    host.admit(statement);
    if (iam !== undefined) {
      await host.grantIam(iam.isGrant, iam.role, iam.arn);
      return { tag: iam.isGrant ? 'AWS IAM GRANT' : 'AWS IAM REVOKE' };
    }
    if (job === undefined) return { tag: ownAnswer?.tag ?? 'SELECT 1', value: ownAnswer?.value ?? '' };
    const id = newJobId();
    if (host.runner.transaction === undefined) host.runner.beginImplicit();
    host.admit(statement);
    await host.reporting(statement.source, host.runner.job(statement, id));
    return { tag: job.tag, value: id };
  }

  async #begin(statement: JudgedStatement): Promise<Answer> {
    const { runner } = this.#host;
    if (runner.isFailed) throw new StatementFailed(abortedTransaction);
    if (runner.transaction === undefined) runner.begin(statement);
    else {
      if (!runner.transaction.isImplicit)
        this.#host.send(warningBytes('25001', 'there is already a transaction in progress'));
      await runner.beginInside(statement);
    }
    return { tag: statement.isStart ? 'START TRANSACTION' : 'BEGIN' };
  }

  async #end(kind: 'commit' | 'rollback', isChained: boolean): Promise<Answer> {
    const { runner } = this.#host;
    const { isFailed, transaction } = runner;
    const isInBlock = isFailed || transaction?.isImplicit === false;
    if (isChained && !isInBlock)
      throw fail('25P01', `${kind.toUpperCase()} AND CHAIN can only be used in transaction blocks`);
    if (!isInBlock) this.#host.send(warningBytes('25P01', 'there is no transaction in progress'));
    if (isFailed || kind === 'rollback') await runner.rollback();
    else await this.#host.reporting('COMMIT', runner.commit());
    this.#host.ended();
    if (isChained) runner.beginChained();
    return { tag: isFailed || kind === 'rollback' ? 'ROLLBACK' : 'COMMIT' };
  }
}

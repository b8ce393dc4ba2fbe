/**
 * Runs the statements of one session on PostgreSQL, in the transactions that DSQL would have them in.
 *
 * none -> open (BEGIN, or the stand-in around a statement) -> none
 *         open -> failed (an error) -> none (ROLLBACK, or COMMIT)
 */

import type { JudgedStatement } from '../../dialect/judgement.js';
import { readErrorFields } from '../../wire/error-fields.js';
import { Backend } from '../../wire/message-types.js';
import { command } from '../conflicts/eviction.js';
import { Transaction } from '../conflicts/transaction.js';
import { hidden, prepareHidden } from '../postgres/hidden-commands.js';
import type { Link, Take } from '../postgres/link.js';
import { OwnState } from '../postgres/setup.js';
import { CarefulRun } from './careful-run.js';
import {
  conflictFailure,
  fail,
  StatementFailed,
  serverUnavailable,
  sizeExceeded,
  translate,
} from './errors.js';
import { ageExceeded, runInTime } from './interruption.js';
import { leaveTransaction } from './leave-transaction.js';
import type { RunOptions } from './run-options.js';
import { SchemaChange } from './schema-change.js';
import { type Unit, usesCopies } from './unit.js';

export class Runner {
  readonly #options: RunOptions;
  readonly #careful: CarefulRun;
  readonly #schema: SchemaChange;
  #isFailed = false;
  /** Mode of the last transaction. */
  #isReadOnly = false;
  /** The last transaction has its mode from the one before it. */
  #isChained = false;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#careful = new CarefulRun(options);
    this.#schema = new SchemaChange(options);
  }

  get transaction(): Transaction | undefined {
    return this.#options.participant.transaction;
  }

  /** The client's transaction has failed, and waits for its end. */
  get isFailed(): boolean {
    return this.#isFailed;
  }

  /** The client is in a transaction that it has begun itself. */
  get isOpen(): boolean {
    return this.#isFailed || this.transaction?.isImplicit === false;
  }

  get #link(): Link {
    return this.#options.participant.link;
  }

  /** Passes an answer on to the client as it comes; an error is thrown when the answer is complete. */
  relay(): { readonly take: Take; done(): void } {
    const { send, answered } = this.#options;
    let error: StatementFailed | undefined;
    const take: Take = (type, source, start, end) => {
      if (type === Backend.error)
        error ??= new StatementFailed(translate(readErrorFields(source, start, end)));
      else if (type !== Backend.notice || readErrorFields(source, start, end).code !== OwnState.change)
        send(source, start, end);
      answered(type);
    };
    return {
      take,
      done() {
        if (error !== undefined) throw error;
      },
    };
  }

  /** BEGIN of the client's. */
  begin(statement: JudgedStatement): void {
    this.#open(false, statement);
  }

  /** A transaction around a statement or a batch, unless there is one. */
  beginImplicit(): void {
    if (this.transaction === undefined) this.#open(true, undefined);
  }

  /** BEGIN in a transaction. Inside of a text or a batch that has begun, what ran before belongs to the transaction. */
  async beginInside({ isReadOnly }: JudgedStatement): Promise<void> {
    const { transaction } = this;
    if (transaction === undefined) return;
    transaction.isImplicit = false;
    if (!isReadOnly || transaction.isReadOnly) return;
    await this.#options.participant.exchange([command('SET TRANSACTION READ ONLY')]);
    transaction.isReadOnly = true;
    this.#isReadOnly = true;
  }

  /** AND CHAIN: a transaction like the last one. */
  beginChained(): void {
    this.#open(false, undefined, this.#isReadOnly);
    this.#isChained = true;
  }

  #open(
    isImplicit: boolean,
    statement: JudgedStatement | undefined,
    isReadOnly = statement?.isReadOnly ?? false,
  ): void {
    const { participant, hooks } = this.#options;
    participant.pendingBegin =
      statement === undefined ? hidden(isReadOnly ? 'begin_read_only' : 'begin') : command(statement.sql);
    this.#isReadOnly = isReadOnly;
    this.#isChained = false;
    participant.transaction = new Transaction(hooks.now(), isImplicit, isReadOnly);
  }

  /** Ends the transaction with COMMIT; throws the conflict that it lost to. */
  async commit(): Promise<void> {
    const { participant, conflicts, limits, hooks } = this.#options;
    const { transaction } = participant;
    if (transaction === undefined) return;
    try {
      this.#checkAge(transaction);
      if (transaction.bytes > limits.bytes) throw sizeExceeded(transaction.bytes, limits.bytes);
      const fault = transaction.hasDml || !transaction.isImplicit ? hooks.commitFault() : undefined;
      if (fault === 'conflict') throw conflictFailure('data');
      if (fault === 'unavailable_before') throw new StatementFailed(serverUnavailable);
      const { conflict, error } = await conflicts.commit(participant);
      if (conflict === 'schema') participant.catalog = conflicts.catalog;
      if (conflict !== undefined) throw conflictFailure(conflict);
      if (error !== undefined) throw new StatementFailed(translate(error));
      if (transaction.hasDdl) participant.catalog = conflicts.catalog;
      if (fault === 'unavailable_after') throw new StatementFailed(serverUnavailable);
    } catch (error) {
      await leaveTransaction(this.#options);
      throw error;
    }
    conflicts.ended(participant);
  }

  /** ROLLBACK, also of a transaction that has failed. */
  async rollback(): Promise<void> {
    this.#isFailed = false;
    await leaveTransaction(this.#options);
  }

  /** After an error: the client's transaction has failed, one of the stand-in's is over. */
  async failed(): Promise<void> {
    const { transaction } = this;
    if (transaction === undefined) return;
    this.#isFailed = !transaction.isImplicit;
    // PostgreSQL takes BEGIN's mode back with an error, and keeps one that was chained.
    if (!this.#isChained) this.#isReadOnly = false;
    await leaveTransaction(this.#options);
  }

  /** Throws the error of a statement that may not run in the present state of the session. */
  admit(statement: JudgedStatement): void {
    const { participant, conflicts } = this.#options;
    const { transaction } = this;
    if (statement.kind === 'session') return;
    const isStale = participant.catalog !== undefined && participant.catalog !== conflicts.catalog;
    participant.catalog = conflicts.catalog;
    if (isStale || transaction?.doom === 'schema') throw conflictFailure('schema');
    if (transaction === undefined) return;
    this.#checkAge(transaction);
    conflicts.takeSnapshot(transaction);
    const isDml = statement.kind === 'write' || statement.locking !== 'none';
    if (statement.kind === 'ddl') {
      if (transaction.hasDdl) throw fail('0A000', 'multiple ddl statements not supported in a transaction');
      if (transaction.hasDml) throw fail('0A000', 'ddl and dml are not supported in the same transaction');
    } else if (isDml) {
      if (transaction.hasDdl) throw fail('0A000', 'ddl and dml are not supported in the same transaction');
    }
  }

  /** True if it can go to PostgreSQL as it came, its answer straight to the client. */
  isPlain(statement: JudgedStatement): boolean {
    const { kind, locking } = statement;
    if (kind === 'write' || kind === 'ddl' || locking !== 'none') return false;
    const { transaction } = this;
    if (transaction === undefined) return true;
    return (
      !transaction.isEvicted &&
      !(transaction.isDetached && usesCopies(statement, transaction.copies.values()))
    );
  }

  /** Runs a statement that is not plain; the transaction is there. Its answer is sent when it is certain. */
  async run(unit: Unit): Promise<void> {
    const transaction = this.transaction as Transaction;
    await this.inTime(() => this.#run(unit, transaction));
  }

  /** Ends work that makes the transaction older than it may be. */
  inTime<T>(work: () => Promise<T>): Promise<T> {
    const { hooks } = this.#options;
    return runInTime(this.#options, this.transaction?.beganAt ?? hooks.now(), work);
  }

  async #run(unit: Unit, transaction: Transaction): Promise<void> {
    if (unit.statement.kind === 'ddl') return this.#schema.run(unit, transaction);
    for (const check of unit.statement.checks) await this.#schema.check(check);
    return this.#careful.run(unit, transaction);
  }

  /** CREATE INDEX ASYNC and the like; the transaction is there. */
  async job(statement: JudgedStatement, id: string): Promise<void> {
    const transaction = this.transaction as Transaction;
    await this.inTime(() => this.#schema.job(statement, id, transaction));
  }

  /** The settings of a statement are to be made again when PostgreSQL's transaction is begun anew. */
  keepSetting(statement: JudgedStatement): void {
    if (statement.kind === 'session') this.transaction?.settings.push(statement.sql);
  }

  /** After DEALLOCATE ALL. A transaction that has failed since takes nothing but its end. */
  async prepareAgain(): Promise<void> {
    const probe = command('SELECT 1');
    await this.#link.exchange([probe]);
    if (probe.answer.error !== undefined) await this.#link.exchange([command('ROLLBACK')]);
    await prepareHidden(this.#link);
  }

  #checkAge({ beganAt }: Transaction): void {
    const { hooks, limits } = this.#options;
    const age = hooks.now() - beganAt;
    if (age > limits.ageMs) throw ageExceeded(age, limits);
  }
}

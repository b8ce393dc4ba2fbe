/**
 * Runs the statements of one session on PostgreSQL, in the transactions that DSQL would have them in.
 *
 * none -> open (BEGIN, or the stand-in around a statement) -> none
 *         open -> failed (an error) -> none (ROLLBACK, or COMMIT)
 */
import { type ErrorFields, readErrorFields } from '../../wire/error-fields.js';
import { flush, sync } from '../../wire/fixed-messages.js';
import { Backend, Frontend } from '../../wire/message-types.js';
import { addLockers, type Conflicts } from '../conflicts/conflicts.js';
import { command } from '../conflicts/eviction.js';
import type { Participant } from '../conflicts/participant.js';
import { Transaction } from '../conflicts/transaction.js';
import type { Dialect, JudgedStatement } from '../dialect/judgement.js';
import { hidden, prepareHidden, runHidden } from '../postgres/hidden-commands.js';
import type { Link, Part, Take } from '../postgres/link.js';
import { OwnState } from '../postgres/setup.js';
import type { Message } from './channel.js';
import {
  conflictErrors,
  conflictFailure,
  errorOf,
  fail,
  StatementFailed,
  serverUnavailable,
  translate,
} from './errors.js';
import { HeldAnswer } from './held-answer.js';
import type { SessionHooks, TransactionLimits } from './settings.js';
import { onCopies, type Unit, usesCopies } from './unit.js';

export interface RunnerOptions {
  readonly participant: Participant;
  readonly conflicts: Conflicts;
  readonly dialect: Dialect;
  readonly limits: TransactionLimits;
  readonly hooks: SessionHooks;
  /** Sends bytes of an answer to the client. */
  readonly send: (source: Buffer, start?: number, end?: number) => void;
  /** The client's next message, while it sends the rows of a COPY. */
  readonly next: () => Promise<Message | undefined>;
  /** Cancels what PostgreSQL does in this session. */
  readonly cancel: () => void;
}

/** Errors that PostgreSQL raises where DSQL lets the statement through and refuses COMMIT. */
const lockRefused = '55P03';
const conflictStates = new Set([lockRefused, '40001', '40P01', '23505', '23503', '23P01']);
/** An autocommitted statement that meets changes again and again gives up after so many times. */
const mostAttempts = 5;

export class Runner {
  readonly #options: RunnerOptions;
  #isFailed = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
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
    const { send } = this.#options;
    let error: StatementFailed | undefined;
    const take: Take = (type, source, start, end) => {
      if (type === Backend.error)
        error ??= new StatementFailed(translate(readErrorFields(source, start, end)));
      else if (type !== Backend.notice || readErrorFields(source, start, end).code !== OwnState.change)
        send(source, start, end);
    };
    return {
      take,
      done() {
        if (error !== undefined) throw error;
      },
    };
  }

  /** BEGIN of the client's. */
  async begin(statement: JudgedStatement): Promise<void> {
    await this.#open(false, statement);
  }

  /** A transaction around a statement or a batch, unless there is one. */
  async beginImplicit(): Promise<void> {
    if (this.transaction === undefined) await this.#open(true, undefined);
  }

  /** BEGIN inside of a text or a batch that has begun: what ran before belongs to the transaction. */
  makeExplicit(): void {
    if (this.transaction !== undefined) this.transaction.isImplicit = false;
  }

  /** After AND CHAIN. */
  async beginPlain(): Promise<void> {
    await this.#open(false, undefined);
  }

  async #open(isImplicit: boolean, statement: JudgedStatement | undefined): Promise<void> {
    const { participant, hooks } = this.#options;
    const part = statement === undefined ? hidden('begin') : command(statement.sql);
    await this.#link.exchange([part]);
    if (part.answer.error !== undefined) throw new StatementFailed(part.answer.error);
    participant.transaction = new Transaction(hooks.now(), isImplicit, statement?.isReadOnly ?? false);
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
      await this.#leave();
      throw error;
    }
    conflicts.ended(participant);
  }

  /** ROLLBACK, also of a transaction that has failed. */
  async rollback(): Promise<void> {
    this.#isFailed = false;
    await this.#leave();
  }

  /** After an error: the client's transaction has failed, one of the stand-in's is over. */
  async failed(): Promise<void> {
    const { transaction } = this;
    if (transaction === undefined) return;
    this.#isFailed = !transaction.isImplicit;
    await this.#leave();
  }

  /** Ends PostgreSQL's transaction, if there is one. */
  async #leave(): Promise<void> {
    const { participant, conflicts } = this.#options;
    if (participant.transaction === undefined) return;
    conflicts.ended(participant);
    if (!this.#link.isClosed) await this.#link.exchange([hidden('rollback')]);
  }

  /** Whether the statement may run now; throws what speaks against it. */
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

  /** Whether it can go to PostgreSQL as it came, its answer straight to the client. */
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
    const { statement } = unit;
    const transaction = this.transaction as Transaction;
    if (statement.kind === 'ddl') return this.#ddl(unit, transaction);
    if (transaction.isEvicted && !(await this.#options.conflicts.restore(this.#options.participant)))
      throw conflictFailure('data');
    if (transaction.isDetached && usesCopies(statement, transaction.copies.values()))
      return this.#onCopies(unit, transaction);
    if (statement.isCopyIn) return this.#copyIn(unit, transaction);
    if (await this.#needsCopies(statement, transaction))
      return this.#detach(unit, transaction, lockRefused, false);
    const held = await this.#attempt(unit, unit.bytes, transaction);
    if (held.error === undefined) return this.#accept(unit, held, transaction, false);
    const { code } = held.error;
    const isConflict = conflictStates.has(code);
    if (!isConflict || !this.#mayBeConflict(code, transaction))
      throw new StatementFailed(translate(held.error));
    await this.#detach(unit, transaction, code, true);
  }

  /**
   * A cascade in PostgreSQL follows the newest rows, and passes over those that others have changed since the snapshot. On copies it
   * follows those of the snapshot.
   */
  async #needsCopies(statement: JudgedStatement, transaction: Transaction): Promise<boolean> {
    const { conflicts } = this.#options;
    if (statement.kind !== 'write' || !conflicts.hasNewerCommits(transaction)) return false;
    return conflicts.haveDependents(statement.relations.filter(({ isChanged }) => isChanged));
  }

  /** A duplicate key is a conflict only where another transaction may have committed it since the snapshot. */
  #mayBeConflict(code: string, transaction: Transaction): boolean {
    return (
      code === lockRefused || code.startsWith('40') || this.#options.conflicts.hasNewerCommits(transaction)
    );
  }

  async #attempt(
    unit: Unit,
    bytes: Buffer,
    transaction: Transaction,
    leftOut: readonly number[] = [],
  ): Promise<HeldAnswer> {
    const { limits, cancel, conflicts, participant } = this.#options;
    if (unit.statement.kind === 'write') await conflicts.noteLocks(participant);
    const held = new HeldAnswer(
      { rows: limits.rows - transaction.rows, bytes: limits.bytes },
      cancel,
      leftOut,
    );
    const isLocking = unit.statement.locking !== 'none';
    const lockers = hidden('own_xids');
    const parts: Part[] = [hidden('savepoint'), { bytes, take: held.take }];
    if (isLocking) parts.push(lockers);
    parts.push(hidden('release'));
    await this.#link.exchange(parts);
    if (held.isTooMuch) throw fail('54000', 'transaction row limit exceeded');
    if (isLocking && held.error === undefined) {
      addLockers(transaction, lockers.answer.rows());
      noteLocked(unit.statement, transaction);
    }
    return held;
  }

  #accept({ statement }: Unit, held: HeldAnswer, transaction: Transaction, isOnCopies: boolean): void {
    for (const change of held.changes)
      (change.isInCopy ? transaction.detached : transaction.direct).push(change);
    transaction.rows += held.changes.length;
    transaction.bytes += held.changedBytes;
    transaction.hasDml ||= statement.kind === 'write' || statement.locking !== 'none';
    if (isOnCopies) transaction.hasDml ||= held.changes.length > 0;
    this.#options.send(held.bytes());
  }

  /** COPY FROM STDIN. Its rows are not kept, so that it can't be run again: it meets conflicts at once. */
  async #copyIn(unit: Unit, transaction: Transaction): Promise<void> {
    const { limits, cancel, send, next } = this.#options;
    const link = this.#link;
    const held = new HeldAnswer({ rows: limits.rows - transaction.rows, bytes: limits.bytes }, cancel);
    let isSynced = unit.unsynced === undefined;
    const end = (): void => {
      if (!isSynced) link.write(sync);
      isSynced = true;
    };
    const pump = async (): Promise<void> => {
      for (;;) {
        const message = await next();
        if (message === undefined) return link.close();
        const isOver = message.type === Frontend.copyDone || message.type === Frontend.copyFail;
        if (message.type === Frontend.copyData || isOver) link.write(message.bytes);
        if (isOver) return end();
      }
    };
    let rows: Promise<void> | undefined;
    const take: Take = (type, source, start, stop) => {
      if (type === Backend.copyInResponse) {
        send(source, start, stop);
        rows = pump();
        return;
      }
      held.take(type, source, start, stop);
      if (type === Backend.error && rows === undefined) end();
    };
    const bytes = unit.unsynced === undefined ? unit.bytes : Buffer.concat([unit.unsynced, flush]);
    await link.exchange([{ bytes, take }]);
    await rows;
    if (held.isTooMuch) throw fail('54000', 'transaction row limit exceeded');
    if (held.error !== undefined) throw new StatementFailed(translateCopy(held.error));
    this.#accept(unit, held, transaction, false);
  }

  /** Runs the statement on copies of its tables, because PostgreSQL refused it on the tables themselves. */
  async #detach(unit: Unit, transaction: Transaction, code: string, hasFailed: boolean): Promise<void> {
    const { conflicts, participant } = this.#options;
    if (hasFailed) await this.#link.exchange([hidden('rollback_to'), hidden('release')]);
    if (!(await conflicts.detach(participant, changedNames(unit.statement)))) {
      if (transaction.isImplicit && !transaction.hasDml && code === lockRefused) return this.#overtake(unit);
      throw conflictFailure('data');
    }
    // A row that has changed since the snapshot can't change back: the transaction is lost.
    if (code !== lockRefused) transaction.doom ??= 'data';
    await this.#onCopies(unit, transaction);
  }

  async #onCopies(unit: Unit, transaction: Transaction): Promise<void> {
    const sql = onCopies(unit.statement, transaction.copies.values());
    const bytes = unit.again(sql);
    if (bytes === undefined) throw conflictFailure('data');
    const held = await this.#attempt(unit, bytes, transaction, unit.leftOutAgain);
    if (held.error !== undefined) throw new StatementFailed(translate(held.error));
    this.#accept(unit, held, transaction, true);
  }

  /** A statement that commits by itself, on tables too large to copy: takes the locks of open transactions, which are all later. */
  async #overtake(unit: Unit): Promise<void> {
    const { conflicts, participant, limits, cancel, hooks } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const held = new HeldAnswer({ rows: limits.rows, bytes: limits.bytes }, cancel);
      await this.#leave();
      const transaction = new Transaction(hooks.now(), true, false);
      participant.transaction = transaction;
      conflicts.takeSnapshot(transaction);
      const lockers = hidden('own_xids');
      await conflicts.evicting(participant, 'data', () =>
        this.#link.exchange([
          hidden('begin'),
          hidden('wait_for_locks'),
          { bytes: unit.bytes, take: held.take },
          lockers,
        ]),
      );
      if (held.isTooMuch) throw fail('54000', 'transaction row limit exceeded');
      if (held.error === undefined) {
        if (unit.statement.locking !== 'none') {
          addLockers(transaction, lockers.answer.rows());
          noteLocked(unit.statement, transaction);
        }
        return this.#accept(unit, held, transaction, false);
      }
      if (!held.error.code.startsWith('40') || attempt === mostAttempts)
        throw new StatementFailed(translate(held.error));
    }
  }

  async #ddl(unit: Unit, transaction: Transaction): Promise<void> {
    const { conflicts, participant, dialect, limits, cancel } = this.#options;
    for (const check of unit.statement.checks) await this.#check(check);
    const held = new HeldAnswer({ rows: limits.rows, bytes: limits.bytes }, cancel);
    transaction.hasDdl = true;
    await conflicts.evicting(participant, 'schema', () =>
      this.#link.exchange([
        hidden('wait_for_locks'),
        { bytes: unit.bytes, take: held.take },
        hidden('refuse_locks'),
      ]),
    );
    if (held.error !== undefined) throw new StatementFailed(translate(held.error));
    await this.#check(dialect.limitCheck);
    this.#options.send(held.bytes());
  }

  /** A query that answers with a refusal, or with no row. */
  async #check(sql: string): Promise<void> {
    const part = command(sql);
    await this.#link.exchange([part]);
    const [[code, message] = []] = part.answer.rows();
    if (code !== undefined && code !== null)
      throw new StatementFailed(errorOf({ code, message: message ?? '' }));
  }

  /** CREATE INDEX ASYNC and the like: builds at once, and tells of a job that is done, or has failed. */
  async job(statement: JudgedStatement, id: string): Promise<void> {
    const { conflicts, participant, dialect } = this.#options;
    const { job } = statement;
    const transaction = this.transaction as Transaction;
    if (job === undefined) return;
    for (const check of statement.checks) await this.#check(check);
    transaction.hasDdl = true;
    const part = command(statement.sql);
    await conflicts.evicting(participant, 'schema', () =>
      this.#link.exchange([
        hidden('wait_for_locks'),
        hidden('savepoint'),
        part,
        hidden('release'),
        hidden('refuse_locks'),
      ]),
    );
    const { error } = part.answer;
    // What the rows are to blame for is found out by the job, after the statement has succeeded.
    const isOfRows = error?.code.startsWith('23') === true;
    if (error !== undefined && !isOfRows) throw new StatementFailed(translate(error));
    if (isOfRows) await this.#link.exchange([hidden('rollback_to'), hidden('release')]);
    await this.#check(dialect.limitCheck);
    const table = job.schema === undefined ? quoted(job.table) : `${quoted(job.schema)}.${quoted(job.table)}`;
    const name = job.object ?? job.table;
    await runHidden(this.#link, 'add_job', [
      id,
      isOfRows ? 'failed' : 'completed',
      error?.message ?? null,
      job.type,
      table,
      name,
    ]);
  }

  /** The settings of a statement are to be made again when PostgreSQL's transaction is begun anew. */
  keepSetting(statement: JudgedStatement): void {
    if (statement.kind === 'session') this.transaction?.settings.push(statement.sql);
  }

  /** After DEALLOCATE ALL, which ends the stand-in's own statements too. */
  async prepareAgain(): Promise<void> {
    await prepareHidden(this.#link);
  }

  #checkAge({ beganAt }: Transaction): void {
    const { hooks, limits } = this.#options;
    const age = hooks.now() - beganAt;
    if (age <= limits.ageMs) return;
    const most = Math.round(limits.ageMs / 1_000);
    throw fail(
      '54000',
      `transaction age limit of ${most}s exceeded`,
      `Current transaction age ${Math.floor(age / 1_000)}s exceeds ${most}s`,
    );
  }
}

function sizeExceeded(bytes: number, most: number): StatementFailed {
  const mb = (value: number): number => Math.ceil(value / 1_048_576);
  return fail(
    '54000',
    `transaction size limit ${mb(most)}mb exceeded`,
    `Current transaction size ${mb(bytes)}mb > ${mb(most)}mb`,
  );
}

function translateCopy(fields: ErrorFields): ErrorFields {
  return fields.code === lockRefused ? conflictErrors.data : translate(fields);
}

/** Tables that the statement changes or locks, as they can be looked up. */
function changedNames({ relations }: JudgedStatement): string[] {
  return relations
    .filter(({ isChanged }) => isChanged)
    .map(({ schema, name }) => (schema === undefined ? quoted(name) : `${quoted(schema)}.${quoted(name)}`));
}

function noteLocked({ relations }: JudgedStatement, { lockedTables }: Transaction): void {
  for (const { isChanged, schema, name } of relations)
    if (isChanged) lockedTables.set(`${schema ?? ''} ${name}`, { schema, name });
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

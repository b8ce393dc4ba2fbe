/** Runs statements that change or lock rows: on the tables, or on copies of them where another transaction is in the way. */

import type { JudgedStatement } from '../../dialect/judgement.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { addLockers } from '../conflicts/conflicts.js';
import type { Participant } from '../conflicts/participant.js';
import { SizeExceeded, type SizeExcess } from '../conflicts/row-sizes.js';
import { Transaction } from '../conflicts/transaction.js';
import { hidden } from '../postgres/hidden-commands.js';
import type { Part } from '../postgres/link.js';
import { copyIn } from './copy-in.js';
import { conflictFailure, fail, keyTooLarge, lockRefused, StatementFailed, translate } from './errors.js';
import { HeldAnswer } from './held-answer.js';
import { leaveTransaction } from './leave-transaction.js';
import { changedNames, noteLocked } from './relation-names.js';
import type { RunOptions } from './run-options.js';
import { onCopies, type Unit, type UnitOnCopies, usesCopies } from './unit.js';

/** Errors that PostgreSQL raises where DSQL lets the statement through and refuses COMMIT. */
const conflictStates = new Set([lockRefused, '40001', '40P01', '23505', '23503', '23P01']);
/** An autocommitted statement that meets changes again and again gives up after so many times. */
const mostAttempts = 5;

export class CarefulRun {
  readonly #options: RunOptions;

  constructor(options: RunOptions) {
    this.#options = options;
  }

  /** The transaction is there. The answer is sent when it is certain. */
  async run(unit: Unit, transaction: Transaction): Promise<void> {
    const { statement } = unit;
    const { conflicts, participant } = this.#options;
    if (transaction.isEvicted && !(await conflicts.restore(participant))) throw conflictFailure('data');
    if (transaction.isDetached && usesCopies(statement, transaction.copies.values()))
      return this.#onCopies(unit, transaction);
    if (statement.isCopyIn) return this.#copyIn(unit, transaction);
    if (await this.#needsCopies(statement, transaction))
      return this.#detach(unit, transaction, lockRefused, undefined);
    const wasAlone = isAlone(transaction, participant);
    const held = await this.#attempt(unit, unit.bytes, transaction);
    if (held.error === undefined) return this.#accept(unit, held, transaction);
    const { code } = held.error;
    const isConflict = conflictStates.has(code);
    if (!isConflict || !this.#mayBeConflict(code, transaction)) throw failureOf(held, held.error);
    if (wasAlone) return this.#overtake(unit, held);
    await participant.exchange([hidden('rollback_to'), hidden('release')]);
    await this.#detach(unit, transaction, code, held);
  }

  /** On copies where the transaction has any; a conflict with another's rows fails at once. */
  async #copyIn(unit: Unit, transaction: Transaction, again?: UnitOnCopies): Promise<void> {
    const held = await copyIn(again ?? unit, transaction, this.#options, again?.leftOut);
    await held.settle();
    if (held.error === undefined) return this.#accept(unit, held, transaction);
    held.send();
    throw held.error.code === lockRefused
      ? conflictFailure('data')
      : new StatementFailed(translate(held.error));
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
    const { conflicts, participant } = this.#options;
    if (unit.statement.kind === 'write') await conflicts.noteLocks(participant);
    const held = new HeldAnswer(this.#options, transaction.rows, leftOut);
    const savepoint = hidden('savepoint');
    const isLocking = unit.statement.locking !== 'none';
    const lockers = hidden('own_xids');
    const parts: Part[] = [{ bytes, take: held.take }];
    if (isLocking) parts.push(lockers);
    // A statement that is alone in its transaction needs no savepoint.
    if (!isAlone(transaction, participant)) {
      parts.unshift(savepoint);
      parts.push(hidden('release'));
    }
    await participant.exchange(parts);
    await held.settle();
    // A cancel request can come between the client's statements.
    held.error = savepoint.answer.error ?? held.error;
    if (isLocking && held.error === undefined) {
      addLockers(transaction, lockers.answer.rows());
      noteLocked(unit.statement, transaction);
    }
    return held;
  }

  async #accept({ statement }: Unit, held: HeldAnswer, transaction: Transaction): Promise<void> {
    try {
      await this.#options.conflicts.checkSizes(held.changes);
    } catch (error) {
      throw error instanceof SizeExceeded ? tooLarge(error.excess) : error;
    }
    for (const change of held.changes)
      (change.isInCopy ? transaction.detached : transaction.direct).push(change);
    transaction.rows += held.changes.length;
    transaction.bytes += held.changedBytes;
    transaction.hasDml ||= statement.kind === 'write' || statement.locking !== 'none';
    held.send();
  }

  /** Runs the statement on copies of its tables, because PostgreSQL refused it on the tables themselves. */
  async #detach(
    unit: Unit,
    transaction: Transaction,
    code: string,
    failed: HeldAnswer | undefined,
  ): Promise<void> {
    const { conflicts, participant } = this.#options;
    await participant.exchange([]);
    if (!(await conflicts.detach(participant, changedNames(unit.statement)))) throw conflictFailure('data');
    // A row that has changed since the snapshot can't change back: the transaction is lost.
    if (code !== lockRefused) transaction.doom ??= 'data';
    await this.#onCopies(unit, transaction, failed?.isParsed ?? false);
  }

  async #onCopies(unit: Unit, transaction: Transaction, isParsed = false): Promise<void> {
    const sql = onCopies(unit.statement, transaction.copies.values());
    const again = unit.again(sql, isParsed);
    if (again === undefined) throw conflictFailure('data');
    if (unit.statement.isCopyIn) return this.#copyIn(unit, transaction, again);
    const held = await this.#attempt(unit, again.bytes, transaction, again.leftOut);
    if (held.error !== undefined) throw failureOf(held, held.error);
    await this.#accept(unit, held, transaction);
  }

  /** A statement that commits by itself: takes the locks of open transactions, which all commit later, and has a new snapshot. */
  async #overtake(unit: Unit, failed: HeldAnswer): Promise<void> {
    let { isParsed } = failed;
    const { conflicts, participant, hooks } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const again = unit.again(unit.statement.sql, isParsed);
      if (again === undefined) throw conflictFailure('data');
      const held = new HeldAnswer(this.#options, 0, again.leftOut);
      await leaveTransaction(this.#options);
      const transaction = new Transaction(hooks.now(), true, false);
      const lockers = hidden('own_xids');
      const work = (): Promise<unknown> => {
        participant.transaction = transaction;
        conflicts.takeSnapshot(transaction);
        return participant.exchange([
          hidden('begin'),
          hidden('wait_for_locks'),
          { bytes: again.bytes, take: held.take },
          hidden('refuse_locks'),
          lockers,
        ]);
      };
      await (this.#options.isLast()
        ? conflicts.evictingToTheEnd(participant, work)
        : conflicts.evicting(participant, 'data', work));
      await held.settle();
      isParsed ||= held.isParsed;
      if (held.error === undefined) {
        if (unit.statement.locking !== 'none') {
          addLockers(transaction, lockers.answer.rows());
          noteLocked(unit.statement, transaction);
        }
        return this.#accept(unit, held, transaction);
      }
      if (!held.error.code.startsWith('40') || attempt === mostAttempts) throw failureOf(held, held.error);
    }
  }
}

/** The only statement of a transaction that the stand-in has begun for it. */
function isAlone({ isImplicit }: Transaction, { pendingBegin }: Participant): boolean {
  return isImplicit && pendingBegin !== undefined;
}

function tooLarge(excess: SizeExcess): StatementFailed {
  return excess === 'key' ? new StatementFailed(keyTooLarge) : fail('54000', 'maximum row size exceeded');
}

/** The client has what PostgreSQL answered before the error. */
function failureOf(held: HeldAnswer, error: ErrorFields): StatementFailed {
  held.send();
  return new StatementFailed(translate(error));
}

/**
 * Decides which transactions conflict, as Aurora DSQL does: no transaction waits for a lock, and the earliest COMMIT wins.
 *
 * Transactions run in PostgreSQL at REPEATABLE READ with a lock timeout of milliseconds. A statement that meets another's lock, or
 * a row that changed since its snapshot, is run on copies of the tables in place (`detach`). At COMMIT its changes are made
 * in the tables; transactions that still have locks there are evicted.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { quoteName } from '../../sql/quote.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { arrayText, hidden, runHidden } from '../postgres/hidden-commands.js';
import { type Link, ServerError } from '../postgres/link.js';
import { OwnState } from '../postgres/setup.js';
import type { Change } from './changes.js';
import { type Claim, Claims, claimsOfChange, claimsOfLock } from './claims.js';
import { evict } from './eviction.js';
import type { Participant } from './participant.js';
import { type Relation, Relations } from './relations.js';
import { checkSizeOf, mayBeTooLarge } from './row-sizes.js';
import type { Conflict, Transaction } from './transaction.js';
import { Turn } from './turn.js';

export interface ConflictSettings {
  /** Bytes of tables that are copied for one conflict at most. Beyond, the statement itself fails. */
  readonly copyLimit: number;
  /** How long a COMMIT waits for a statement of a transaction that it evicts, before it has it cancelled. */
  readonly patienceMs: number;
}

/** The outcome of COMMIT: nothing, a conflict, or an error of PostgreSQL's own. */
export type CommitOutcome = { readonly conflict?: Conflict; readonly error?: ErrorFields };

const pollMs = 1;

export class Conflicts {
  /** Transactions that committed changes or locks. */
  commits = 0;
  /** Grows with each committed DDL statement. */
  catalog = 0;
  readonly #participants = new Map<number, Participant>();
  readonly #claims = new Claims();
  readonly #relations = new Relations();
  /** Commits that may have to evict others go one by one. */
  readonly #evicting = new Turn();
  readonly #watch: Link;
  /** Questions to the catalog, and to PostgreSQL's locks. */
  readonly #asking = new Turn();
  readonly #keeper: Link;
  readonly #settings: ConflictSettings;

  /** Two connections of its own: one to ask who blocks whom, one to keep snapshots. */
  constructor(watch: Link, keeper: Link, settings: ConflictSettings) {
    this.#watch = watch;
    this.#keeper = keeper;
    this.#settings = settings;
  }

  join(participant: Participant): void {
    this.#participants.set(participant.link.processId, participant);
  }

  leave(participant: Participant): void {
    participant.transaction?.endTurn?.();
    this.#participants.delete(participant.link.processId);
    this.#forgetClaims();
  }

  /** The transaction runs its first statement now. */
  takeSnapshot(transaction: Transaction): void {
    if (transaction.snapshot !== undefined) return;
    transaction.snapshot = this.commits;
    transaction.catalog = this.catalog;
  }

  /** True if anything was committed since, so that an error may be a conflict in truth. */
  hasNewerCommits({ snapshot }: Transaction): boolean {
    return snapshot !== undefined && snapshot !== this.commits;
  }

  /**
   * Copies these tables, named as in the statement, for the rest of the transaction. False: that is not possible, and the statement
   * has to fail with the conflict.
   */
  async detach(participant: Participant, names: readonly string[]): Promise<boolean> {
    const { link, transaction } = participant;
    if (transaction === undefined || names.length === 0) return false;
    const rows = await runHidden(link, 'resolve', [arrayText(names)]);
    const ids = rows.map(([id]) => Number(id));
    return this.#copy(participant, ids);
  }

  /** After an eviction: copies the tables that the transaction had changed, and makes its changes in the copies. */
  async restore(participant: Participant): Promise<boolean> {
    const { link, transaction } = participant;
    if (transaction === undefined || !transaction.isEvicted) return true;
    const { changes } = transaction;
    transaction.isEvicted = false;
    const ids = [...new Set(changes.map(({ table }) => table))];
    if (ids.length === 0) return true;
    if (!(await this.#copy(participant, ids))) return false;
    await runHidden(link, 'apply_changes', applyValues(true, changes));
    return true;
  }

  /** Runs work on the participant's connection that waits for locks, and evicts the transactions that have them. */
  async evicting<T>(participant: Participant, conflict: Conflict, work: () => Promise<T>): Promise<T> {
    const end = await this.#takeTurn(participant);
    try {
      return await this.#evictFor(participant, conflict, work());
    } finally {
      end();
    }
  }

  /** As `evicting()`, and no other transaction commits until the transaction that `work` has begun is over. */
  async evictingToTheEnd<T>(participant: Participant, work: () => Promise<T>): Promise<T> {
    const end = await this.#takeTurn(participant);
    try {
      return await this.#evictFor(participant, 'data', work());
    } finally {
      if (participant.transaction === undefined) end();
      else participant.transaction.endTurn = end;
    }
  }

  async #takeTurn(participant: Participant): Promise<() => void> {
    return participant.transaction?.endTurn ?? (await participant.waitFor(this.#evicting.take()));
  }

  async commit(participant: Participant): Promise<CommitOutcome> {
    const { transaction, link } = participant;
    if (transaction === undefined) return {};
    if (participant.pendingBegin !== undefined) {
      participant.pendingBegin = undefined;
      return {};
    }
    if (transaction.isPlain && !this.#needsLook(transaction)) return this.#finish(participant, []);
    if (transaction.doom !== undefined) return this.#rollBack(participant, transaction.doom);
    const end = await this.#takeTurn(participant);
    try {
      // Another may have evicted it while it waited.
      const { doom } = transaction;
      if (doom !== undefined) return await this.#rollBack(participant, doom);
      if (this.#isStale(transaction)) return await this.#rollBack(participant, 'schema');
      const claims = await this.#claimsOf(transaction, link);
      if (this.#claims.conflictWith(transaction.snapshot ?? this.commits, claims))
        return await this.#rollBack(participant, 'data');
      if (transaction.detached.length > 0 && !(await this.#apply(participant, transaction)))
        return await this.#rollBack(participant, 'data');
      return await this.#finish(participant, this.#hasOthersOpen(participant) ? claims : []);
    } finally {
      end();
    }
  }

  #isStale({ snapshot, catalog }: Transaction): boolean {
    return snapshot !== undefined && catalog !== this.catalog;
  }

  /** True if anything but PostgreSQL has a say in this COMMIT. */
  #needsLook(transaction: Transaction): boolean {
    const { snapshot, lockedTables, lockClaims, direct } = transaction;
    if (snapshot === undefined) return false;
    if (this.#isStale(transaction)) return true;
    if (lockedTables.size === 0 && lockClaims.length === 0 && direct.length === 0) return false;
    return this.#claims.size > 0 || this.#openCount() > 1;
  }

  #openCount(): number {
    let count = 0;
    for (const { transaction } of this.#participants.values())
      if (transaction?.snapshot !== undefined) count += 1;
    return count;
  }

  #hasOthersOpen(participant: Participant): boolean {
    for (const other of this.#participants.values())
      if (other !== participant && other.transaction?.snapshot !== undefined) return true;
    return false;
  }

  async #copy({ link, transaction }: Participant, ids: readonly number[]): Promise<boolean> {
    if (transaction === undefined) return false;
    const existing = [...transaction.copies.keys()];
    const wanted = ids.filter((id) => !transaction.copies.has(id));
    const part = hidden('copy_tables', [
      arrayText(wanted),
      arrayText(existing),
      String(this.#settings.copyLimit),
    ]);
    await link.exchange([hidden('savepoint'), part, hidden('release')]);
    const { error } = part.answer;
    if (error !== undefined) {
      if (error.code !== OwnState.tooLarge && error.code !== OwnState.ambiguous) throw new ServerError(error);
      await link.exchange([hidden('rollback_to'), hidden('release')]);
      return false;
    }
    for (const [id, schema, name] of part.answer.rows())
      transaction.copies.set(Number(id), { schema: schema ?? '', name: name ?? '' });
    return true;
  }

  /** Makes the changes of the copies in the tables. False: a conflict. */
  async #apply(participant: Participant, transaction: Transaction): Promise<boolean> {
    const { link } = participant;
    await link.exchange([hidden('wait_for_locks'), hidden('leave_copies')]);
    const part = hidden('apply_changes', applyValues(false, transaction.detached));
    await this.#evictFor(participant, 'data', link.exchange([part]));
    return part.answer.error === undefined;
  }

  async #evictFor<T>(participant: Participant, conflict: Conflict, work: Promise<T>): Promise<T> {
    let isDone = false;
    const done = work.then(
      () => {
        isDone = true;
      },
      () => {
        isDone = true;
      },
    );
    const { processId } = participant.link;
    for (;;) {
      await Promise.race([done, delay(pollMs)]);
      if (isDone) return work;
      // A participant that has another transaction when the answer comes is not in the way any more.
      const asked = new Map([...this.#participants].map(([pid, { transaction }]) => [pid, transaction]));
      const rows = await this.#ask(`SELECT unnest(pg_blocking_pids(${processId}))`);
      for (const [pid] of rows) {
        const blocker = this.#participants.get(Number(pid));
        if (blocker === undefined || blocker === participant) continue;
        await this.#evictOne(blocker, asked.get(Number(pid)), conflict);
      }
    }
  }

  async #evictOne(
    blocker: Participant,
    transaction: Transaction | undefined,
    conflict: Conflict,
  ): Promise<void> {
    const patience = new AbortController();
    const cancel = delay(this.#settings.patienceMs, undefined, { signal: patience.signal, ref: false }).then(
      () => {
        blocker.interruption = conflict;
        return this.#ask(`SELECT pg_cancel_backend(${blocker.link.processId})`);
      },
      () => {},
    );
    try {
      await blocker.turn.run(async () => {
        if (blocker.transaction !== transaction) return;
        if (conflict === 'data') await this.noteLocks(blocker);
        await evict(blocker, conflict, this.#keeper);
      });
    } catch (error) {
      // Gone, or in a transaction that has failed: either way it has no locks.
      if (!(error instanceof ServerError) && !blocker.link.isClosed) throw error;
    } finally {
      patience.abort();
      await cancel;
    }
  }

  async #rollBack({ link }: Participant, conflict: Conflict): Promise<CommitOutcome> {
    await runHidden(link, 'rollback');
    return { conflict };
  }

  async #finish({ link, transaction }: Participant, claims: readonly Claim[]): Promise<CommitOutcome> {
    // Before COMMIT, so that a snapshot of the time between is taken for one that has not seen it.
    this.#claims.add(this.commits + 1, claims);
    const part = hidden('commit');
    await link.exchange([part]);
    const hasChanges = transaction !== undefined && (transaction.hasDml || transaction.direct.length > 0);
    if (hasChanges || claims.length > 0) this.commits += 1;
    const { error } = part.answer;
    if (error !== undefined) return { error };
    if (transaction?.hasDdl) this.catalog += 1;
    return {};
  }

  async #claimsOf(transaction: Transaction, link: Link): Promise<Claim[]> {
    await this.#readRelations();
    const claims: Claim[] = [];
    for (const change of transaction.changes) {
      const relation = this.#relations.get(change.table);
      if (relation !== undefined) claims.push(...claimsOfChange(relation, change));
    }
    await this.#noteLocks(transaction, link);
    claims.push(...transaction.lockClaims);
    return claims;
  }

  /** Asks PostgreSQL which rows are locked, before the transaction changes any: a changed row has no lock any more. */
  async noteLocks({ transaction, link }: Participant): Promise<void> {
    if (transaction === undefined || transaction.lockedTables.size === 0) return;
    await this.#readRelations();
    await this.#noteLocks(transaction, link);
  }

  async #noteLocks(transaction: Transaction, link: Link): Promise<void> {
    const tables = [...transaction.lockedTables.values()];
    transaction.lockedTables.clear();
    for (const { schema, name } of tables)
      for (const relation of this.#relations.named(name, schema))
        transaction.lockClaims.push(...(await this.#locksOf(relation, transaction, link)));
  }

  /** Rows of a table, and of its copy, that the transaction has locked. */
  async #locksOf(relation: Relation, transaction: Transaction, link: Link): Promise<Claim[]> {
    const ids = [relation.id];
    if (transaction.copies.has(relation.id)) {
      const [[copy] = []] = await runHidden(link, 'resolve', [
        arrayText([`pg_temp.${quoteName(relation.name)}`]),
      ]);
      ids.push(Number(copy));
    }
    const claims: Claim[] = [];
    for (const id of ids) {
      const rows = await runHidden(link, 'locked_rows', [String(id), arrayText([...transaction.lockerIds])]);
      for (const [row, isExclusive] of rows)
        claims.push(...claimsOfLock(relation, row ?? '', isExclusive === 't' ? 'strong' : 'share'));
    }
    return claims;
  }

  /** Throws if a row or a key is larger than DSQL takes. */
  async checkSizes(changes: readonly Change[]): Promise<void> {
    if (!changes.some(mayBeTooLarge)) return;
    await this.#readRelations();
    for (const change of changes) {
      const relation = this.#relations.get(change.table);
      if (relation !== undefined) checkSizeOf(relation, change);
    }
  }

  /** True if other tables have foreign keys to one of these. */
  async haveDependents(
    names: readonly { readonly schema: string | undefined; readonly name: string }[],
  ): Promise<boolean> {
    await this.#readRelations();
    return names.some(({ schema, name }) =>
      this.#relations.named(name, schema).some(({ id }) => this.#relations.isReferred(id)),
    );
  }

  #ask(sql: string): Promise<(string | null)[][]> {
    return this.#asking.run(() => this.#watch.query(sql));
  }

  #readRelations(): Promise<void> {
    return this.#asking.run(() => this.#relations.read(this.#watch, this.catalog));
  }

  #forgetClaims(): void {
    let oldest = this.commits;
    for (const { transaction } of this.#participants.values())
      oldest = Math.min(oldest, transaction?.snapshot ?? oldest);
    this.#claims.forgetUpTo(oldest);
  }

  /** The transaction is over, one way or the other. */
  ended(participant: Participant): void {
    participant.transaction?.endTurn?.();
    participant.transaction = undefined;
    if (this.#claims.size > 0) this.#forgetClaims();
  }
}

/** Remembers under which ids PostgreSQL may hold the transaction's row locks. */
export function addLockers(transaction: Transaction, rows: readonly (readonly (string | null)[])[]): void {
  for (const id of (rows[0]?.[0] ?? '{}').slice(1, -1).split(','))
    if (id !== '') transaction.lockerIds.add(id);
}

function applyValues(toCopies: boolean, changes: readonly Change[]): string[] {
  return [
    toCopies ? 't' : 'f',
    arrayText(changes.map(({ table }) => table)),
    arrayText(changes.map(({ operation }) => operation)),
    arrayText(changes.map(({ before }) => before)),
    arrayText(changes.map(({ after }) => after)),
  ];
}

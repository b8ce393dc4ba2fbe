/**
 * Decides which transactions conflict, as Aurora DSQL does: nobody waits for a lock, and the earliest COMMIT wins.
 *
 * Transactions run in PostgreSQL at REPEATABLE READ with a lock timeout of milliseconds. A statement that meets another's lock, or
 * a row that changed since its snapshot, is run on copies of the tables in place (`detach`). At COMMIT its changes are made
 * in the tables; whoever still has locks there is evicted.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ErrorFields } from '../../wire/error-fields.js';
import { arrayText, hidden, runHidden } from '../postgres/hidden-commands.js';
import { Answer, type Link, ServerError } from '../postgres/link.js';
import { OwnState } from '../postgres/setup.js';
import type { Change } from './changes.js';
import { evict } from './eviction.js';
import type { Participant } from './participant.js';
import { Relations } from './relations.js';
import { conflictsWithChange, excludes, lockOf, parentLocks, type RowLock, Traces } from './traces.js';
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
  readonly #traces = new Traces();
  readonly #relations = new Relations();
  /** Commits that may have to evict others go one by one. */
  readonly #evicting = new Turn();
  readonly #watch: Link;
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
    this.#participants.delete(participant.link.processId);
    this.#forgetTraces();
  }

  /** The transaction runs its first statement now. */
  takeSnapshot(transaction: Transaction): void {
    if (transaction.snapshot !== undefined) return;
    transaction.snapshot = this.commits;
    transaction.catalog = this.catalog;
  }

  /** Whether anything was committed since, so that an error may be a conflict in truth. */
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
    const changes = [...transaction.direct, ...transaction.detached];
    transaction.isEvicted = false;
    const ids = [...new Set(changes.map(({ table }) => table))];
    if (ids.length === 0) return true;
    if (!(await this.#copy(participant, ids))) return false;
    await runHidden(link, 'apply_changes', applyValues(true, changes));
    return true;
  }

  /** Runs work on the participant's connection that waits for locks, and evicts whoever has them. */
  async evicting<T>(participant: Participant, conflict: Conflict, work: () => Promise<T>): Promise<T> {
    const end = await participant.waitFor(this.#evicting.take());
    try {
      return await this.#evictFor(participant, conflict, work());
    } finally {
      end();
    }
  }

  async commit(participant: Participant): Promise<CommitOutcome> {
    const { transaction, link } = participant;
    if (transaction === undefined) return {};
    if (transaction.isPlain && !this.#needsLook(transaction)) return this.#finish(participant, []);
    if (transaction.doom !== undefined) return this.#rollBack(participant, transaction.doom);
    const end = await participant.waitFor(this.#evicting.take());
    try {
      // Another may have evicted it while it waited.
      const { doom } = transaction;
      if (doom !== undefined) return await this.#rollBack(participant, doom);
      if (this.#isStale(transaction)) return await this.#rollBack(participant, 'schema');
      if (transaction.isDetached && !(await this.#apply(participant, transaction)))
        return await this.#rollBack(participant, 'data');
      await this.#relations.read(this.#watch, this.catalog);
      const locks = await this.#locksOf(transaction, link);
      if (this.#meetsTrace(transaction, locks)) return await this.#rollBack(participant, 'data');
      return await this.#finish(participant, this.#hasOthersOpen(participant) ? locks : []);
    } finally {
      end();
    }
  }

  #isStale({ snapshot, catalog }: Transaction): boolean {
    return snapshot !== undefined && catalog !== this.catalog;
  }

  /** Whether anything but PostgreSQL has a say in this COMMIT. */
  #needsLook(transaction: Transaction): boolean {
    const { snapshot, lockedTables, direct } = transaction;
    if (snapshot === undefined) return false;
    if (this.#isStale(transaction)) return true;
    if (lockedTables.size === 0 && direct.length === 0) return false;
    return this.#traces.size > 0 || this.#openCount() > 1;
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
    const names = [...transaction.copies.values()].map(({ name }) => name);
    const drop = hidden('drop_copies', [arrayText(names)]);
    await link.exchange([hidden('wait_for_locks'), drop]);
    drop.answer.rows();
    for (const { bytes } of transaction.keptLocks) {
      const answer = new Answer();
      await this.#evictFor(participant, 'data', link.exchange([{ bytes, take: answer.take }]));
      if (answer.error !== undefined) return false;
    }
    const part = hidden('apply_changes', applyValues(false, transaction.detached));
    const xids = hidden('own_xids');
    await this.#evictFor(participant, 'data', link.exchange([part, xids]));
    if (part.answer.error !== undefined) return false;
    if (transaction.keptLocks.length > 0) addLockers(transaction, xids.answer.rows());
    transaction.direct.push(...transaction.detached);
    return true;
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
      const rows = await this.#watch.query(`SELECT unnest(pg_blocking_pids(${processId}))`);
      for (const [pid] of rows) {
        const blocker = this.#participants.get(Number(pid));
        if (blocker !== undefined && blocker !== participant) await this.#evictOne(blocker, conflict);
      }
    }
  }

  async #evictOne(blocker: Participant, conflict: Conflict): Promise<void> {
    const patience = new AbortController();
    const cancel = delay(this.#settings.patienceMs, undefined, { signal: patience.signal, ref: false }).then(
      () => this.#watch.query(`SELECT pg_cancel_backend(${blocker.link.processId})`),
      () => {},
    );
    try {
      await blocker.turn.run(() => evict(blocker, conflict, this.#keeper));
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

  async #finish({ link, transaction }: Participant, locks: readonly RowLock[]): Promise<CommitOutcome> {
    // Before COMMIT: whoever gets a lock that it releases has to find them.
    if (locks.length > 0) this.#traces.add(this.commits + 1, locks);
    const changes =
      transaction !== undefined && (transaction.direct.length > 0 || locks.length > 0 || transaction.hasDml);
    if (changes) this.commits += 1;
    const part = hidden('commit');
    await link.exchange([part]);
    const { error } = part.answer;
    if (error !== undefined) return { error };
    if (transaction?.hasDdl) this.catalog += 1;
    return {};
  }

  /** Rows that the transaction has locked and not changed, parents of changed rows among them. */
  async #locksOf(transaction: Transaction, link: Link): Promise<RowLock[]> {
    const locks = transaction.direct.flatMap((change) => {
      const relation = this.#relations.get(change.table);
      return relation === undefined ? [] : parentLocks(relation, change);
    });
    if (transaction.lockedTables.size === 0) return locks;
    const ids = await runHidden(link, 'resolve', [arrayText([...transaction.lockedTables])]);
    for (const [id] of ids) {
      const relation = this.#relations.get(Number(id));
      if (relation === undefined) continue;
      const rows = await runHidden(link, 'locked_rows', [String(id), arrayText([...transaction.lockerIds])]);
      for (const [row, isExclusive] of rows)
        locks.push(lockOf(relation, row ?? '', isExclusive === 't' ? 'update' : 'key_share'));
    }
    return locks;
  }

  #meetsTrace(transaction: Transaction, locks: readonly RowLock[]): boolean {
    const { snapshot, direct } = transaction;
    if (snapshot === undefined || this.#traces.size === 0) return false;
    const newer = this.#traces.newerThan(snapshot);
    const meetsChange = (trace: RowLock, change: Change): boolean => {
      const relation = this.#relations.get(change.table);
      return relation !== undefined && conflictsWithChange(trace, change, relation);
    };
    return newer.some(
      (trace) =>
        direct.some((change) => meetsChange(trace, change)) || locks.some((lock) => excludes(trace, lock)),
    );
  }

  #forgetTraces(): void {
    let oldest = this.commits;
    for (const { transaction } of this.#participants.values())
      oldest = Math.min(oldest, transaction?.snapshot ?? oldest);
    this.#traces.forgetBefore(oldest);
  }

  /** The transaction is over, one way or the other. */
  ended(participant: Participant): void {
    participant.transaction = undefined;
    if (this.#traces.size > 0) this.#forgetTraces();
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

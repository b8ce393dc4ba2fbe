/**
 * The short way for what comes most of the time: one batch that runs one plain statement, from Parse or Bind to Sync, of a client that has no
 * server. It is recognised as a whole, by what came before, and passed on as a whole.
 */
import { systemClock } from '../../../runtime/system.js';
import { findZero, int32At } from '../../../wire/bytes.js';
import { BindView } from '../../../wire/frontend-views.js';
import { isLoneRun } from '../../../wire/lone-run.js';
import { Frontend, headerBytes } from '../../../wire/message-types.js';
import { writeRenamed } from '../../../wire/rename-statement.js';
import type { ScanRules } from '../../../wire/scan-rules.js';
import type { Backend } from '../../servers/backend.js';
import type { StandIn } from '../../servers/repeated-statement.js';
import { Asked } from '../../servers/reply-queue.js';
import type { ServerCopy } from '../../servers/server-statements.js';
import { ClientStatements, type NamedByClient } from './client-statements.js';
import { RepeatableBatch } from './repeatable-batch.js';
import { type StatementOwner, StatementPreparer } from './statement-preparer.js';
import { UnnamedRelay } from './unnamed-relay.js';

const bindView = new BindView();
const noName = Buffer.alloc(0);
/** Statements with longer names take the long way. */
const longestName = 256;

/** The relay of a client's statements is one of these itself: one object less to touch for each query. */
export abstract class PlainBatches {
  protected readonly owner: StatementOwner;
  protected readonly named: ClientStatements;
  protected readonly unnamed: UnnamedRelay;
  protected readonly preparer: StatementPreparer;
  /** From Bind on, while something stands in for the statement that it is about. */
  readonly #standInRun = new RepeatableBatch();

  #mayAskAgain = false;

  constructor(owner: StatementOwner) {
    this.owner = owner;
    this.named = new ClientStatements(owner.pool.statements);
    this.unnamed = new UnnamedRelay(owner.pool.repeated);
    this.preparer = new StatementPreparer(owner, this.named);
  }

  /** Named statements have names of the pooler's on servers. */
  protected abstract get renames(): boolean;

  /** The last batch may have to be sent again: the next message has to wait for its answer. */
  get mayAskAgain(): boolean {
    return this.#mayAskAgain;
  }

  /** The last batch need not be sent again. */
  protected answered(): void {
    if (!this.#mayAskAgain) return;
    this.#mayAskAgain = false;
    this.#standInRun.forget();
  }

  /** Whether all of this is one batch that runs a statement which does nothing to the session, and has been seen before. */
  isPlain(source: Buffer, start: number, end: number, { longestLength }: ScanRules): boolean {
    // A Bind is in both.
    if (end - start > (longestLength[Frontend.bind] as number)) return false;
    if (source[start] === Frontend.parse) return this.#isPlainTurn(source, start, end);
    return source[start] === Frontend.bind && this.renames && this.#isPlainRun(source, start, end);
  }

  /** A plain batch is written for the server; false when the messages have to be passed on one after the other. */
  protected ask(backend: Backend, source: Buffer, start: number, end: number): boolean {
    if (source[start] === Frontend.bind) return this.#askPlainRun(backend, source, start, end);
    const standIn = this.#findStandIn();
    if (standIn !== undefined) this.#askStandIn(backend, standIn, source, start, end);
    else {
      this.#expectPlainTurn(backend);
      backend.toServer.add(source, start, end);
    }
    return true;
  }

  /** The prepared statement that is run in place of the last plain one, if there is one. */
  #findStandIn(): StandIn | undefined {
    const { pool } = this.owner;
    const { repeated } = this.unnamed;
    if (repeated === undefined || !pool.plan.preparesUnnamed) return undefined;
    return pool.repeated.use(repeated, systemClock.coarse());
  }

  /** The client's Parse stays here: the server has the statement under a name of the pooler's, or gets it first. */
  #askStandIn(backend: Backend, standIn: StandIn, source: Buffer, start: number, end: number): void {
    const { pool } = this.owner;
    const { statement, unnamed, previous } = standIn;
    pool.tally.clientParses++;
    pool.tally.binds++;
    if (previous !== undefined) backend.statements.drop(previous);
    const copy = backend.statements.find(statement) ?? this.preparer.prepareStandIn(backend, statement);
    const bind = start + (unnamed.parse as Buffer).length;
    this.#mayAskAgain = true;
    this.#standInRun.keep(source, bind, end);
    this.owner.running?.asks(unnamed, backend.replies.owesTurn);
    backend.expectWhole(Asked.standInTurn, standIn);
    writeRun(backend, source, bind, end, copy);
  }

  /** The last batch, as the client sent it: nothing stands in for its statement. */
  askAgain(backend: Backend): void {
    const { bytes } = this.#standInRun;
    const { plain } = this.unnamed;
    this.owner.pool.tally.serverParses++;
    backend.expectWhole(Asked.wholeTurn, plain);
    const writer = backend.toServer.mix();
    writer.append(plain?.parse as Buffer);
    writer.append(bytes);
    this.answered();
  }

  /** A batch of the unnamed statement, from Parse to Sync, that was plain when it was prepared last. */
  #isPlainTurn(source: Buffer, start: number, end: number): boolean {
    // Each of them is described then.
    if (this.owner.pool.repeated.areBoundAgain) return false;
    const { settings } = this.owner.settings;
    const bind = this.unnamed.endOfPlainParse(source, start, end, settings);
    return bind !== -1 ? isLoneRun(noName, source, bind, end) : this.#isRepeatedTurn(source, start, end);
  }

  /** A batch of an unnamed statement that other clients have sent, or this one earlier. */
  #isRepeatedTurn(source: Buffer, start: number, end: number): boolean {
    const { pool } = this.owner;
    const { settings } = this.owner.settings;
    const bind = end - start > headerBytes ? start + 1 + int32At(source, start + 1) : end;
    if (bind <= start || bind >= end || !isLoneRun(noName, source, bind, end)) return false;
    const repeated = pool.repeated.find(source, start, bind, settings.planKey);
    if (repeated !== undefined) this.unnamed.keepPlain(repeated.unnamed, settings, repeated);
    return repeated !== undefined;
  }

  /** A run of a statement that has a name, from Bind to Sync: mostly of the one that was run last. */
  #isPlainRun(source: Buffer, start: number, end: number): boolean {
    const { last } = this.named;
    if (last !== undefined && isLoneRun(last.nameBytes, source, start, end)) return last.isPlain;
    const named = this.#namedInBind(source, start, end);
    if (named === undefined || !named.isPlain || !isLoneRun(named.nameBytes, source, start, end))
      return false;
    this.named.boundLast(named);
    return true;
  }

  /** The statement that a Bind to the unnamed portal is about, if it has a name. */
  #namedInBind(source: Buffer, start: number, end: number): NamedByClient | undefined {
    const nameStart = start + headerBytes + 1;
    const nameEnd =
      nameStart < end ? findZero(source, nameStart, Math.min(end, nameStart + longestName)) : -1;
    return nameEnd <= nameStart ? undefined : this.named.get(source.toString('latin1', nameStart, nameEnd));
  }

  /** False when the server does not have the statement. */
  #askPlainRun(backend: Backend, source: Buffer, start: number, end: number): boolean {
    const { last } = this.named;
    if (last === undefined) return false;
    const copy = backend.statements.find(last.statement);
    if (copy === undefined || !last.accepts(copy)) return false;
    this.owner.pool.tally.binds++;
    this.owner.running?.asks(last.statement, backend.replies.owesTurn);
    backend.expectWhole(Asked.wholeRun, last);
    writeRun(backend, source, start, end, copy);
    return true;
  }

  #expectPlainTurn(backend: Backend): void {
    const { pool, running } = this.owner;
    const { tally } = pool;
    tally.clientParses++;
    tally.serverParses++;
    tally.binds++;
    running?.asks(this.unnamed.plain, backend.replies.owesTurn);
    backend.expectWhole(Asked.wholeTurn, this.unnamed.plain);
  }
}

/** From Bind to Sync, of this statement. */
function writeRun(
  { toServer }: Backend,
  source: Buffer,
  start: number,
  end: number,
  { name }: ServerCopy,
): void {
  const bindEnd = start + 1 + int32At(source, start + 1);
  const writer = toServer.mix();
  writeRenamed(writer, bindView.read(source, start, bindEnd), name);
  writer.append(source, bindEnd, end);
}

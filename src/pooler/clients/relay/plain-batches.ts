/**
 * Short path for the most common input: one batch that runs one plain statement, from Parse or Bind to Sync, of a client
 * without a server. The batch is recognised by what came before, and passed on as a whole.
 */
import { systemClock } from '../../../runtime/system.js';
import { findZero, int32At } from '../../../wire/bytes.js';
import { BindView } from '../../../wire/frontend-views.js';
import { isLoneRun } from '../../../wire/lone-run.js';
import { Frontend, headerBytes } from '../../../wire/message-types.js';
import { writeRenamed } from '../../../wire/rename-statement.js';
import type { ScanRules } from '../../../wire/scan-rules.js';
import type { PoolMode } from '../../config/pooling-options.js';
import type { Backend } from '../../servers/backend.js';
import { PlacedStatement } from '../../servers/placed-statement.js';
import type { StandIn } from '../../servers/repeated-statement.js';
import { Asked } from '../../servers/reply-queue.js';
import type { ServerCopy } from '../../servers/server-statements.js';
import type { StatementProfile } from '../../servers/statement-times.js';
import type { UnnamedStatement } from '../../servers/unnamed-statement.js';
import type { ClientStatements, NamedByClient } from './client-statements.js';
import { RepeatableBatch } from './repeatable-batch.js';
import type { StatementOwner, StatementPreparer } from './statement-preparer.js';
import type { UnnamedRelay } from './unnamed-relay.js';

const bindView = new BindView();
const noName = Buffer.alloc(0);
/** Limit in bytes; statements with longer names take the long path. */
const longestName = 256;

export class PlainBatches {
  readonly #owner: StatementOwner;
  readonly #mode: PoolMode;
  readonly #named: ClientStatements;
  readonly #unnamed: UnnamedRelay;
  readonly #preparer: StatementPreparer;
  /** The bytes from Bind on, while a stand-in replaces their statement. */
  readonly #standInBatch = new RepeatableBatch();

  #mayAskAgain = false;

  constructor(
    owner: StatementOwner,
    mode: PoolMode,
    named: ClientStatements,
    unnamed: UnnamedRelay,
    preparer: StatementPreparer,
  ) {
    this.#owner = owner;
    this.#mode = mode;
    this.#named = named;
    this.#unnamed = unnamed;
    this.#preparer = preparer;
  }

  /** Named statements have the pooler's names on servers. */
  get renames(): boolean {
    return this.#mode !== 'session' && this.#owner.pool.plan.followsStatements;
  }

  /** The last batch may have to be sent again: the next message must wait for its answer. */
  get mayAskAgain(): boolean {
    return this.#mayAskAgain;
  }

  /** The last batch need not be sent again. */
  answered(): void {
    if (!this.#mayAskAgain) return;
    this.#mayAskAgain = false;
    this.#standInBatch.forget();
  }

  /** True for a single batch that runs a known statement without effect on the session. */
  isPlain(source: Buffer, start: number, end: number, { longestLength }: ScanRules): boolean {
    // A Bind is in both kinds of batch.
    if (end - start > (longestLength[Frontend.bind] as number)) return false;
    if (source[start] === Frontend.parse) return this.#isPlainParseBatch(source, start, end);
    return source[start] === Frontend.bind && this.renames && this.#isPlainBindBatch(source, start, end);
  }

  /** Writes a plain batch for the server; false when the messages have to be passed on one by one. */
  ask(backend: Backend, source: Buffer, start: number, end: number): boolean {
    if (source[start] === Frontend.bind) return this.#askPlainBindBatch(backend, source, start, end);
    const standIn = this.#findStandIn();
    if (standIn !== undefined) this.#askStandIn(backend, standIn, source, start, end);
    else {
      this.#expectPlainParseBatch(backend);
      backend.toServer.add(source, start, end);
    }
    return true;
  }

  /** Writes a plain batch behind the statements of other clients; undefined if the server lacks the statement. */
  place(backend: Backend, source: Buffer, start: number, end: number): PlacedStatement | undefined {
    const { tally } = this.#owner.pool;
    if (source[start] === Frontend.bind) {
      const { last } = this.#named;
      const copy = last === undefined ? undefined : backend.statements.find(last.statement);
      if (last === undefined || copy === undefined || !last.accepts(copy)) return undefined;
      tally.binds++;
      writeBindBatch(backend, source, start, end, copy);
      return new PlacedStatement(Asked.bindBatch, last);
    }
    const { plain } = this.#unnamed;
    tally.clientParses++;
    tally.binds++;
    const standIn = this.#findStandIn();
    const copy = standIn && backend.statements.find(standIn.statement);
    if (copy !== undefined) {
      const bind = start + ((plain as UnnamedStatement).parse as Buffer).length;
      this.#mayAskAgain = true;
      this.#standInBatch.keep(source, bind, end);
      writeBindBatch(backend, source, bind, end, copy);
      return new PlacedStatement(Asked.standInBatch, standIn);
    }
    tally.serverParses++;
    backend.toServer.add(source, start, end);
    return new PlacedStatement(Asked.parseBatch, plain);
  }

  /** A batch written by `place()` is now the one that runs. */
  countAdopted(source: Buffer): void {
    const { running } = this.#owner;
    running?.asks(source[0] === Frontend.bind ? this.#named.last?.statement : this.#unnamed.plain, false);
  }

  /** Usual run time of the plain statement in these bytes, which are a plain Query or were just accepted by `isPlain()`. */
  profileOf(source: Buffer, start: number, end: number): StatementProfile | undefined {
    const { times, plan } = this.#owner.pool;
    let profile: StatementProfile | undefined;
    if (source[start] === Frontend.query) profile = times.profileOf(source, start + headerBytes, end - 1);
    else if (source[start] === Frontend.parse) profile = this.#unnamed.plain?.profileIn(times);
    else profile = this.#named.last?.statement.profileIn(times);
    return profile?.isRead === true || plan.multiplex?.sharesWrites === true ? profile : undefined;
  }

  /** The prepared stand-in for the last plain statement, if there is one. */
  #findStandIn(): StandIn | undefined {
    const { pool } = this.#owner;
    const { repeated } = this.#unnamed;
    if (repeated === undefined || !pool.plan.preparesUnnamed) return undefined;
    return pool.repeated.use(repeated, systemClock.coarse());
  }

  /** Does not pass on the client's Parse: the server has the statement under a name of the pooler's, or gets it first. */
  #askStandIn(backend: Backend, standIn: StandIn, source: Buffer, start: number, end: number): void {
    const { pool } = this.#owner;
    const { statement, unnamed, previous } = standIn;
    pool.tally.clientParses++;
    pool.tally.binds++;
    if (previous !== undefined) backend.statements.drop(previous);
    const copy = backend.statements.find(statement) ?? this.#preparer.prepareStandIn(backend, statement);
    const bind = start + (unnamed.parse as Buffer).length;
    this.#mayAskAgain = true;
    this.#standInBatch.keep(source, bind, end);
    this.#owner.running?.asks(unnamed, backend.replies.owesBatch);
    backend.expectWhole(Asked.standInBatch, standIn);
    writeBindBatch(backend, source, bind, end, copy);
  }

  /** Sends the last batch again as the client sent it, without a stand-in. */
  askAgain(backend: Backend): void {
    const { bytes } = this.#standInBatch;
    const { plain } = this.#unnamed;
    this.#owner.pool.tally.serverParses++;
    backend.expectWhole(Asked.parseBatch, plain);
    const writer = backend.toServer.mix();
    writer.append(plain?.parse as Buffer);
    writer.append(bytes);
    this.answered();
  }

  /** True for a batch of the unnamed statement, from Parse to Sync, whose statement was plain when it was last prepared. */
  #isPlainParseBatch(source: Buffer, start: number, end: number): boolean {
    // In that case, every statement has to be described.
    if (this.#owner.pool.repeated.areBoundAgain) return false;
    const { settings } = this.#owner.tracker;
    const bind = this.#unnamed.endOfPlainParse(source, start, end, settings);
    return bind !== -1 ? isLoneRun(noName, source, bind, end) : this.#isRepeatedBatch(source, start, end);
  }

  /** True for a batch of an unnamed statement that this or another client has sent before. */
  #isRepeatedBatch(source: Buffer, start: number, end: number): boolean {
    const { pool } = this.#owner;
    const { settings } = this.#owner.tracker;
    const bind = end - start > headerBytes ? start + 1 + int32At(source, start + 1) : end;
    if (bind <= start || bind >= end || !isLoneRun(noName, source, bind, end)) return false;
    const repeated = pool.repeated.find(source, start, bind, settings.planKey);
    if (repeated !== undefined) this.#unnamed.keepPlain(repeated.unnamed, settings, repeated);
    return repeated !== undefined;
  }

  /** True for a batch of a named statement, from Bind to Sync; mostly of the one that was run last. */
  #isPlainBindBatch(source: Buffer, start: number, end: number): boolean {
    const { last } = this.#named;
    if (last !== undefined && isLoneRun(last.nameBytes, source, start, end)) return last.isPlain;
    const named = this.#namedInBind(source, start, end);
    if (named === undefined || !named.isPlain || !isLoneRun(named.nameBytes, source, start, end))
      return false;
    this.#named.boundLast(named);
    return true;
  }

  /** The named statement of a Bind to the unnamed portal, if it has a name. */
  #namedInBind(source: Buffer, start: number, end: number): NamedByClient | undefined {
    const nameStart = start + headerBytes + 1;
    const nameEnd =
      nameStart < end ? findZero(source, nameStart, Math.min(end, nameStart + longestName)) : -1;
    return nameEnd <= nameStart ? undefined : this.#named.get(source.toString('latin1', nameStart, nameEnd));
  }

  /** False when the server does not have the statement. */
  #askPlainBindBatch(backend: Backend, source: Buffer, start: number, end: number): boolean {
    const { last } = this.#named;
    if (last === undefined) return false;
    const copy = backend.statements.find(last.statement);
    if (copy === undefined || !last.accepts(copy)) return false;
    this.#owner.pool.tally.binds++;
    this.#owner.running?.asks(last.statement, backend.replies.owesBatch);
    backend.expectWhole(Asked.bindBatch, last);
    writeBindBatch(backend, source, start, end, copy);
    return true;
  }

  #expectPlainParseBatch(backend: Backend): void {
    const { pool, running } = this.#owner;
    const { tally } = pool;
    tally.clientParses++;
    tally.serverParses++;
    tally.binds++;
    running?.asks(this.#unnamed.plain, backend.replies.owesBatch);
    backend.expectWhole(Asked.parseBatch, this.#unnamed.plain);
  }
}

/** Writes a batch from Bind to Sync for this statement. */
function writeBindBatch(
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

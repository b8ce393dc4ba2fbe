/**
 * The extended protocol of one client, on servers that it shares with others: its prepared statements have names of the
 * pooler's there, and are prepared on each server when they are needed first. In session mode, and where statements are not
 * followed, names are passed on as they are.
 */
import { systemClock } from '../../runtime/system.js';
import { copyOf, findZero, int32At } from '../../wire/bytes.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { BindView, ParseView, TargetView } from '../../wire/frontend-views.js';
import { writeParse } from '../../wire/frontend-writers.js';
import { isLoneRun } from '../../wire/lone-run.js';
import type { MessageScanner } from '../../wire/message-scanner.js';
import { Frontend, headerBytes } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeRenamed } from '../../wire/rename-statement.js';
import type { ScanRules } from '../../wire/scan-rules.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Backend } from '../backend/backend.js';
import type { StandIn } from '../backend/repeated-statement.js';
import { Asked, type Dropped, type Subject } from '../backend/reply-queue.js';
import { ServerCopy } from '../backend/server-statements.js';
import { noEffects, type StatementEffects, unreadEffects } from '../backend/statement-effects.js';
import type { StatementShape } from '../backend/statement-shape.js';
import { UnnamedStatement } from '../backend/unnamed-statement.js';
import type { PoolMode } from '../config/pooling-options.js';
import { ClientStatements, NamedByClient } from './client-statements.js';
import { deallocatedName } from './deallocate.js';
import { KeptRun } from './kept-run.js';
import { outdatedStatement } from './session-errors.js';
import type { SettingChange } from './setting-change.js';
import { Outdated, type StatementOwner, StatementPreparer } from './statement-preparer.js';
import { UnnamedRelay } from './unnamed-relay.js';

/** What becomes of a message that was handed in. */
export const Passing = {
  /** It goes to the server as it came. */
  asItIs: 1,
  /** Its first piece was written anew; the others follow as they come. */
  rewritten: 2,
  /** It does not go to the server. */
  none: 3,
  /** It has to wait until all that was asked is answered, and is to be handed in again then. */
  later: 4,
} as const;
export type Passing = (typeof Passing)[keyof typeof Passing];

const parseView = new ParseView();
const parseWriter = new MessageWriter();
const bindView = new BindView();
const describeView = new TargetView('Describe');
const closeView = new TargetView('Close');
const noName = Buffer.alloc(0);
const nowhere = new ServerCopy(noName, 0, 0);
/** Statements with longer names take the long way. */
const longestName = 256;

export class StatementRelay {
  readonly #owner: StatementOwner;
  readonly #mode: PoolMode;
  readonly #named: ClientStatements;
  readonly #preparer: StatementPreparer;
  /** In which turn names were given or taken last, as long as that is not answered. */
  readonly #touched = new Map<string, number>();
  readonly #unnamed = new UnnamedRelay();
  /** From Bind on, while something stands in for the statement that it is about. */
  readonly #standInRun = new KeptRun();
  /** What the statement does to settings that is bound to the unnamed portal. */
  #portalChange: object | undefined;
  #mayDiscard = false;
  /** The copy of the statement that was found last. */
  #located: ServerCopy = nowhere;
  /** In which turn, and where, something was sent last that sets something. */
  #changedIn = 0;
  #changedOn: Backend | undefined;

  constructor(owner: StatementOwner, mode: PoolMode) {
    this.#owner = owner;
    this.#mode = mode;
    this.#named = new ClientStatements(owner.pool.statements);
    this.#preparer = new StatementPreparer(owner, this.#named);
    this.#changedOn = undefined;
  }

  /** Statements have names of the pooler's on servers. */
  get #renames(): boolean {
    return this.#mode !== 'session' && this.#owner.pool.plan.followsStatements;
  }

  /** Statements that have a name. */
  get size(): number {
    return this.#named.size;
  }

  /** Something is bound that may throw prepared statements away when it is executed. */
  get mayDiscard(): boolean {
    return this.#mayDiscard;
  }

  /** What was sent last may have to be sent again: what comes next has to wait for that. */
  get mayAskAgain(): boolean {
    return !this.#standInRun.isEmpty;
  }

  parse(backend: Backend, message: MessageScanner): Passing {
    const { source, start, end, isWhole } = message;
    const { pool, effects, settings } = this.#owner;
    const known = isWhole ? this.#unnamed.plainOne(source, start, end, settings.settings) : undefined;
    if (known !== undefined) return this.#parseUnnamed(backend, known);
    const view = isWhole ? parseView.read(source, start, end) : parseView.readName(source, start, end);
    const found = isWhole ? effects.read(view, settings.told) : unreadEffects;
    if (view.isUnnamed) {
      const given = found.mayDiscard ? deallocatedName(view) : undefined;
      if (given !== undefined && this.has(given)) return this.#parseDeallocate(backend, given);
      const isPlain = found === noEffects;
      // All clients of the pool have the same one.
      const repeated = isPlain
        ? pool.repeated.meet(source, start, end, settings.settings.planKey)
        : undefined;
      const own = isWhole && repeated === undefined ? copyOf(source, start, end) : undefined;
      const unnamed = repeated?.unnamed ?? new UnnamedStatement(own, found);
      if (isPlain) this.#unnamed.keepPlain(unnamed, settings.settings, repeated);
      return this.#parseUnnamed(backend, unnamed);
    }
    if (!this.#renames) {
      backend.expect(Asked.parse);
      return Passing.asItIs;
    }
    if (this.#isUnsure(backend, view.nameKey())) return Passing.later;
    if (isWhole) return this.#parseNamed(backend, view, found);
    return this.#refuse(backend, SqlState.programLimitExceeded, tooLong(message.size));
  }

  /** Whether all of this is one turn that runs a statement which does nothing to the session, and has been seen before. */
  isPlain(source: Buffer, start: number, end: number, { longestLength }: ScanRules): boolean {
    // A Bind is in both.
    if (end - start > (longestLength[Frontend.bind] as number)) return false;
    if (source[start] === Frontend.parse) return this.#isPlainTurn(source, start, end);
    return source[start] === Frontend.bind && this.#isPlainRun(source, start, end);
  }

  /** It is written for the server; false when that has to be done one message after the other. */
  askPlain(backend: Backend, source: Buffer, start: number, end: number): boolean {
    if (source[start] === Frontend.bind) return this.#askPlainRun(backend, source, start, end);
    const standIn = this.#findStandIn();
    if (standIn !== undefined) this.#askStandIn(backend, standIn, source, start, end);
    else {
      this.#expectPlainTurn(backend);
      backend.toServer.add(source, start, end);
    }
    return true;
  }

  /** What is run in place of the last plain statement, if there is something. */
  #findStandIn(): StandIn | undefined {
    const { pool } = this.#owner;
    const { repeated } = this.#unnamed;
    if (repeated === undefined || !pool.plan.preparesUnnamed) return undefined;
    return pool.repeated.use(repeated, systemClock.coarse());
  }

  /** The client's Parse stays here: the server has the statement under a name of the pooler's, or gets it first. */
  #askStandIn(backend: Backend, standIn: StandIn, source: Buffer, start: number, end: number): void {
    const { pool } = this.#owner;
    const { statement, unnamed, previous } = standIn;
    pool.tally.clientParses++;
    pool.tally.binds++;
    this.#portalChange = undefined;
    if (previous !== undefined) backend.statements.drop(previous);
    const copy = backend.statements.find(statement) ?? this.#preparer.prepareStandIn(backend, statement);
    const bind = start + (unnamed.parse as Buffer).length;
    this.#standInRun.keep(source, bind, end);
    backend.expectWhole(Asked.standInTurn, standIn);
    writeRun(backend, source, bind, end, copy);
  }

  /** The last turn, as the client sent it: nothing stands in for its statement. */
  askAgain(backend: Backend): void {
    const { bytes } = this.#standInRun;
    const { plain } = this.#unnamed;
    this.#owner.pool.tally.serverParses++;
    backend.expectWhole(Asked.wholeTurn, plain);
    const writer = backend.toServer.mix();
    writer.append(plain?.parse as Buffer);
    writer.append(bytes);
    this.#standInRun.forget();
  }

  /** A turn of the unnamed statement, from Parse to Sync, that was plain when it was prepared last. */
  #isPlainTurn(source: Buffer, start: number, end: number): boolean {
    const { settings } = this.#owner.settings;
    const bind = this.#unnamed.endOfPlainParse(source, start, end, settings);
    return bind !== -1 ? isLoneRun(noName, source, bind, end) : this.#isRepeatedTurn(source, start, end);
  }

  /** The same of one that other clients have sent, or this one before others. */
  #isRepeatedTurn(source: Buffer, start: number, end: number): boolean {
    const { pool, settings } = this.#owner;
    const bind = end - start > headerBytes ? start + 1 + int32At(source, start + 1) : end;
    if (bind <= start || bind >= end || !isLoneRun(noName, source, bind, end)) return false;
    const repeated = pool.repeated.find(source, start, bind, settings.settings.planKey);
    if (repeated !== undefined) this.#unnamed.keepPlain(repeated.unnamed, settings.settings, repeated);
    return repeated !== undefined;
  }

  /** A run of a statement that has a name, from Bind to Sync: mostly of the one that was run last. */
  #isPlainRun(source: Buffer, start: number, end: number): boolean {
    if (!this.#renames) return false;
    const { last } = this.#named;
    if (last !== undefined && isLoneRun(last.nameBytes, source, start, end)) return last.isPlain;
    const named = this.#namedInBind(source, start, end);
    if (named === undefined || !named.isPlain || !isLoneRun(named.nameBytes, source, start, end))
      return false;
    this.#named.boundLast(named);
    return true;
  }

  /** The statement that a Bind to the unnamed portal is about, if it has a name. */
  #namedInBind(source: Buffer, start: number, end: number): NamedByClient | undefined {
    const nameStart = start + headerBytes + 1;
    const nameEnd =
      nameStart < end ? findZero(source, nameStart, Math.min(end, nameStart + longestName)) : -1;
    return nameEnd <= nameStart ? undefined : this.#named.get(source.toString('latin1', nameStart, nameEnd));
  }

  /** False when the server does not have the statement. */
  #askPlainRun(backend: Backend, source: Buffer, start: number, end: number): boolean {
    const { last } = this.#named;
    if (last === undefined) return false;
    const copy = backend.statements.find(last.statement);
    if (copy === undefined || !last.accepts(copy)) return false;
    this.#owner.pool.tally.binds++;
    this.#portalChange = undefined;
    backend.expectWhole(Asked.wholeRun, last);
    writeRun(backend, source, start, end, copy);
    return true;
  }

  #expectPlainTurn(backend: Backend): void {
    const { tally } = this.#owner.pool;
    tally.clientParses++;
    tally.serverParses++;
    tally.binds++;
    this.#portalChange = undefined;
    backend.expectWhole(Asked.wholeTurn, this.#unnamed.plain);
  }

  #parseUnnamed(backend: Backend, unnamed: UnnamedStatement): Passing {
    const { tally } = this.#owner.pool;
    tally.clientParses++;
    tally.serverParses++;
    this.#unnamed.parse(backend, unnamed);
    return Passing.asItIs;
  }

  /** DEALLOCATE, to be executed: only the name is given up, and the server is given something else to deallocate. */
  #parseDeallocate(backend: Backend, name: string): Passing {
    if (this.#isUnsure(backend, name)) return Passing.later;
    const named = this.#named.get(name) as NamedByClient;
    const nothing = this.#preparer.prepareNothing(backend);
    writeParse(parseWriter, { text: `DEALLOCATE ${nothing.toString('latin1')}` });
    const parse = parseWriter.take();
    this.#unnamed.parse(
      backend,
      new UnnamedStatement(parse, { ...noEffects, change: named, mayDiscard: true }),
    );
    backend.toServer.mix().append(parse);
    return Passing.none;
  }

  #parseNamed(backend: Backend, view: ParseView, effects: StatementEffects): Passing {
    const { pool } = this.#owner;
    const name = view.nameKey();
    if (this.#named.get(name) !== undefined) {
      // Something else may be wrong with it, too: that is for the server to see first.
      this.#preparer.tryParse(backend, view);
      const message = `prepared statement "${view.name()}" already exists`;
      return this.#refuse(backend, SqlState.duplicatePreparedStatement, message);
    }
    const hasJustChanged = this.#hasJustChanged(backend);
    const isUnsure = this.#changedOn === backend && backend.replies.isUnsure(this.#changedIn);
    const isCrowded = backend.statements.isCrowded && backend.replies.size > 0;
    if (isUnsure || isCrowded) return Passing.later;
    pool.tally.clientParses++;
    this.#named.add(this.#preparer.parse(backend, view, effects, !hasJustChanged));
    this.#touched.set(name, backend.replies.turnsSent);
    return Passing.none;
  }

  /** A text is about to be sent, or something that was bound: it may set something. */
  changeComes(backend: Backend, change: object | undefined): void {
    if (change === undefined || !setsSomething(change)) return;
    this.#changedIn = backend.replies.turnsSent;
    this.#changedOn = backend;
  }

  /** In this turn: nobody knows yet what the settings are. */
  #hasJustChanged(backend: Backend): boolean {
    return this.#changedOn === backend && this.#changedIn === backend.replies.turnsSent;
  }

  /**
   * The name was given or taken, or its statement prepared or closed on the server, in a turn that is over for the client but not
   * answered: should something in it fail, then that has not happened.
   */
  #isUnsure({ replies, statements }: Backend, name: string): boolean {
    if (replies.size === 0 && this.#touched.size > 0) this.#touched.clear();
    if (!replies.owesTurn) return false;
    const named = this.#named.get(name);
    const isServerUnsure = named !== undefined && statements.isUnsure(named.statement, replies);
    return isServerUnsure || replies.isUnsure(this.#touched.get(name));
  }

  bind(backend: Backend, message: MessageScanner): Passing {
    const { pool } = this.#owner;
    const view = bindView.read(message.source, message.start, message.end);
    if (view.isUnnamed) {
      const brought = this.#bringUnnamed(backend);
      if (brought instanceof Outdated) return this.#bindOutdated(backend, brought, message);
      if (!(brought instanceof UnnamedStatement)) return brought;
      this.#unnamed.bound();
      this.#noteBound(brought.effects);
      pool.tally.binds++;
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    if (!this.#renames) {
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    const found = this.#find(backend, view, false);
    if (found instanceof Outdated) return this.#bindOutdated(backend, found, message);
    if (!(found instanceof NamedByClient)) return found;
    this.#noteBound(found.effects);
    this.#named.boundLast(found);
    pool.tally.binds++;
    backend.expect(Asked.bind, found);
    writeRenamed(backend.toServer.mix(), view, this.#located.name);
    return Passing.rewritten;
  }

  /** The client's statement that a message names, and `#located` on this server; or what becomes of the message otherwise. */
  #find(
    backend: Backend,
    view: BindView | TargetView,
    isForDescribe: boolean,
  ): NamedByClient | Outdated | Passing {
    const name = view.nameKey();
    if (this.#isUnsure(backend, name)) return Passing.later;
    const named = this.#named.get(name);
    if (named === undefined) return this.#refuseUnknown(backend, view.name());
    const located = this.#preparer.locate(backend, named, isForDescribe);
    if (located === 'later') return Passing.later;
    if (located instanceof Outdated) return located;
    this.#located = located;
    return named;
  }

  /** The client's unnamed statement, on this server from here on; or what becomes of the message that is about it. */
  #bringUnnamed(backend: Backend): UnnamedStatement | Outdated | Passing {
    if (this.#unnamed.isUnsure(backend)) return Passing.later;
    const brought = this.#unnamed.bring(backend);
    if (brought === 'later') return Passing.later;
    return brought ?? this.#refuseUnnamed(backend);
  }

  /** A server looks at the values before it looks at the columns. */
  #bindOutdated(backend: Backend, { shape }: Outdated, { isWhole }: MessageScanner): Passing {
    if (shape !== undefined && isWhole) this.#preparer.tryBind(backend, bindView, shape);
    return this.#refuseOutdated(backend);
  }

  /** A server describes the parameters before it looks at the columns. */
  #describeOutdated(backend: Backend, { shape }: Outdated): Passing {
    if (shape !== undefined) backend.expect(Asked.localDescription, shape);
    return this.#refuseOutdated(backend);
  }

  #noteBound(effects: StatementEffects): void {
    this.#portalChange = effects.change;
    this.#mayDiscard ||= effects.mayDiscard;
    if (effects !== noEffects) this.#owner.effects.runs(effects);
  }

  execute(backend: Backend, { source, start }: MessageScanner): Passing {
    const isUnnamed = source[start + headerBytes] === 0;
    const change = isUnnamed ? this.#portalChange : undefined;
    this.changeComes(backend, change);
    backend.expect(Asked.execute, change);
    return Passing.asItIs;
  }

  describe(backend: Backend, message: MessageScanner): Passing {
    const view = describeView.read(message.source, message.start, message.end);
    if (!view.isStatement) {
      backend.expect(Asked.describePortal);
      return Passing.asItIs;
    }
    if (view.isUnnamed) {
      const brought = this.#bringUnnamed(backend);
      if (brought instanceof Outdated) return this.#describeOutdated(backend, brought);
      if (!(brought instanceof UnnamedStatement)) return brought;
      this.#unnamed.isDescribed();
      backend.expect(Asked.describeStatement, brought);
      return Passing.asItIs;
    }
    if (!this.#renames) {
      backend.expect(Asked.describeStatement);
      return Passing.asItIs;
    }
    const found = this.#find(backend, view, true);
    if (found instanceof Outdated) return this.#describeOutdated(backend, found);
    if (!(found instanceof NamedByClient)) return found;
    backend.expect(Asked.describeStatement, found);
    writeRenamed(backend.toServer.mix(), view, this.#located.name);
    return Passing.none;
  }

  close(backend: Backend, message: MessageScanner): Passing {
    const view = closeView.read(message.source, message.start, message.end);
    if (view.isStatement && !view.isUnnamed && this.#renames) {
      const name = view.nameKey();
      if (this.#isUnsure(backend, name)) return Passing.later;
      // Other clients may have the statement, too: only the name is given up.
      const named = this.#named.get(name);
      if (named !== undefined) this.#named.delete(named);
      this.#touched.set(name, backend.replies.turnsSent);
      backend.expect(Asked.localClose, named);
      return Passing.none;
    }
    if (view.isStatement && view.isUnnamed) this.#unnamed.close(backend);
    else backend.expect(Asked.close);
    return Passing.asItIs;
  }

  /** The server will not answer this, after an error. */
  answerDropped({ asked, subject }: Dropped): void {
    if (!(subject instanceof NamedByClient)) return;
    if (asked === Asked.localClose) this.#named.putBack(subject);
    else if (asked === Asked.parse) this.#named.delete(subject);
  }

  /** A server has described a statement. */
  described(backend: Backend, subject: Subject, shape: StatementShape | undefined): void {
    if (subject instanceof UnnamedStatement) this.#unnamed.described(backend, subject, shape);
    else this.#preparer.described(backend, subject, shape);
  }

  /** `backend`: it has parsed it; undefined where something stands in for it there. */
  unnamedChanged(unnamed: UnnamedStatement | undefined, backend: Backend | undefined): void {
    this.#standInRun.forget();
    this.#unnamed.changed(unnamed, backend);
  }

  /** The batch ends: what the client may bind in the next one has to be known by then. */
  sync(backend: Backend): void {
    this.#unnamed.sync(backend);
  }

  /** Gives up one by its name, as DEALLOCATE does; false when there is none. */
  deallocate(name: string): boolean {
    const named = this.#named.get(name);
    if (named !== undefined) this.#named.delete(named);
    return named !== undefined;
  }

  /** The server has executed a DEALLOCATE of it. */
  deallocated(named: NamedByClient): void {
    this.#named.delete(named);
  }

  has(name: string): boolean {
    return this.#named.get(name) !== undefined;
  }

  clear(): void {
    this.#named.clear();
    this.#touched.clear();
    this.#mayDiscard = false;
  }

  #refuseUnnamed(backend: Backend): Passing {
    return this.#refuse(backend, SqlState.invalidStatementName, 'unnamed prepared statement does not exist');
  }

  #refuseOutdated(backend: Backend): Passing {
    backend.fail(outdatedStatement);
    return Passing.none;
  }

  #refuseUnknown(backend: Backend, name: string): Passing {
    const text = `prepared statement "${name}" does not exist`;
    return this.#refuse(backend, SqlState.invalidStatementName, text);
  }

  /** The server is asked for something that does not exist, and the client gets this error in place of the server's. */
  #refuse(backend: Backend, code: string, message: string): Passing {
    backend.fail(failure(code, message));
    return Passing.none;
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

/** For longer than its transaction. What a Bind is about may be no change, but a statement to be given up. */
function setsSomething({ changes, resetsAll }: Partial<SettingChange>): boolean {
  return resetsAll === true || (changes !== undefined && changes.size > 0);
}

function failure(code: string, message: string): ErrorFields {
  return { severity: 'ERROR', code, message };
}

function tooLong(bytes: number): string {
  return `a statement of ${bytes} bytes is too long to be prepared under a name; prepare it without one`;
}

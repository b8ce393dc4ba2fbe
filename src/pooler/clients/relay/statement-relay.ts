/**
 * The extended protocol of one client, on servers that it shares with others: its prepared statements have names of the
 * pooler's there, and are prepared on each server when they are needed first. In session mode, and where statements are not
 * followed, names are passed on as they are.
 */

import type { SettingChange } from '../../../sql/setting-change.js';
import { copyOf } from '../../../wire/bytes.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import { BindView, ParseView, TargetView } from '../../../wire/frontend-views.js';
import { writeParse } from '../../../wire/frontend-writers.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { headerBytes } from '../../../wire/message-types.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import { writeRenamed } from '../../../wire/rename-statement.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { MemoryLimit } from '../../config/memory-options.js';
import type { PoolMode } from '../../config/pooling-options.js';
import { alsoAs } from '../../own-error.js';
import type { Backend } from '../../servers/backend.js';
import { Asked, type Dropped, type Subject } from '../../servers/reply-queue.js';
import { ServerCopy } from '../../servers/server-statements.js';
import type { StatementShape } from '../../servers/statement-shape.js';
import { PathStatement, type SwallowedStatement } from '../../servers/swallowed.js';
import { UnnamedStatement } from '../../servers/unnamed-statement.js';
import { isNameList } from '../../settings/settings.js';
import { noEffects, type StatementEffects, unreadEffects } from '../../settings/statement-effects.js';
import { ownErrorReasonOf } from '../failure-words.js';
import {
  forgottenUnnamed,
  noUnnamed,
  outdatedStatement,
  tooLongStatement,
  tooManyStatements,
} from '../session-errors.js';
import { statementCost } from './client-bounds.js';
import { NamedByClient } from './client-statements.js';
import { deallocatedName } from './deallocate.js';
import { PlainBatches } from './plain-batches.js';
import { Outdated, type StatementOwner } from './statement-preparer.js';
import type { SwallowRelay } from './swallow-relay.js';

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
const swallowedView = new ParseView();
const parseWriter = new MessageWriter();
const bindView = new BindView();
const describeView = new TargetView('Describe');
const closeView = new TargetView('Close');
const noName = Buffer.alloc(0);
const nowhere = new ServerCopy(noName, 0, 0);

export class StatementRelay extends PlainBatches {
  readonly #mode: PoolMode;
  /** In which turn names were given or taken last, as long as that is not answered. */
  readonly #touched = new Map<string, number>();
  /** What the statement does to settings that is bound to the unnamed portal. */
  #portalChange: object | undefined;
  #mayDiscard = false;
  /** The copy of the statement that was found last. */
  #located: ServerCopy = nowhere;
  /** In which turn, and where, something was sent last that sets something. */
  #changedIn = 0;
  #changedOn: Backend | undefined;

  readonly #swallowing: SwallowRelay | undefined;
  #hasMetLimit = false;

  constructor(owner: StatementOwner, mode: PoolMode, swallowing: SwallowRelay | undefined) {
    super(owner);
    this.#mode = mode;
    this.#swallowing = swallowing;
    this.#changedOn = undefined;
  }

  protected override get renames(): boolean {
    return this.#mode !== 'session' && this.owner.pool.plan.followsStatements;
  }

  /** Statements that have a name. */
  get size(): number {
    return this.named.size;
  }

  /** Something is bound that may throw prepared statements away when it is executed. */
  get mayDiscard(): boolean {
    return this.#mayDiscard;
  }

  parse(backend: Backend, message: MessageScanner): Passing {
    const { source, start, end } = message;
    const { pool, effects, settings } = this.owner;
    const longest = message.rules.wholeUpTo[message.type] as number;
    // A longer one comes in pieces, unless they happen to come together.
    const isWhole = message.isWhole && message.size <= longest;
    const isKnown = isWhole && !effects.isReadingUnsure;
    const known = isKnown ? this.unnamed.plainOne(source, start, end, settings.settings) : undefined;
    if (known !== undefined) return this.#parseUnnamed(backend, known);
    const view = isWhole ? parseView.read(source, start, end) : parseView.readName(source, start, end);
    const found = isWhole ? effects.read(view, settings.told) : unreadEffects;
    if (this.#swallowing !== undefined && isWhole && found !== noEffects) {
      const swallowed = this.#swallowing.parse(backend, view);
      if (swallowed !== undefined && (view.isUnnamed || this.renames))
        return this.#parseSwallowed(backend, swallowed.parse, swallowed.swallowed);
    }
    if (view.isUnnamed) {
      const given = found.mayDiscard ? deallocatedName(view) : undefined;
      if (given !== undefined && this.has(given)) return this.#parseDeallocate(backend, given);
      const isPlain = found === noEffects && !effects.isReadingUnsure;
      // All clients of the pool have the same one.
      const repeated = isPlain
        ? pool.repeated.meet(source, start, end, settings.settings.planKey)
        : undefined;
      const own = isWhole && repeated === undefined ? copyOf(source, start, end) : undefined;
      const unnamed = repeated?.unnamed ?? new UnnamedStatement(own, found);
      if (isPlain) this.unnamed.keepPlain(unnamed, settings.settings, repeated);
      return this.#parseUnnamed(backend, unnamed);
    }
    this.unnamed.describe(backend);
    if (!this.renames) {
      this.owner.running?.parsedAs(view.nameKey(), source.subarray(start, end));
      backend.expect(Asked.parse);
      return Passing.asItIs;
    }
    if (this.#isUnsure(backend, view.nameKey())) return Passing.later;
    if (isWhole) return this.#parseNamed(backend, view, found);
    return this.#refuseForLimit(
      backend,
      'max_prepared_statement_size',
      tooLongStatement(message.size, longest),
    );
  }

  /** A plain batch is written for the server; false when that has to be done one message after the other. */
  askPlain(backend: Backend, source: Buffer, start: number, end: number): boolean {
    this.#portalChange = undefined;
    return this.ask(backend, source, start, end);
  }

  #parseUnnamed(backend: Backend, unnamed: UnnamedStatement): Passing {
    const { tally } = this.owner.pool;
    tally.clientParses++;
    tally.serverParses++;
    this.unnamed.parse(backend, unnamed);
    return Passing.asItIs;
  }

  /** DEALLOCATE, to be executed: only the name is given up, and the server is given something else to deallocate. */
  #parseDeallocate(backend: Backend, name: string): Passing {
    if (this.#isUnsure(backend, name)) return Passing.later;
    const named = this.named.get(name) as NamedByClient;
    const nothing = this.preparer.prepareNothing(backend);
    writeParse(parseWriter, { text: `DEALLOCATE ${nothing.toString('latin1')}` });
    const parse = parseWriter.take();
    this.unnamed.parse(
      backend,
      new UnnamedStatement(parse, { ...noEffects, change: named, mayDiscard: true }),
    );
    backend.toServer.mix().append(parse);
    return Passing.none;
  }

  /** The server is given something harmless to run; the change takes place when that is executed. */
  #parseSwallowed(backend: Backend, parse: Buffer, swallowed: SwallowedStatement): Passing {
    const effects = { ...noEffects, change: swallowed };
    const view = swallowedView.read(parse, 0, parse.length);
    if (!view.isUnnamed) {
      this.unnamed.describe(backend);
      return this.#isUnsure(backend, view.nameKey())
        ? Passing.later
        : this.#parseNamed(backend, view, effects);
    }
    this.unnamed.parse(backend, new UnnamedStatement(parse, effects));
    backend.toServer.mix().append(parse);
    return Passing.none;
  }

  #parseNamed(backend: Backend, view: ParseView, effects: StatementEffects): Passing {
    const { pool } = this.owner;
    const name = view.nameKey();
    if (this.named.get(name) !== undefined) {
      // Something else may be wrong with it, too: that is for the server to see first.
      this.preparer.tryParse(backend, view);
      const message = `prepared statement "${view.name()}" already exists`;
      const asPgBouncer = `prepared statement '${view.name()}' was already prepared`;
      return this.#refuse(backend, SqlState.duplicatePreparedStatement, message, asPgBouncer);
    }
    const { maxClientStatementsSize: most } = this.owner.bounds;
    const { bytes, size } = this.named;
    if (bytes + statementCost(view.size) > most)
      return this.#refuseForLimit(
        backend,
        'max_client_statements_size',
        tooManyStatements(size, bytes, most),
      );
    const hasJustChanged = this.#hasJustChanged(backend);
    const isUnsure = this.#changedOn === backend && backend.replies.isUnsure(this.#changedIn);
    const isCrowded = backend.statements.isCrowded && backend.replies.size > 0;
    if (isUnsure || isCrowded) return Passing.later;
    pool.tally.clientParses++;
    this.named.add(this.preparer.parse(backend, view, effects, !hasJustChanged));
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
    const named = this.named.get(name);
    const isServerUnsure = named !== undefined && statements.isUnsure(named.statement, replies);
    return isServerUnsure || replies.isUnsure(this.#touched.get(name));
  }

  bind(backend: Backend, message: MessageScanner): Passing {
    const { pool } = this.owner;
    const view = bindView.read(message.source, message.start, message.end);
    if (view.isUnnamed) {
      const brought = this.#bringUnnamed(backend, false);
      if (brought instanceof Outdated) return this.#bindOutdated(backend, brought, message);
      if (!(brought instanceof UnnamedStatement)) return brought;
      const problem = this.#noteBound(brought.effects, message);
      if (problem !== undefined) return this.#refuseValue(backend, problem);
      this.unnamed.bind(backend);
      this.owner.running?.bound(brought);
      pool.tally.binds++;
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    this.unnamed.describe(backend);
    if (!this.renames) {
      this.owner.running?.boundTo(view.nameKey());
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    const found = this.#find(backend, view, false);
    if (found instanceof Outdated) return this.#bindOutdated(backend, found, message);
    if (!(found instanceof NamedByClient)) return found;
    const problem = this.#noteBound(found.effects, message);
    if (problem !== undefined) return this.#refuseValue(backend, problem);
    this.named.boundLast(found);
    this.owner.running?.bound(found.statement);
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
    const named = this.named.get(name);
    if (named === undefined) return this.#refuseUnknown(backend, view.name());
    const located = this.preparer.locate(backend, named, isForDescribe);
    if (located === 'later') return Passing.later;
    if (located instanceof Outdated) return located;
    this.#located = located;
    return named;
  }

  /** The client's unnamed statement, on this server from here on; or what becomes of the message that is about it. */
  #bringUnnamed(backend: Backend, isForDescribe: boolean): UnnamedStatement | Outdated | Passing {
    if (this.unnamed.isUnsure(backend)) return Passing.later;
    const brought = this.unnamed.bring(backend, isForDescribe);
    if (brought === 'later') return Passing.later;
    if (brought === undefined || brought === 'unknown') return this.#refuseUnnamed(backend, brought);
    return brought;
  }

  /** A server looks at the values before it looks at the columns. */
  #bindOutdated(backend: Backend, { shape }: Outdated, { isWhole }: MessageScanner): Passing {
    if (shape !== undefined && isWhole) this.preparer.tryBind(backend, bindView, shape);
    return this.#refuseOutdated(backend);
  }

  /** A server describes the parameters before it looks at the columns. */
  #describeOutdated(backend: Backend, { shape }: Outdated): Passing {
    if (shape !== undefined) backend.expect(Asked.localDescription, shape);
    return this.#refuseOutdated(backend);
  }

  /** Answers with what is wrong with a value that the pooler has to know. */
  #noteBound(effects: StatementEffects, { isWhole }: MessageScanner): string | undefined {
    const { change } = effects;
    this.#portalChange = change;
    this.#mayDiscard ||= effects.mayDiscard;
    if (effects === noEffects) return undefined;
    this.owner.effects.runs(effects);
    if (!(change instanceof PathStatement) || change.value !== undefined) return undefined;
    const path = isWhole ? pathOf(bindView) : undefined;
    if (path === undefined) return 'invalid value for parameter "search_path"';
    this.#portalChange = change.with(path);
    return undefined;
  }

  #refuseValue(backend: Backend, problem: string): Passing {
    return this.#refuse(backend, SqlState.invalidParameterValue, problem);
  }

  execute(backend: Backend, { source, start }: MessageScanner): Passing {
    this.unnamed.describe(backend);
    const isUnnamed = source[start + headerBytes] === 0;
    const change = isUnnamed ? this.#portalChange : undefined;
    this.changeComes(backend, change);
    backend.expect(Asked.execute, change);
    return Passing.asItIs;
  }

  describe(backend: Backend, message: MessageScanner): Passing {
    const view = describeView.read(message.source, message.start, message.end);
    if (!view.isStatement || !view.isUnnamed) this.unnamed.describe(backend);
    if (!view.isStatement) {
      backend.expect(Asked.describePortal);
      return Passing.asItIs;
    }
    if (view.isUnnamed) {
      const brought = this.#bringUnnamed(backend, true);
      if (brought instanceof Outdated) return this.#describeOutdated(backend, brought);
      if (!(brought instanceof UnnamedStatement)) return brought;
      this.unnamed.isDescribed();
      backend.expect(Asked.describeStatement, brought);
      return Passing.asItIs;
    }
    if (!this.renames) {
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
    if (view.isStatement && !view.isUnnamed && this.renames) {
      this.unnamed.describe(backend);
      const name = view.nameKey();
      if (this.#isUnsure(backend, name)) return Passing.later;
      // Other clients may have the statement, too: only the name is given up.
      const named = this.named.get(name);
      if (named !== undefined) this.named.delete(named);
      this.#touched.set(name, backend.replies.turnsSent);
      backend.expect(Asked.localClose, named);
      return Passing.none;
    }
    if (view.isStatement && view.isUnnamed) this.unnamed.close(backend);
    else {
      this.unnamed.describe(backend);
      backend.expect(Asked.close);
    }
    return Passing.asItIs;
  }

  /** The server will not answer this, after an error. */
  answerDropped({ asked, subject }: Dropped): void {
    if (!(subject instanceof NamedByClient)) return;
    if (asked === Asked.localClose) this.named.putBack(subject);
    else if (asked === Asked.parse) this.named.delete(subject);
  }

  /** A server has described a statement. */
  described(backend: Backend, subject: Subject, shape: StatementShape | undefined): void {
    if (subject instanceof UnnamedStatement) this.unnamed.described(backend, subject, shape);
    else this.preparer.described(backend, subject, shape);
  }

  /** `backend`: it has parsed it; undefined where something stands in for it there. */
  unnamedChanged(unnamed: UnnamedStatement | undefined, backend: Backend | undefined): void {
    this.answered();
    this.unnamed.changed(unnamed, backend);
  }

  /** The batch ends. */
  sync(backend: Backend): void {
    this.unnamed.describe(backend);
  }

  /** Gives up one by its name, as DEALLOCATE does; false when there is none. */
  deallocate(name: string): boolean {
    const named = this.named.get(name);
    if (named !== undefined) this.named.delete(named);
    return named !== undefined;
  }

  /** The server has executed a DEALLOCATE of it. */
  deallocated(named: NamedByClient): void {
    this.named.delete(named);
  }

  has(name: string): boolean {
    return this.named.get(name) !== undefined;
  }

  clear(): void {
    this.named.clear();
    this.#touched.clear();
    this.#mayDiscard = false;
  }

  #refuseUnnamed(backend: Backend, why: 'unknown' | undefined): Passing {
    if (why === 'unknown')
      this.owner.pool.tally.ownErrorCame(forgottenUnnamed.code, ownErrorReasonOf(forgottenUnnamed));
    backend.fail(why === 'unknown' ? forgottenUnnamed : noUnnamed);
    return Passing.none;
  }

  #refuseOutdated(backend: Backend): Passing {
    backend.fail(outdatedStatement);
    return Passing.none;
  }

  #refuseUnknown(backend: Backend, name: string): Passing {
    const text = `prepared statement "${name}" does not exist`;
    return this.#refuse(backend, SqlState.invalidStatementName, text, 'prepared statement did not exist');
  }

  /** Logged the first time; a client that goes on has no more to tell. */
  #refuseForLimit(backend: Backend, limit: MemoryLimit, error: ErrorFields): Passing {
    this.owner.pool.tally.limitReached(limit);
    if (!this.#hasMetLimit) this.owner.failed(error);
    this.#hasMetLimit = true;
    backend.fail(error);
    return Passing.none;
  }

  /** The server is asked for something that does not exist, and the client gets this error in place of the server's. */
  #refuse(backend: Backend, code: string, message: string, asPgBouncer?: string): Passing {
    const plain = failure(code, message);
    const error = asPgBouncer === undefined ? plain : alsoAs(asPgBouncer, plain);
    if (!this.owner.endsWith(error)) backend.fail(error);
    return Passing.none;
  }
}

/** For longer than its transaction. What a Bind is about may be no change, but a statement to be given up. */
function setsSomething({ changes, resetsAll }: Partial<SettingChange>): boolean {
  return resetsAll === true || (changes !== undefined && changes.size > 0);
}

/** The only value of a Bind, as text; undefined where it is no search path. */
function pathOf(view: BindView): string | null | undefined {
  const { formats, values } = view.parameters();
  const [value] = values;
  if (value === undefined || values.length > 1 || formats.some((format) => format !== 0)) return undefined;
  const path = value?.toString('utf8') ?? null;
  return path === null || isNameList(path) ? path : undefined;
}

function failure(code: string, message: string): ErrorFields {
  return { severity: 'ERROR', code, message };
}

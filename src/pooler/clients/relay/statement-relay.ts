/**
 * Extended protocol of one client on shared servers. Its prepared statements have names of the pooler's there, and are prepared
 * on each server at their first use. In session mode, and where statements are not followed, names are passed on unchanged.
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

/** What to do with a message. */
export const Passing = {
  /** Send the message unchanged. */
  asItIs: 1,
  /** The first piece was rewritten; send the others unchanged. */
  rewritten: 2,
  /** Do not send the message. */
  none: 3,
  /** Hold the message until everything is answered, then pass it again. */
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
  /** Number of the batch in which a name was last given or taken, until that batch is answered. */
  readonly #touched = new Map<string, number>();
  /** Setting change of the statement that is bound to the unnamed portal. */
  #portalChange: object | undefined;
  #mayDiscard = false;
  /** The server's copy of the statement found last. */
  #located: ServerCopy = nowhere;
  /** Batch and server of the last request that may change a setting. */
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

  /** A bound portal may deallocate prepared statements when it is executed. */
  get mayDiscard(): boolean {
    return this.#mayDiscard;
  }

  parse(backend: Backend, message: MessageScanner): Passing {
    const { source, start, end } = message;
    const { pool, effects, settings } = this.owner;
    const longest = message.rules.wholeUpTo[message.type] as number;
    // A longer message comes in pieces, unless they happen to arrive together.
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
      // All clients of the pool share one object.
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

  /** Writes a plain batch for the server; false when the messages must be passed on one by one. */
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

  /** Parse of a DEALLOCATE: only the client's name is given up, and the server deallocates something else. */
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

  /** The server gets a harmless statement instead; the change takes effect when that is executed. */
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
      // The server checks the text first, for other errors in it.
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

  /** A text or a bound portal is about to be sent that may change a setting. */
  changeComes(backend: Backend, change: object | undefined): void {
    if (change === undefined || !setsSomething(change)) return;
    this.#changedIn = backend.replies.turnsSent;
    this.#changedOn = backend;
  }

  /** A setting may have been changed in the present batch: the settings are unknown yet. */
  #hasJustChanged(backend: Backend): boolean {
    return this.#changedOn === backend && this.#changedIn === backend.replies.turnsSent;
  }

  /**
   * True if the name was given or taken, or its statement prepared or closed on the server, in an unanswered batch: if the
   * batch fails, that has not happened.
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

  /** Finds the statement that a message names, and sets `#located` on this server; otherwise returns what to do with the message. */
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

  /** Brings the client's unnamed statement to this server, or returns what to do with the message. */
  #bringUnnamed(backend: Backend, isForDescribe: boolean): UnnamedStatement | Outdated | Passing {
    if (this.unnamed.isUnsure(backend)) return Passing.later;
    const brought = this.unnamed.bring(backend, isForDescribe);
    if (brought === 'later') return Passing.later;
    if (brought === undefined || brought === 'unknown') return this.#refuseUnnamed(backend, brought);
    return brought;
  }

  /** As a server does, checks the values before the columns. */
  #bindOutdated(backend: Backend, { shape }: Outdated, { isWhole }: MessageScanner): Passing {
    if (shape !== undefined && isWhole) this.preparer.tryBind(backend, bindView, shape);
    return this.#refuseOutdated(backend);
  }

  /** As a server does, describes the parameters before it checks the columns. */
  #describeOutdated(backend: Backend, { shape }: Outdated): Passing {
    if (shape !== undefined) backend.expect(Asked.localDescription, shape);
    return this.#refuseOutdated(backend);
  }

  /** Returns what is wrong with a value that the pooler has to know. */
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
      // Other clients may share the statement: only the name is given up.
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

  /** The server will not answer this request, after an error. */
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

  /** `backend`: the server that has parsed it; undefined where a stand-in replaces it there. */
  unnamedChanged(unnamed: UnnamedStatement | undefined, backend: Backend | undefined): void {
    this.answered();
    this.unnamed.changed(unnamed, backend);
  }

  /** The batch ends. */
  sync(backend: Backend): void {
    this.unnamed.describe(backend);
  }

  /** Deletes a statement by its name, as DEALLOCATE does; false when there is none. */
  deallocate(name: string): boolean {
    const named = this.named.get(name);
    if (named !== undefined) this.named.delete(named);
    return named !== undefined;
  }

  /** The server has executed a DEALLOCATE of the statement. */
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

  /** Logged once per client; further refusals tell nothing new. */
  #refuseForLimit(backend: Backend, limit: MemoryLimit, error: ErrorFields): Passing {
    this.owner.pool.tally.limitReached(limit);
    if (!this.#hasMetLimit) this.owner.failed(error);
    this.#hasMetLimit = true;
    backend.fail(error);
    return Passing.none;
  }

  /** Makes the server fail on something that does not exist; the client gets this error in place of the server's. */
  #refuse(backend: Backend, code: string, message: string, asPgBouncer?: string): Passing {
    const plain = failure(code, message);
    const error = asPgBouncer === undefined ? plain : alsoAs(asPgBouncer, plain);
    if (!this.owner.endsWith(error)) backend.fail(error);
    return Passing.none;
  }
}

/** True for a change that outlasts its transaction. The subject of a Bind may also be a statement to deallocate, which is no change. */
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

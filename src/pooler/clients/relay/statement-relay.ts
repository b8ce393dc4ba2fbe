/**
 * Extended protocol of one client on shared servers. Its prepared statements have names of the pooler's there, and are prepared
 * on each server at their first use. In session mode, and where statements are not followed, names are passed on unchanged.
 */

import { BindView, TargetView } from '../../../wire/frontend-views.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { headerBytes } from '../../../wire/message-types.js';
import { writeRenamed } from '../../../wire/rename-statement.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { PoolMode } from '../../config/pooling-options.js';
import type { Backend } from '../../servers/backend.js';
import { Asked, type Dropped, type Subject } from '../../servers/reply-queue.js';
import { ServerCopy } from '../../servers/server-statements.js';
import type { StatementShape } from '../../servers/statement-shape.js';
import { PathStatement } from '../../servers/swallowed.js';
import { UnnamedStatement } from '../../servers/unnamed-statement.js';
import { isNameList } from '../../settings/settings.js';
import { noEffects, type StatementEffects } from '../../settings/statement-effects.js';
import { ClientStatements, NamedByClient } from './client-statements.js';
import { Passing } from './passing.js';
import { PlainBatches } from './plain-batches.js';
import { StatementParser } from './statement-parser.js';
import { Outdated, type StatementOwner, StatementPreparer } from './statement-preparer.js';
import { StatementRefusals } from './statement-refusals.js';
import type { SwallowRelay } from './swallow-relay.js';
import { UnansweredChanges } from './unanswered-changes.js';
import { UnnamedRelay } from './unnamed-relay.js';

const bindView = new BindView();
const describeView = new TargetView('Describe');
const closeView = new TargetView('Close');
const noName = Buffer.alloc(0);
const nowhere = new ServerCopy(noName, 0, 0);

export class StatementRelay {
  readonly plain: PlainBatches;
  readonly changes: UnansweredChanges;
  readonly #owner: StatementOwner;
  readonly #named: ClientStatements;
  readonly #unnamed: UnnamedRelay;
  readonly #preparer: StatementPreparer;
  readonly #refusals: StatementRefusals;
  readonly #parser: StatementParser;
  /** Setting change of the statement that is bound to the unnamed portal. */
  #portalChange: object | undefined;
  #mayDiscard = false;
  /** The server's copy of the statement found last. */
  #located: ServerCopy = nowhere;

  constructor(owner: StatementOwner, mode: PoolMode, swallowing: SwallowRelay | undefined) {
    const named = new ClientStatements(owner.pool.statements);
    const unnamed = new UnnamedRelay(owner.pool.repeated);
    const preparer = new StatementPreparer(owner, named);
    const plain = new PlainBatches(owner, mode, named, unnamed, preparer);
    const changes = new UnansweredChanges(named);
    const refusals = new StatementRefusals(owner);
    this.plain = plain;
    this.changes = changes;
    this.#owner = owner;
    this.#named = named;
    this.#unnamed = unnamed;
    this.#preparer = preparer;
    this.#refusals = refusals;
    this.#parser = new StatementParser({
      ...{ owner, named, unnamed, preparer, plain, changes, refusals, swallowing },
    });
  }

  /** Statements that have a name. */
  get size(): number {
    return this.#named.size;
  }

  /** A bound portal may deallocate prepared statements when it is executed. */
  get mayDiscard(): boolean {
    return this.#mayDiscard;
  }

  parse(backend: Backend, message: MessageScanner): Passing {
    return this.#parser.parse(backend, message);
  }

  /** A Parse that the server need not get, after an error in its batch. */
  ignore(backend: Backend, message: MessageScanner): void {
    if (this.#owner.keepsUnparsed && this.plain.renames) this.#parser.ignore(backend, message);
  }

  /** Writes a plain batch for the server; false when the messages must be passed on one by one. */
  askPlain(backend: Backend, source: Buffer, start: number, end: number): boolean {
    this.#portalChange = undefined;
    return this.plain.ask(backend, source, start, end);
  }

  bind(backend: Backend, message: MessageScanner): Passing {
    const { pool } = this.#owner;
    const view = bindView.read(message.source, message.start, message.end);
    if (view.isUnnamed) {
      const brought = this.#bringUnnamed(backend, false);
      if (brought instanceof Outdated) return this.#bindOutdated(backend, brought, message);
      if (!(brought instanceof UnnamedStatement)) return brought;
      const problem = this.#noteBound(brought.effects, message);
      if (problem !== undefined) return this.#refuseValue(backend, problem);
      this.#unnamed.bind(backend);
      this.#owner.running?.bound(brought);
      pool.tally.binds++;
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    this.#unnamed.describe(backend);
    if (!this.plain.renames) {
      this.#owner.running?.boundTo(view.nameKey());
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    const found = this.#find(backend, view, false);
    if (found instanceof Outdated) return this.#bindOutdated(backend, found, message);
    if (!(found instanceof NamedByClient)) return found;
    const problem = this.#noteBound(found.effects, message);
    if (problem !== undefined) return this.#refuseValue(backend, problem);
    this.#named.boundLast(found);
    this.#owner.running?.bound(found.statement);
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
    if (this.changes.isUnsure(backend, name)) return Passing.later;
    const named = this.#named.get(name);
    if (named === undefined) return this.#refusals.unknown(backend, view.name());
    const located = this.#preparer.locate(backend, named, isForDescribe);
    if (located === 'later') return Passing.later;
    if (located instanceof Outdated) return located;
    this.#located = located;
    return named;
  }

  /** Brings the client's unnamed statement to this server, or returns what to do with the message. */
  #bringUnnamed(backend: Backend, isForDescribe: boolean): UnnamedStatement | Outdated | Passing {
    if (this.#unnamed.isUnsure(backend)) return Passing.later;
    const brought = this.#unnamed.bring(backend, isForDescribe);
    if (brought === 'later') return Passing.later;
    if (brought === undefined || brought === 'unknown') return this.#refusals.unnamed(backend, brought);
    return brought;
  }

  /** As a server does, checks the values before the columns. */
  #bindOutdated(backend: Backend, { shape }: Outdated, { isWhole }: MessageScanner): Passing {
    if (shape !== undefined && isWhole) this.#preparer.tryBind(backend, bindView, shape);
    return this.#refusals.outdated(backend);
  }

  /** As a server does, describes the parameters before it checks the columns. */
  #describeOutdated(backend: Backend, { shape }: Outdated): Passing {
    if (shape !== undefined) backend.expect(Asked.localDescription, shape);
    return this.#refusals.outdated(backend);
  }

  /** Returns what is wrong with a value that the pooler has to know. */
  #noteBound(effects: StatementEffects, { isWhole }: MessageScanner): string | undefined {
    const { change } = effects;
    this.#portalChange = change;
    this.#mayDiscard ||= effects.mayDiscard;
    if (effects === noEffects) return undefined;
    this.#owner.tracker.runs(effects);
    if (!(change instanceof PathStatement) || change.value !== undefined) return undefined;
    const path = isWhole ? pathOf(bindView) : undefined;
    if (path === undefined) return 'invalid value for parameter "search_path"';
    this.#portalChange = change.with(path);
    return undefined;
  }

  #refuseValue(backend: Backend, problem: string): Passing {
    return this.#refusals.refuse(backend, SqlState.invalidParameterValue, problem);
  }

  execute(backend: Backend, { source, start }: MessageScanner): Passing {
    this.#unnamed.describe(backend);
    const isUnnamed = source[start + headerBytes] === 0;
    const change = isUnnamed ? this.#portalChange : undefined;
    this.changes.changeComes(backend, change);
    backend.expect(Asked.execute, change);
    return Passing.asItIs;
  }

  describe(backend: Backend, message: MessageScanner): Passing {
    const view = describeView.read(message.source, message.start, message.end);
    if (!view.isStatement || !view.isUnnamed) this.#unnamed.describe(backend);
    if (!view.isStatement) {
      backend.expect(Asked.describePortal);
      return Passing.asItIs;
    }
    if (view.isUnnamed) {
      const brought = this.#bringUnnamed(backend, true);
      if (brought instanceof Outdated) return this.#describeOutdated(backend, brought);
      if (!(brought instanceof UnnamedStatement)) return brought;
      this.#unnamed.isDescribed();
      backend.expect(Asked.describeStatement, brought);
      return Passing.asItIs;
    }
    if (!this.plain.renames) {
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
    if (view.isStatement && !view.isUnnamed && this.plain.renames) {
      this.#unnamed.describe(backend);
      const name = view.nameKey();
      if (this.changes.isUnsure(backend, name)) return Passing.later;
      // Other clients may share the statement: only the name is given up.
      const named = this.#named.get(name);
      if (named !== undefined) this.#named.delete(named);
      this.changes.nameChanges(backend, name);
      backend.expect(Asked.localClose, named);
      return Passing.none;
    }
    if (view.isStatement && view.isUnnamed) this.#unnamed.close(backend);
    else {
      this.#unnamed.describe(backend);
      backend.expect(Asked.close);
    }
    return Passing.asItIs;
  }

  /** The server will not answer this request, after an error. */
  answerDropped({ asked, subject }: Dropped): void {
    if (!(subject instanceof NamedByClient)) return;
    if (asked === Asked.localClose) this.#named.putBack(subject);
    else if (asked === Asked.parse && this.#owner.keepsUnparsed) this.#named.unparsed(subject);
    else if (asked === Asked.parse) this.#named.delete(subject);
  }

  /** A server has described a statement. */
  described(backend: Backend, subject: Subject, shape: StatementShape | undefined): void {
    if (subject instanceof UnnamedStatement) this.#unnamed.described(backend, subject, shape);
    else this.#preparer.described(backend, subject, shape);
  }

  /** `backend`: the server that has parsed it; undefined where a stand-in replaces it there. */
  unnamedChanged(unnamed: UnnamedStatement | undefined, backend: Backend | undefined): void {
    this.plain.answered();
    this.#unnamed.changed(unnamed, backend);
  }

  /** The batch ends. */
  sync(backend: Backend): void {
    this.#unnamed.describe(backend);
  }

  /** Deletes a statement by its name, as DEALLOCATE does; false when there is none. */
  deallocate(name: string): boolean {
    const named = this.#named.get(name);
    if (named !== undefined) this.#named.delete(named);
    return named !== undefined;
  }

  /** The server has executed a DEALLOCATE of the statement. */
  deallocated(named: NamedByClient): void {
    this.#named.delete(named);
  }

  has(name: string): boolean {
    return this.#named.get(name) !== undefined;
  }

  clear(): void {
    this.#named.clear();
    this.changes.clear();
    this.#mayDiscard = false;
  }
}

/** The only value of a Bind, as text; undefined where it is no search path. */
function pathOf(view: BindView): string | null | undefined {
  const { formats, values } = view.parameters();
  const [value] = values;
  if (value === undefined || values.length > 1 || formats.some((format) => format !== 0)) return undefined;
  const path = value?.toString('utf8') ?? null;
  return path === null || isNameList(path) ? path : undefined;
}

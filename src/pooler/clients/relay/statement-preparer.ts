/**
 * Prepares the named statements of one client on servers, so that each means on every server what the client was told at its
 * Parse.
 *
 * A Parse of the client always goes to its server, with a Describe of the pooler's own behind it: the answer is the shape of
 * the client's statement from then on. A server without a copy of the statement, or with one older than the client's Parse,
 * prepares it with the parameter types of that shape and describes it. The client's message waits for that. If the columns
 * differ, the client gets PostgreSQL's error for that (0A000) every time, until it prepares the statement anew.
 */
import type { ErrorFields } from '../../../wire/error-fields.js';
import { type BindView, ParseView } from '../../../wire/frontend-views.js';
import { writeParse } from '../../../wire/frontend-writers.js';
import { writeRenamed } from '../../../wire/rename-statement.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { PreparedStatement } from '../../servers/prepared-statement.js';
import { Asked, type Subject } from '../../servers/reply-queue.js';
import { type Preparation, ServerCopy } from '../../servers/server-statements.js';
import { emptyParse, parseWithTypes, type StatementShape } from '../../servers/statement-shape.js';
import {
  LiteralSettings,
  type LiteralSettingValues,
  settingBack,
  settingTo,
} from '../../settings/literal-settings.js';
import type { StatementEffects } from '../../settings/statement-effects.js';
import type { ClientBounds } from './client-bounds.js';
import { type ClientStatements, NamedByClient } from './client-statements.js';
import type { RunningQuery } from './running-query.js';
import type { SessionTracker } from './session-tracker.js';

/** The session that the statements belong to. */
export interface StatementOwner {
  readonly pool: BackendPool;
  readonly tracker: SessionTracker;
  /** Undefined where no statistics of statements are kept. */
  readonly running: RunningQuery | undefined;
  /** True if the wording of the error ends the session; if so, it has ended. */
  readonly endsWith: (error: ErrorFields) => boolean;
  /** As in PgBouncer, a Parse that failed, or was ignored after an error in its batch, gives its name nevertheless. */
  readonly keepsUnparsed: boolean;
  readonly bounds: ClientBounds;
  /** The client was told an error of the pooler's own. */
  readonly failed: (error: ErrorFields) => void;
}

/** A statement whose columns differ from what the client was told. */
export class Outdated {
  /** Shape that the client was told; undefined where no server could describe the statement. */
  readonly shape: StatementShape | undefined;

  constructor(shape: StatementShape | undefined) {
    this.shape = shape;
  }
}

/** A named statement that a server is asked to prepare again. */
class Repetition implements Preparation {
  readonly named: NamedByClient;
  readonly statement: PreparedStatement;
  readonly copy: ServerCopy;
  readonly isForDescribe: boolean;

  constructor(named: NamedByClient, copy: ServerCopy, isForDescribe: boolean) {
    this.named = named;
    this.statement = named.statement;
    this.copy = copy;
    this.isForDescribe = isForDescribe;
  }
}

const storedParse = new ParseView();
const none: LiteralSettingValues = new Map();

export class StatementPreparer {
  readonly #owner: StatementOwner;
  readonly #named: ClientStatements;
  /** Literal settings of the statement named last: most clients have the same for all of theirs. */
  #lastReading: LiteralSettings | undefined;
  /** The statement that a server has just described with other columns; its message waits to be refused. */
  #outdated: NamedByClient | undefined;

  constructor(owner: StatementOwner, named: ClientStatements) {
    this.#owner = owner;
    this.#named = named;
  }

  /** Passes on a Parse of the client's. `isSure`: the settings of the session are known. */
  parse(backend: Backend, view: ParseView, effects: StatementEffects, isSure: boolean): NamedByClient {
    const { pool, tracker } = this.#owner;
    const isShared = isSure && !this.#isPrivate;
    const statement = pool.statements.begin(view, isShared ? tracker.settings.planKey : undefined);
    const reading = isSure ? this.#readingNow() : undefined;
    const copy = this.#makeCopy(backend);
    const named = new NamedByClient(view.nameKey(), statement, copy, reading, effects);
    this.#send(backend, named, Asked.parse);
    return named;
  }

  /** A Parse that no server gets. */
  ignored(backend: Backend, view: ParseView, effects: StatementEffects): NamedByClient {
    const statement = this.#owner.pool.statements.begin(view, undefined);
    const copy = this.#makeCopy(backend);
    const named = new NamedByClient(view.nameKey(), statement, copy, undefined, effects);
    named.isUnparsed = true;
    return named;
  }

  /** Makes the server parse a text, only to get its errors. */
  tryParse(backend: Backend, view: ParseView): void {
    const copy = this.#makeCopy(backend);
    backend.expect(Asked.ownParse);
    writeRenamed(backend.toServer.mix(), view, copy.name);
    backend.own.closeStatement(copy);
  }

  /** Prepares an empty statement on the server, to be deallocated. Returns its name. */
  prepareNothing(backend: Backend): Buffer {
    const { name } = this.#makeCopy(backend);
    backend.expect(Asked.ownParse);
    writeParse(backend.toServer.mix(), { name, text: '' });
    return name;
  }

  /** Makes the server check the values of a Bind, only to get their errors. */
  tryBind(backend: Backend, view: BindView, shape: StatementShape): void {
    const copy = this.#makeCopy(backend);
    const writer = backend.toServer.mix();
    backend.expect(Asked.ownParse);
    const nothing = parseWithTypes(emptyParse, shape);
    writeRenamed(writer, storedParse.read(nothing, 0, nothing.length), copy.name);
    backend.expect(Asked.ownBind);
    writeRenamed(writer, view, copy.name);
    backend.own.closeStatement(copy);
  }

  /** Prepares a statement that no client has a name for. */
  prepareStandIn(backend: Backend, statement: PreparedStatement): ServerCopy {
    const copy = this.#makeCopy(backend);
    backend.statements.add(statement, copy);
    this.#makeRoom(backend);
    backend.expect(Asked.ownParse, { statement, copy } satisfies Preparation);
    this.#write(backend, statement, copy);
    return copy;
  }

  /** The copy that this client may use on this server; `later` when the server must be asked first. */
  locate(backend: Backend, named: NamedByClient, isForDescribe: boolean): ServerCopy | Outdated | 'later' {
    const { shape } = named.statement;
    const isOutdated = this.#outdated === named;
    this.#outdated = undefined;
    if (isOutdated) return new Outdated(shape);
    const copy = backend.statements.find(named.statement);
    if (copy !== undefined && named.accepts(copy)) return copy;
    if (shape === undefined && !named.isUnparsed) return new Outdated(undefined);
    this.#repeat(backend, named, isForDescribe);
    return 'later';
  }

  /** A server has described the statement of `subject`; `shape` is undefined where the description was too long to be read. */
  described(backend: Backend, subject: Subject, shape: StatementShape | undefined): void {
    if (subject instanceof NamedByClient) this.#settle(backend, subject, shape);
    else if (subject instanceof Repetition) this.#compare(backend, subject, shape);
  }

  #settle(backend: Backend, named: NamedByClient, shape: StatementShape | undefined): void {
    const { statements } = this.#owner.pool;
    if (shape === undefined) return;
    const before = named.statement;
    named.parsedAt = statements.tick();
    // A Close may be under way, and may still be undone.
    if (this.#named.get(named.name) !== named) before.describe(shape);
    else {
      named.statement = statements.settle(before, shape);
      backend.statements.rename(before, named.statement);
    }
  }

  #compare(
    backend: Backend,
    { named, statement, copy }: Repetition,
    shape: StatementShape | undefined,
  ): void {
    if (named.isUnparsed) {
      named.isUnparsed = false;
      named.copy = copy;
      this.#settle(backend, named, shape);
      return;
    }
    if (shape?.key === statement.shape?.key) return;
    backend.statements.drop(statement);
    this.#outdated = named;
  }

  /**
   * True in a transaction that may have changed the schema, and in a session with objects of its own: a statement may mean
   * something else for other clients.
   */
  get #isPrivate(): boolean {
    const { tracker } = this.#owner;
    return tracker.hasTouchedSchema || tracker.pin.isOwn;
  }

  /**
   * Prepares a statement again. The client may have changed its settings since its Parse. Literals in the text keep the meaning
   * they had at the Parse, as on a server that has the statement. A copy prepared under other settings must not be shared.
   */
  #repeat(backend: Backend, named: NamedByClient, isForDescribe: boolean): void {
    const { pool } = this.#owner;
    const now = this.#readingNow();
    const then = named.reading ?? now;
    const values = then === now ? undefined : then.valuesFor(named.statement.text, now);
    const reading = values === undefined ? now : now.with(values, then, pool.settings);
    if (named.statement.key !== '' && (this.#isPrivate || named.statement.isStrangeUnder(reading.planKey))) {
      this.#named.separate(named);
      if (values !== undefined) named.reading = reading;
    }
    const repetition = new Repetition(named, this.#makeCopy(backend), isForDescribe);
    if (named.statement.key === '') named.copy = repetition.copy;
    const { isDsql } = pool.plan;
    for (const text of settingTo(values ?? none, isDsql)) backend.own.askWithin(text);
    this.#send(backend, repetition, Asked.ownParse);
    for (const text of settingBack(values ?? none, now, isDsql)) backend.own.askWithin(text);
  }

  #readingNow(): LiteralSettings {
    const { told, settings } = this.#owner.tracker;
    if (this.#lastReading?.isUnder(told, settings) !== true)
      this.#lastReading = new LiteralSettings(told, settings);
    return this.#lastReading as LiteralSettings;
  }

  #makeCopy({ replies }: Backend): ServerCopy {
    const { statements } = this.#owner.pool;
    return new ServerCopy(statements.nextName(), statements.tick(), replies.batchesSent);
  }

  #send(backend: Backend, preparation: NamedByClient | Repetition, asked: Asked): void {
    const { statement, copy } = preparation;
    backend.statements.add(statement, copy);
    this.#makeRoom(backend);
    backend.expect(asked, preparation);
    this.#write(backend, statement, copy);
    backend.own.describeStatement(copy.name, preparation);
  }

  /** Closes stale copies, and others if the server has too many. */
  #makeRoom(backend: Backend): void {
    const { statements, replies } = backend;
    if (!statements.mayEvict) return;
    for (const old of statements.evict(replies)) backend.own.closeStatement(old);
  }

  #write(backend: Backend, { parse }: PreparedStatement, { name }: ServerCopy): void {
    this.#owner.pool.tally.serverParses++;
    writeRenamed(backend.toServer.mix(), storedParse.read(parse, 0, parse.length), name);
  }
}

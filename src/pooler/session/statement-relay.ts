/**
 * The extended protocol of one client, on servers that it shares with others: its prepared statements have names of the
 * pooler's there, are prepared on each server when they are needed first, and outlive the client's use of them.
 */
import type { ErrorFields } from '../../wire/error-fields.js';
import { BindView, ParseView, TargetView } from '../../wire/frontend-views.js';
import type { MessageScanner } from '../../wire/message-scanner.js';
import { headerBytes, TransactionStatus } from '../../wire/message-types.js';
import { writeRenamed } from '../../wire/rename-statement.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Backend } from '../backend/backend.js';
import type { BackendPool } from '../backend/backend-pool.js';
import type { PreparedStatement } from '../backend/prepared-statement.js';
import { Asked, type Dropped } from '../backend/reply-queue.js';
import type { Settings } from '../settings.js';
import { ClientStatements, NamedByClient } from './client-statements.js';
import type { SessionEffects } from './session-effects.js';
import type { SettingChange } from './setting-change.js';

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

/** Whose statements these are. */
export interface StatementOwner {
  readonly pool: BackendPool;
  readonly effects: SessionEffects;
  readonly settings: { readonly settings: Settings };
}

/** The unnamed statement as the client sent it, for a server that does not have it. */
class UnnamedStatement {
  /** Undefined where it was too long to be kept. */
  readonly parse: Buffer | undefined;
  readonly change: SettingChange | undefined;
  /** The one that it replaced. */
  previous: UnnamedStatement | undefined;

  constructor(parse: Buffer | undefined, change: SettingChange | undefined) {
    this.parse = parse;
    this.change = change;
    this.previous = undefined;
  }
}

const parseView = new ParseView();
const bindView = new BindView();
const describeView = new TargetView('Describe');
const closeView = new TargetView('Close');

export class StatementRelay {
  readonly #owner: StatementOwner;
  readonly #named: ClientStatements;
  /** Names that were given or taken behind how many Syncs, as long as those are not answered. */
  readonly #touched = new Map<string, number>();
  #unnamed: UnnamedStatement | undefined;
  /** What the statement does to settings that is bound to the unnamed portal. */
  #portalChange: SettingChange | undefined;

  constructor(owner: StatementOwner) {
    this.#owner = owner;
    this.#named = new ClientStatements(owner.pool.statements);
  }

  /** Statements that have a name. */
  get size(): number {
    return this.#named.size;
  }

  parse(backend: Backend, message: MessageScanner): Passing {
    const { source, start, end, isWhole } = message;
    const { pool, effects } = this.#owner;
    const view = isWhole ? parseView.read(source, start, end) : parseView.readName(source, start, end);
    const change = isWhole ? effects.textComes(view) : undefined;
    if (view.isUnnamed) {
      this.#parseUnnamed(backend, isWhole ? Buffer.from(source.subarray(start, end)) : undefined, change);
      return Passing.asItIs;
    }
    if (!pool.plan.followsStatements) {
      backend.expect(Asked.parse);
      return Passing.asItIs;
    }
    if (this.#isUnsure(backend, view.nameKey())) return Passing.later;
    if (isWhole) this.#parseNamed(backend, view, change);
    else this.#refuse(backend, SqlState.programLimitExceeded, tooLong(message.size));
    return Passing.none;
  }

  #parseUnnamed(backend: Backend, parse: Buffer | undefined, change: SettingChange | undefined): void {
    const unnamed = new UnnamedStatement(parse, change);
    if (this.#unnamed !== undefined) {
      this.#unnamed.previous = undefined;
      unnamed.previous = this.#unnamed;
    }
    this.#unnamed = unnamed;
    this.#owner.pool.tally.clientParses++;
    this.#owner.pool.tally.serverParses++;
    backend.unnamedStatement = unnamed;
    backend.expect(Asked.parse, unnamed);
  }

  #parseNamed(backend: Backend, view: ParseView, change: SettingChange | undefined): void {
    const name = view.nameKey();
    const taken = this.#find(backend, name);
    if (taken !== undefined) {
      // Something else may be wrong with it, too: that is for the server to see first.
      const message = `prepared statement "${view.name()}" already exists`;
      backend.expectFailure(
        failure(SqlState.duplicatePreparedStatement, message),
        SqlState.duplicatePreparedStatement,
      );
      writeRenamed(backend.toServer.mix(), view, taken.statement.name);
      return;
    }
    const statement = this.#chooseStatement(backend, view);
    const named = new NamedByClient(name, statement, change);
    this.#owner.pool.tally.clientParses++;
    this.#named.add(named);
    this.#touched.set(name, backend.replies.syncsSent);
    if (backend.statements.has(statement)) backend.expect(Asked.knownParse, named);
    else this.#prepare(backend, statement, Asked.parse, named);
  }

  /**
   * Usually the one that all clients share. One that was asked for before a Sync may yet fail, and then what is behind that
   * Sync would be told that it exists; and in a failed transaction a server prepares nothing but what ends it. In both cases
   * this client's is prepared apart from it, and the server decides.
   */
  #chooseStatement(backend: Backend, view: ParseView): PreparedStatement {
    const { pool, settings } = this.#owner;
    const { statements } = pool;
    const statement = statements.use(view, settings.settings.planKey);
    if (!backend.statements.has(statement)) return statement;
    const isSure = !backend.replies.owesSync || backend.statements.isConfirmed(statement);
    if (isSure && backend.status !== TransactionStatus.failed) return statement;
    statements.release(statement);
    return statements.useAlone(view);
  }

  /**
   * A name was given or taken in a pipeline that is over for the client, but not answered: should something in it fail, then
   * that has not happened.
   */
  #isUnsure({ replies }: Backend, name: string): boolean {
    if (replies.size === 0) this.#touched.clear();
    if (!replies.owesSync) return false;
    const behind = this.#touched.get(name);
    return behind !== undefined && behind >= replies.syncsOver && behind < replies.syncsSent;
  }

  /** Has the server prepare a statement, and forget another if it has too many. */
  #prepare(backend: Backend, statement: PreparedStatement, asked: Asked, subject: object): void {
    const evicted = backend.statements.add(statement);
    if (evicted !== undefined) backend.closeStatement(evicted);
    this.#owner.pool.tally.serverParses++;
    backend.expect(asked, subject);
    backend.toServer.mix().append(statement.parse);
  }

  /** The client's statement of this name, on this server; undefined for one that does not exist. */
  #find(backend: Backend, name: string): NamedByClient | undefined {
    const named = this.#named.get(name);
    if (named !== undefined && !backend.statements.has(named.statement))
      this.#prepare(backend, named.statement, Asked.ownParse, named.statement);
    return named;
  }

  /** Brings the client's unnamed statement to this server, if it is not there; false where the client has none. */
  #bringUnnamed(backend: Backend): boolean {
    const unnamed = this.#unnamed;
    if (unnamed === undefined) return false;
    if (backend.unnamedStatement === unnamed) return true;
    if (unnamed.parse === undefined) return false;
    backend.unnamedStatement = unnamed;
    backend.expect(Asked.ownParse);
    backend.toServer.mix().append(unnamed.parse);
    return true;
  }

  bind(backend: Backend, message: MessageScanner): Passing {
    const { pool } = this.#owner;
    const view = bindView.read(message.source, message.start, message.end);
    if (view.isUnnamed) {
      if (!this.#bringUnnamed(backend)) return this.#refuseUnnamed(backend);
      this.#portalChange = this.#unnamed?.change;
      pool.tally.binds++;
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    if (!pool.plan.followsStatements) {
      backend.expect(Asked.bind);
      return Passing.asItIs;
    }
    if (this.#isUnsure(backend, view.nameKey())) return Passing.later;
    const named = this.#find(backend, view.nameKey());
    if (named === undefined) return this.#refuseUnknown(backend, view.name());
    this.#portalChange = named.change;
    pool.tally.binds++;
    backend.expect(Asked.bind);
    writeRenamed(backend.toServer.mix(), view, named.statement.name);
    return Passing.rewritten;
  }

  execute(backend: Backend, { source, start }: MessageScanner): Passing {
    const isUnnamed = source[start + headerBytes] === 0;
    backend.expect(Asked.execute, isUnnamed ? this.#portalChange : undefined);
    return Passing.asItIs;
  }

  describe(backend: Backend, message: MessageScanner): Passing {
    const view = describeView.read(message.source, message.start, message.end);
    if (!view.isStatement) {
      backend.expect(Asked.describePortal);
      return Passing.asItIs;
    }
    if (view.isUnnamed && !this.#bringUnnamed(backend)) return this.#refuseUnnamed(backend);
    if (view.isUnnamed || !this.#owner.pool.plan.followsStatements) {
      backend.expect(Asked.describeStatement);
      return Passing.asItIs;
    }
    if (this.#isUnsure(backend, view.nameKey())) return Passing.later;
    const named = this.#find(backend, view.nameKey());
    if (named === undefined) return this.#refuseUnknown(backend, view.name());
    backend.expect(Asked.describeStatement);
    writeRenamed(backend.toServer.mix(), view, named.statement.name);
    return Passing.none;
  }

  close(backend: Backend, message: MessageScanner): Passing {
    const view = closeView.read(message.source, message.start, message.end);
    if (view.isStatement && !view.isUnnamed && this.#owner.pool.plan.followsStatements) {
      const name = view.nameKey();
      if (this.#isUnsure(backend, name)) return Passing.later;
      // Other clients may have the statement, too: only the name is given up.
      const named = this.#named.get(name);
      if (named !== undefined) this.#named.delete(named);
      this.#touched.set(name, backend.replies.syncsSent);
      backend.expect(Asked.localClose, named);
      return Passing.none;
    }
    if (view.isStatement && view.isUnnamed) this.#unnamed = undefined;
    backend.expect(Asked.close);
    return Passing.asItIs;
  }

  /** The server will not answer this, after an error. */
  answerDropped({ asked, subject }: Dropped, hasFailed: boolean): void {
    if (subject instanceof UnnamedStatement) {
      if (this.#unnamed === subject) this.#unnamed = hasFailed ? undefined : subject.previous;
    } else if (subject instanceof NamedByClient) {
      if (asked === Asked.localClose) this.#named.putBack(subject);
      else this.#named.delete(subject);
    }
  }

  /** A simple query ends the unnamed statement. */
  forgetUnnamed(backend: Backend): void {
    this.#unnamed = undefined;
    backend.unnamedStatement = undefined;
  }

  /** Gives up one by its name, as DEALLOCATE does; false when there is none. */
  deallocate(name: string): boolean {
    const named = this.#named.get(name);
    if (named !== undefined) this.#named.delete(named);
    return named !== undefined;
  }

  has(name: string): boolean {
    return this.#named.get(name) !== undefined;
  }

  clear(): void {
    this.#named.clear();
    this.#touched.clear();
    this.#unnamed = undefined;
  }

  #refuseUnnamed(backend: Backend): Passing {
    return this.#refuse(backend, SqlState.invalidStatementName, 'unnamed prepared statement does not exist');
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

function failure(code: string, message: string): ErrorFields {
  return { severity: 'ERROR', code, message };
}

function tooLong(bytes: number): string {
  return `a statement of ${bytes} bytes is too long to be prepared under a name; prepare it without one`;
}

/** The extended protocol of one session: messages that wait for PostgreSQL until they have to go out, and those that the stand-in answers. */

import type { JudgedStatement, Judgement } from '../../dialect/judgement.js';
import { bindComplete, closeComplete, noData, parseComplete, sync } from '../../wire/fixed-messages.js';
import { BindView, ExecuteView, ParseView, TargetView } from '../../wire/frontend-views.js';
import { writeParse } from '../../wire/frontend-writers.js';
import { Backend, Frontend } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeParameterDescription, writeRowDescription } from '../../wire/rows.js';
import type { Message } from './channel.js';
import { ClientNames, type ClientStatement, type Portal } from './client-names.js';
import { abortedTransaction, conflictFailure, errorOf, fail, StatementFailed } from './errors.js';
import { isOwn, ownColumn } from './own-answers.js';
import { ExtendedUnit } from './unit.js';

/** The session as a batch sees it. */
export interface BatchHost {
  judge(text: string): Judgement;
  send(bytes: Buffer): void;
  /** Throws what speaks against running the statement now. */
  admit(statement: JudgedStatement): void;
  isPlain(statement: JudgedStatement): boolean;
  /** Runs a statement that is not plain. */
  run(unit: ExtendedUnit): Promise<void>;
  /** Runs a statement of the stand-in's own. */
  runOwn(statement: JudgedStatement): Promise<void>;
  /** Sends messages that end with Sync to PostgreSQL, and the answer to the client. */
  relay(bytes: Buffer): Promise<void>;
  readonly isInTransaction: boolean;
  /** The client's transaction has failed. */
  readonly isFailed: boolean;
  /** Changes when PostgreSQL's transaction is begun anew behind the client's back, which ends its portals. */
  readonly generation: number;
  beginImplicit(): void;
  /** Plain statements of the batch have run. */
  ran(statement: JudgedStatement): void;
}

const views = {
  parse: new ParseView(),
  bind: new BindView(),
  describe: new TargetView('Describe'),
  close: new TargetView('Close'),
  execute: new ExecuteView(),
};

/** PostgreSQL keeps statements in memory, and so does the stand-in. */
const mostStatements = 10_000;

export class ExtendedBatch {
  readonly names = new ClientNames();
  readonly #host: BatchHost;
  #pending: Message[] = [];
  #executed: JudgedStatement[] = [];

  constructor(host: BatchHost) {
    this.#host = host;
  }

  /** One message up to Sync, Sync excluded. Throws a `StatementFailed`: the rest of the batch is to be skipped. */
  async take(message: Message): Promise<void> {
    try {
      await this.#take(message);
    } catch (error) {
      // Messages before the refused one are answered first.
      if (error instanceof StatementFailed) await this.flush(false);
      if (message.type === Frontend.parse && message.bytes[5] === 0) this.names.forgetUnnamedStatement();
      throw error;
    }
  }

  async #take(message: Message): Promise<void> {
    const { type } = message;
    if (type === Frontend.parse) return this.#parse(message);
    if (type === Frontend.bind) return this.#bind(message);
    if (type === Frontend.describe) return this.#describe(message);
    if (type === Frontend.execute) return this.#execute(message);
    if (type === Frontend.close) return this.#close(message);
    if (type === Frontend.flush) return this.flush(false);
  }

  /** Forgets what has not been sent, after an error. */
  clear(): void {
    this.#pending = [];
    this.#executed = [];
    this.names.undo();
  }

  /** Sends what waits. At the end of the batch a lone statement needs no transaction around it. */
  async flush(isEnd: boolean): Promise<void> {
    const pending = this.#pending;
    if (pending.length === 0) return;
    const executed = this.#executed;
    this.#pending = [];
    this.#executed = [];
    const needsTransaction = isEnd
      ? executed.length > 1
      : executed.length > 0 || pending.some(({ type }) => type === Frontend.bind);
    if (needsTransaction && !this.#host.isInTransaction && !this.#host.isFailed) {
      this.#host.beginImplicit();
      for (const statement of executed) this.#host.admit(statement);
    }
    await this.#host.relay(Buffer.concat([...pending.map(({ bytes }) => bytes), sync]));
    for (const statement of executed) this.#host.ran(statement);
  }

  async #parse({ type, bytes }: Message): Promise<void> {
    const view = views.parse.read(bytes, 0, bytes.length);
    const key = view.nameKey();
    const name = view.name();
    const parameterTypes = view.parameterTypes();
    const { statements, isMalformed } = this.#host.judge(view.text());
    const [judged] = statements;
    // PostgreSQL has the words for these.
    if (isMalformed || statements.length > 1) {
      this.names.parsed(key, { judged: undefined, parameterTypes });
      this.#pending.push({ type, bytes });
      return;
    }
    if (judged !== undefined) this.#expectUsable(judged);
    if (judged?.refusal !== undefined) throw new StatementFailed(errorOf(judged.refusal));
    if (this.names.statementCount >= mostStatements)
      throw fail('53200', `out of memory: a session can have ${mostStatements} prepared statements`);
    const existing = key === '' ? undefined : this.names.statement(key);
    const isOwns = judged !== undefined && isOwn(judged);
    // PostgreSQL looks at names of its own.
    if (existing !== undefined && (isOwns || (existing.judged !== undefined && isOwn(existing.judged))))
      throw fail('42P05', `prepared statement "${name}" already exists`);
    if (isOwns) {
      await this.flush(false);
      this.names.parsed(key, { judged, parameterTypes });
      return this.#answer(Backend.parseComplete, parseComplete);
    }
    this.names.parsed(key, { judged, parameterTypes });
    if (judged === undefined || judged.sql === judged.source) this.#pending.push({ type, bytes });
    else {
      const writer = new MessageWriter();
      writeParse(writer, { name, text: judged.sql, parameterTypes });
      this.#pending.push({ type, bytes: writer.take() });
    }
  }

  async #bind({ type, bytes }: Message): Promise<void> {
    const view = views.bind.read(bytes, 0, bytes.length);
    const statement = this.#statement(view.nameKey());
    const { judged } = statement;
    const key = view.portalKey();
    this.#expectUsable(judged);
    const portal = { statement, bind: bytes, generation: this.#host.generation, isStarted: false };
    const existing = key === '' ? undefined : this.names.portal(key)?.statement.judged;
    const isOwns = judged !== undefined && isOwn(judged);
    if (
      isOwns ? this.names.portal(key) !== undefined && key !== '' : existing !== undefined && isOwn(existing)
    )
      throw fail('42P03', `cursor "${nameOf(key)}" already exists`);
    if (isOwns) {
      await this.flush(false);
      this.names.bound(key, portal);
      return this.#answer(Backend.bindComplete, bindComplete);
    }
    this.names.bound(key, portal);
    this.#pending.push({ type, bytes });
  }

  async #describe({ type, bytes }: Message): Promise<void> {
    const view = views.describe.read(bytes, 0, bytes.length);
    const key = view.nameKey();
    const { judged } = view.isStatement ? this.#statement(key) : this.#portal(key).statement;
    const { isStatement } = view;
    if (judged === undefined || !isOwn(judged)) {
      const hasResult = judged?.kind === 'read' || judged?.kind === 'write';
      if (hasResult) this.#expectUsable(judged);
      this.#pending.push({ type, bytes });
      return;
    }
    const column = ownColumn(judged);
    const writer = new MessageWriter();
    if (isStatement) writeParameterDescription(writer, []);
    if (column === undefined) writer.append(noData);
    else writeRowDescription(writer, [{ name: column }]);
    await this.flush(false);
    this.#host.send(writer.take());
  }

  async #close({ type, bytes }: Message): Promise<void> {
    const view = views.close.read(bytes, 0, bytes.length);
    const { isStatement } = view;
    const key = view.nameKey();
    const judged = (isStatement ? this.names.statement(key) : this.names.portal(key)?.statement)?.judged;
    if (judged !== undefined && isOwn(judged)) {
      await this.flush(false);
      this.names.closed(isStatement, key);
      return this.#answer(Backend.closeComplete, closeComplete);
    }
    this.names.closed(isStatement, key);
    this.#pending.push({ type, bytes });
  }

  async #execute(message: Message): Promise<void> {
    const { bytes } = message;
    const key = views.execute.read(bytes, 0, bytes.length).nameKey();
    const portal = this.#portal(key);
    const { judged } = portal.statement;
    if (judged === undefined) {
      this.#expectUsable(judged);
      this.#pending.push(message);
      return;
    }
    if (isOwn(judged)) {
      await this.flush(false);
      this.#expectUsable(judged);
      if (portal.isStarted) throw fail('55000', `portal "${nameOf(key)}" cannot be run`);
      portal.isStarted = true;
      return this.#host.runOwn(judged);
    }
    this.#expectUsable(judged);
    const isBound = !this.#pending.some(({ bytes: other }) => other === portal.bind);
    if (isBound && portal.generation !== this.#host.generation) throw conflictFailure('data');
    // A portal that is bound has its rows, whatever has happened to tables since.
    if (this.#host.isPlain(judged) || (isBound && judged.kind === 'read' && judged.locking === 'none')) {
      this.#host.admit(judged);
      this.#pending.push(message);
      this.#executed.push(judged);
      // DEALLOCATE ALL: what comes next has to know.
      if (judged.kind === 'session' && /\bdeallocate\b/i.test(judged.sql)) await this.flush(false);
      return;
    }
    await this.#executeAlone(message, portal, judged);
  }

  /** Messages before the portal's Bind go out first; those after it belong to its execution. */
  async #executeAlone(message: Message, portal: Portal, judged: JudgedStatement): Promise<void> {
    const from = this.#pending.findIndex(({ bytes }) => bytes === portal.bind);
    let own: Message[] = [];
    if (from >= 0) {
      // Its Parse belongs to it, where that comes directly before.
      const start = this.#pending[from - 1]?.type === Frontend.parse ? from - 1 : from;
      own = this.#pending.slice(start);
      this.#pending = this.#pending.slice(0, start);
    }
    await this.flush(false);
    if (!this.#host.isInTransaction) this.#host.beginImplicit();
    this.#host.admit(judged);
    const bind = from >= 0 || portal.isStarted ? undefined : portal.bind;
    portal.isStarted = true;
    const { parameterTypes } = portal.statement;
    await this.#host.run(new ExtendedUnit(judged, parameterTypes, [...own, message], bind));
  }

  #statement(key: string): ClientStatement {
    const statement = this.names.statement(key);
    if (statement !== undefined) return statement;
    const name = nameOf(key);
    throw fail(
      '26000',
      key === ''
        ? 'unnamed prepared statement does not exist'
        : `prepared statement "${name}" does not exist`,
    );
  }

  #portal(key: string): Portal {
    const portal = this.names.portal(key);
    if (portal !== undefined) return portal;
    throw fail('34000', `portal "${nameOf(key)}" does not exist`);
  }

  /** After an error, a transaction has no use for statements but those that end it. */
  #expectUsable(judged: JudgedStatement | undefined): void {
    if (this.#host.isFailed && judged?.kind !== 'commit' && judged?.kind !== 'rollback')
      throw new StatementFailed(abortedTransaction);
  }

  #answer(type: number, bytes: Buffer): void {
    this.#host.send(bytes);
    this.names.answered(type);
  }
}

function nameOf(key: string): string {
  return Buffer.from(key, 'latin1').toString();
}

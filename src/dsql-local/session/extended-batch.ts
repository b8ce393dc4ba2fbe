/** The extended protocol of one session: statements and portals, and messages that wait for PostgreSQL until they have to go out. */
import { bindComplete, closeComplete, noData, parseComplete, sync } from '../../wire/fixed-messages.js';
import { BindView, ExecuteView, ParseView, TargetView } from '../../wire/frontend-views.js';
import { writeParse } from '../../wire/frontend-writers.js';
import { Frontend } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import { writeParameterDescription, writeRowDescription } from '../../wire/rows.js';
import type { JudgedStatement, Judgement } from '../dialect/judgement.js';
import type { Message } from './channel.js';
import { errorOf, fail, StatementFailed } from './errors.js';
import { isOwn, ownColumn } from './own-answers.js';
import { type ClientStatement, ExtendedUnit } from './unit.js';

interface Portal {
  readonly statement: ClientStatement;
  readonly bind: Buffer;
}

/** What a batch needs of its session. */
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
  beginImplicit(): void;
  /** Plain statements of the batch have run. */
  ran(statement: JudgedStatement): Promise<void>;
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
  readonly #host: BatchHost;
  readonly #statements = new Map<string, ClientStatement>();
  readonly #portals = new Map<string, Portal>();
  #pending: Message[] = [];
  #executed: JudgedStatement[] = [];

  constructor(host: BatchHost) {
    this.#host = host;
  }

  /** One message up to Sync, Sync excluded. Throws a `StatementFailed`: the rest of the batch is to be skipped. */
  async take(message: Message): Promise<void> {
    const { type } = message;
    if (type === Frontend.parse) return this.#parse(message);
    if (type === Frontend.bind) return this.#bind(message);
    if (type === Frontend.describe) return this.#describe(message);
    if (type === Frontend.execute) return this.#execute(message);
    if (type === Frontend.close) return this.#close(message);
    return this.flush(false);
  }

  /** Forgets what has not been sent, after an error. */
  clear(): void {
    this.#pending = [];
    this.#executed = [];
  }

  /** The transaction is over, and its portals with it. */
  forgetPortals(): void {
    if (this.#portals.size > 0) this.#portals.clear();
  }

  forgetStatements(): void {
    this.#statements.clear();
  }

  /** Sends what waits. At the end of the batch a lone statement needs no transaction around it. */
  async flush(isEnd: boolean): Promise<void> {
    const pending = this.#pending;
    if (pending.length === 0) return;
    const executed = this.#executed;
    const needsTransaction = isEnd
      ? executed.length > 1
      : executed.length > 0 || pending.some(({ type }) => type === Frontend.bind);
    if (needsTransaction && !this.#host.isInTransaction) this.#host.beginImplicit();
    this.clear();
    await this.#host.relay(Buffer.concat([...pending.map(({ bytes }) => bytes), sync]));
    for (const statement of executed) await this.#host.ran(statement);
  }

  async #parse({ type, bytes }: Message): Promise<void> {
    const view = views.parse.read(bytes, 0, bytes.length);
    const key = view.nameKey();
    const name = view.name();
    const parameterTypes = view.parameterTypes();
    const { statements, isMalformed } = this.#host.judge(view.text());
    const [judged] = statements;
    // PostgreSQL has the words for these.
    if (isMalformed || judged === undefined || statements.length > 1) {
      this.#statements.delete(key);
      this.#pending.push({ type, bytes });
      return;
    }
    if (judged.refusal !== undefined) throw new StatementFailed(errorOf(judged.refusal));
    const isTaken = key !== '' && this.#statements.has(key);
    if (!isTaken) {
      if (this.#statements.size >= mostStatements)
        throw fail('53200', `out of memory: a session can have ${mostStatements} prepared statements`);
      this.#statements.set(key, { judged, parameterTypes });
    }
    if (isOwn(judged)) {
      if (isTaken) throw fail('42P05', `prepared statement "${name}" already exists`);
      await this.#answer(parseComplete);
    } else if (judged.sql === judged.source) this.#pending.push({ type, bytes });
    else {
      const writer = new MessageWriter();
      writeParse(writer, { name, text: judged.sql, parameterTypes });
      this.#pending.push({ type, bytes: writer.take() });
    }
  }

  async #bind({ type, bytes }: Message): Promise<void> {
    const view = views.bind.read(bytes, 0, bytes.length);
    const statement = this.#statements.get(view.nameKey());
    const key = view.portalKey();
    if (statement === undefined) this.#portals.delete(key);
    else this.#portals.set(key, { statement, bind: bytes });
    if (statement !== undefined && isOwn(statement.judged)) await this.#answer(bindComplete);
    else this.#pending.push({ type, bytes });
  }

  async #describe({ type, bytes }: Message): Promise<void> {
    const view = views.describe.read(bytes, 0, bytes.length);
    const key = view.nameKey();
    const statement = view.isStatement ? this.#statements.get(key) : this.#portals.get(key)?.statement;
    if (statement === undefined || !isOwn(statement.judged)) {
      this.#pending.push({ type, bytes });
      return;
    }
    const column = ownColumn(statement.judged);
    const writer = new MessageWriter();
    if (view.isStatement) writeParameterDescription(writer, []);
    if (column === undefined) writer.append(noData);
    else writeRowDescription(writer, [{ name: column }]);
    await this.#answer(writer.take());
  }

  async #close({ type, bytes }: Message): Promise<void> {
    const view = views.close.read(bytes, 0, bytes.length);
    const key = view.nameKey();
    const statement = view.isStatement ? this.#statements.get(key) : this.#portals.get(key)?.statement;
    (view.isStatement ? this.#statements : this.#portals).delete(key);
    if (statement !== undefined && isOwn(statement.judged)) await this.#answer(closeComplete);
    else this.#pending.push({ type, bytes });
  }

  async #execute(message: Message): Promise<void> {
    const { bytes } = message;
    const key = views.execute.read(bytes, 0, bytes.length).nameKey();
    const portal = this.#portals.get(key);
    if (portal === undefined) {
      this.#pending.push(message);
      return;
    }
    const { judged } = portal.statement;
    if (isOwn(judged)) {
      await this.flush(false);
      return this.#host.runOwn(judged);
    }
    if (this.#host.isPlain(judged)) {
      this.#host.admit(judged);
      this.#pending.push(message);
      this.#executed.push(judged);
      return;
    }
    await this.#executeAlone(message, portal);
  }

  /** What stands before the Bind of this portal goes out first, what stands behind it belongs to its execution. */
  async #executeAlone(message: Message, portal: Portal): Promise<void> {
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
    this.#host.admit(portal.statement.judged);
    await this.#host.run(
      new ExtendedUnit(portal.statement, [...own, message], from >= 0 ? undefined : portal.bind),
    );
  }

  async #answer(bytes: Buffer): Promise<void> {
    await this.flush(false);
    this.#host.send(bytes);
  }
}

/** One client that is let in: takes its messages in order, and answers each as DSQL would. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Dialect, JudgedStatement } from '../../dialect/judgement.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { emptyQueryResponse, readyFailed, readyIdle, readyInTransaction } from '../../wire/fixed-messages.js';
import { QueryView } from '../../wire/frontend-views.js';
import { Backend, Frontend } from '../../wire/message-types.js';
import { isCommandTag } from '../../wire/rows.js';
import type { Conflicts } from '../conflicts/conflicts.js';
import { Participant } from '../conflicts/participant.js';
import { prepareHidden } from '../postgres/hidden-commands.js';
import { type Link, ServerError, type Take } from '../postgres/link.js';
import type { Channel, Message } from './channel.js';
import { abortedTransaction, errorOf, fail, fatalOf, movedBy, StatementFailed } from './errors.js';
import { type BatchHost, ExtendedBatch } from './extended-batch.js';
import { errorBytes, isOwn } from './own-answers.js';
import { OwnStatements, type OwnStatementsHost } from './own-statements.js';
import { Runner } from './runner.js';
import type { SessionHooks, TransactionLimits } from './settings.js';
import { QueryUnit } from './unit.js';

export interface SessionOptions {
  readonly channel: Channel;
  readonly conflicts: Conflicts;
  readonly dialect: Dialect;
  readonly limits: TransactionLimits;
  readonly hooks: SessionHooks;
  /** Opens a connection to PostgreSQL with the client's role and settings. */
  readonly openLink: () => Promise<Link>;
  /** Grants or revokes a role; throws a `StatementFailed`. */
  readonly grantIam: (isGrant: boolean, role: string, arn: string) => Promise<void>;
  readonly cancel: (link: Link) => Promise<void>;
  /** Ends PostgreSQL's session, whatever it does. */
  readonly terminate: (link: Link) => void;
}

const queryView = new QueryView();
/** Not supported, and beyond a limit. */
const refusalStates = new Set(['0A000', '54000', '54001', '54011']);

export class Session implements BatchHost, OwnStatementsHost {
  readonly #options: SessionOptions;
  readonly #channel: Channel;
  readonly #batch = new ExtendedBatch(this);
  readonly #ownStatements = new OwnStatements(this);
  #participant: Participant | undefined;
  #opened: Runner | undefined;
  #isSkipping = false;
  /** The statement that runs is all of a Query. */
  #isLone = false;
  #isEnding = false;
  /** A message is being answered. */
  #isTaking = false;
  /** Messages came whose Sync is still to come. */
  #isInBatch = false;
  #lastCall: NodeJS.Timeout | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#channel = options.channel;
  }

  /** The connection to PostgreSQL, once there is one. */
  get link(): Link | undefined {
    return this.#participant?.link;
  }

  /** In a transaction that its client has begun, or in the middle of a request. */
  get #isBusy(): boolean {
    return this.#isTaking || this.#isInBatch || this.#opened?.isOpen === true;
  }

  /** Serves the client until it leaves. */
  async serve(): Promise<void> {
    try {
      for (;;) {
        const message = await this.#channel.next();
        if (message === undefined || message.type === Frontend.terminate) return;
        this.#isTaking = true;
        await this.#take(message);
        this.#isTaking = false;
        this.#isInBatch = message.type !== Frontend.query && message.type !== Frontend.sync;
        if (this.#isEnding && !this.#isBusy) return;
      }
    } catch (error) {
      const isClients = this.#channel.isOver || error instanceof ProtocolViolationError;
      if (!isClients) this.#options.hooks.troubled(error);
    } finally {
      this.#leave();
    }
  }

  /** Ends when its transaction is over, at once where it has none; at the latest when a transaction reaches its longest age. */
  endWhenIdle(): void {
    this.#isEnding = true;
    const { ageMs } = this.#options.limits;
    if (!this.#isBusy) this.#channel.destroy();
    else this.#lastCall = setTimeout(() => this.#channel.destroy(), ageMs);
  }

  #leave(): void {
    clearTimeout(this.#lastCall);
    const participant = this.#participant;
    if (participant !== undefined) {
      this.#options.conflicts.leave(participant);
      participant.link.close();
    }
    this.#channel.end();
  }

  async #take(message: Message): Promise<void> {
    const { hooks } = this.#options;
    const wait = hooks.latencyMs();
    if (wait > 0 && (message.type === Frontend.query || message.type === Frontend.sync)) await delay(wait);
    const participant = this.#participant ?? (await this.#open());
    // The client has left before PostgreSQL had a process for it.
    if (this.#channel.hasLeft) return;
    await participant.take();
    try {
      if (message.type === Frontend.query) await this.#query(message);
      else if (message.type === Frontend.functionCall) await this.#functionCall();
      else if (message.type === Frontend.sync) await this.#sync();
      else if (!this.#isSkipping) await this.#inBatch(message);
    } finally {
      participant.giveBack();
    }
  }

  async #open(): Promise<Participant> {
    const { conflicts, dialect, limits, hooks, openLink, cancel, terminate } = this.#options;
    const link = await openLink().catch((error: unknown) => {
      this.send(errorBytes(fatalOf(error)));
      throw error;
    });
    const participant = new Participant(link);
    link.onClosed = () => this.#channel.destroy();
    await prepareHidden(link);
    link.onParameter = (_type, source, start, end) => this.#channel.send(source, start, end);
    this.#channel.onDrained = () => link.resume();
    // The rest of the answer has no reader. A cancel request would be lost where PostgreSQL has yet to read the statement.
    this.#channel.onLeft(() => {
      link.resume();
      if (this.#isTaking) terminate(link);
    });
    conflicts.join(participant);
    const send = (source: Buffer, start = 0, end: number = source.length): void => {
      if (end > start && !this.#channel.send(source, start, end) && !this.#channel.isOver) link.pause();
    };
    const next = (isOver: Promise<unknown>): Promise<Message | undefined> => this.#channel.next(isOver);
    this.#participant = participant;
    this.#opened = new Runner({
      participant,
      conflicts,
      dialect,
      limits,
      hooks,
      send,
      next,
      cancel: () => cancel(link),
      isLast: () => this.#isLone || this.#channel.nextType === Frontend.sync,
      answered: (type) => this.#batch.names.answered(type),
    });
    return participant;
  }

  get runner(): Runner {
    return this.#opened as Runner;
  }

  async #query({ bytes }: Message): Promise<void> {
    this.#isSkipping = false;
    await this.#finishBatch();
    this.#isLone = false;
    this.#batch.names.forgetUnnamed();
    try {
      const text = queryView.read(bytes, 0, bytes.length).text();
      const { statements, isMalformed } = this.judge(text);
      if (isMalformed) await this.#relayAll(bytes);
      else if (statements.length === 0) this.send(emptyQueryResponse);
      else await this.#statements(statements, bytes, text);
    } catch (error) {
      await this.#fail(error);
    }
    this.#ready();
  }

  async #statements(statements: readonly JudgedStatement[], bytes: Buffer, text: string): Promise<void> {
    const isAlone = statements.length === 1;
    this.#isLone = isAlone;
    let at = 0;
    for (const statement of statements) {
      const isWhole = isAlone && statement.sql === statement.source;
      const start = text.indexOf(statement.source, at);
      at = start + statement.source.length;
      try {
        await this.#statement(statement, isAlone, isWhole ? bytes : undefined);
      } catch (error) {
        if (isWhole || !(error instanceof StatementFailed)) throw error;
        throw movedBy(error, text.slice(0, start));
      }
    }
    if (this.runner.transaction?.isImplicit) await this.reporting('COMMIT', this.runner.commit());
  }

  /** `whole`: the client's message, where the statement is all of it. */
  async #statement(statement: JudgedStatement, isAlone: boolean, whole: Buffer | undefined): Promise<void> {
    this.#refuse(statement);
    if (isOwn(statement)) return this.runOwn(statement, true);
    const isPlain = this.isPlain(statement);
    if (!this.isInTransaction && !(isAlone && isPlain)) this.runner.beginImplicit();
    this.admit(statement);
    const unit = new QueryUnit(statement, whole);
    if (!isPlain) return this.run(unit);
    await this.#relayAll(unit.bytes);
    this.ran(statement);
  }

  /** DSQL is not known to have it, and drivers have given it up. */
  async #functionCall(): Promise<void> {
    await this.#finishBatch();
    await this.#fail(fail('0A000', 'function call message not supported'));
    this.#ready();
  }

  /** A Query in place of a Sync ends a batch too, but the transaction around it goes on. */
  async #finishBatch(): Promise<void> {
    try {
      await this.#batch.flush(false);
    } catch (error) {
      await this.#fail(error);
    }
  }

  async #inBatch(message: Message): Promise<void> {
    this.#isLone = false;
    try {
      await this.#batch.take(message);
    } catch (error) {
      this.#isSkipping = true;
      await this.#fail(error);
    }
  }

  async #sync(): Promise<void> {
    try {
      if (!this.#isSkipping) await this.#batch.flush(true);
      if (this.runner.transaction?.isImplicit) await this.reporting('COMMIT', this.runner.commit());
    } catch (error) {
      await this.#fail(error);
    }
    this.#isSkipping = false;
    if (!this.runner.isOpen) this.#batch.names.forgetPortals();
    this.#ready();
  }

  /** Tells the client of a statement's error; any other is not for it. */
  async #fail(error: unknown): Promise<void> {
    this.#batch.clear();
    if (error instanceof ProtocolViolationError) {
      this.send(errorBytes({ severity: 'FATAL', code: '08P01', message: error.message }));
      throw error;
    }
    const failure =
      error instanceof ServerError && error.fields.code === '57014'
        ? new StatementFailed(error.fields)
        : error;
    if (!(failure instanceof StatementFailed)) throw error;
    await this.runner.failed();
    this.send(errorBytes(failure.fields));
  }

  #ready(): void {
    const { isFailed, isOpen } = this.runner;
    this.send(isFailed ? readyFailed : isOpen ? readyInTransaction : readyIdle);
  }

  // ---- what the batch and the statements of the stand-in's own ask ------------------------------------------------

  get isInTransaction(): boolean {
    return this.runner.transaction !== undefined;
  }

  get isFailed(): boolean {
    return this.runner.isFailed;
  }

  get generation(): number {
    return this.runner.transaction?.evictions ?? 0;
  }

  judge(text: string): ReturnType<Dialect['judge']> {
    const judgement = this.#options.dialect.judge(text);
    for (const { source, refusal } of judgement.statements) this.#options.hooks.judged(source, refusal);
    return judgement;
  }

  send(bytes: Buffer): void {
    this.#channel.send(bytes);
  }

  admit(statement: JudgedStatement): void {
    if (this.runner.isFailed) throw new StatementFailed(abortedTransaction);
    try {
      this.runner.admit(statement);
    } catch (error) {
      this.#report(statement.source, error);
      throw error;
    }
  }

  isPlain(statement: JudgedStatement): boolean {
    return this.runner.isPlain(statement);
  }

  async run(unit: Parameters<Runner['run']>[0]): Promise<void> {
    await this.reporting(unit.statement.source, this.runner.run(unit));
  }

  async reporting(sql: string, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#report(sql, error);
      throw error;
    }
  }

  /** Conflicts and errors of data are not refusals. */
  #report(sql: string, error: unknown): void {
    if (error instanceof StatementFailed && refusalStates.has(error.fields.code))
      this.#options.hooks.refused(sql, error.fields);
  }

  async relay(bytes: Buffer): Promise<void> {
    await this.#relayAll(bytes);
  }

  beginImplicit(): void {
    this.runner.beginImplicit();
  }

  ran(statement: JudgedStatement): void {
    this.runner.keepSetting(statement);
  }

  runOwn(statement: JudgedStatement, isDescribed = false): Promise<void> {
    return this.#ownStatements.run(statement, isDescribed);
  }

  grantIam(isGrant: boolean, role: string, arn: string): Promise<void> {
    return this.#options.grantIam(isGrant, role, arn);
  }

  ended(): void {
    this.#batch.names.forgetPortals();
  }

  /** In a transaction that has failed, that comes first. */
  #refuse({ refusal, kind }: JudgedStatement): void {
    if (this.runner.isFailed && kind !== 'commit' && kind !== 'rollback')
      throw new StatementFailed(abortedTransaction);
    if (refusal !== undefined) throw new StatementFailed(errorOf(refusal));
  }

  /** Sends a request to PostgreSQL and its answer to the client. */
  async #relayAll(bytes: Buffer): Promise<void> {
    const { take, done } = this.runner.relay();
    let isDeallocated = false;
    const watch: Take = (type, source, start, end) => {
      if (type === Backend.commandComplete && isCommandTag(source, start, end, 'DEALLOCATE ALL')) {
        this.#batch.names.forgetStatements();
        isDeallocated = true;
      }
      take(type, source, start, end);
    };
    const participant = this.#participant as Participant;
    await this.runner.inTime(async () => {
      await participant.exchange([{ bytes, take: watch }]);
      // DEALLOCATE ALL has ended the stand-in's own statements too.
      if (isDeallocated) await this.runner.prepareAgain();
      done();
    });
  }
}

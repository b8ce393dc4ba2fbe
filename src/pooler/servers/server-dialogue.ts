/**
 * Requests to a server and the meaning of its messages: which are the client's, which are the pooler's own, which must be made
 * up, and what is owed at any moment. It has no socket.
 */
import { type ErrorFields, writeError } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { closeComplete, parseComplete, sync } from '../../wire/fixed-messages.js';
import type { MessageScanner } from '../../wire/message-scanner.js';
import { backendName, Backend as From, headerBytes, TransactionStatus } from '../../wire/message-types.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { AnswerPart, notPlain, plainAnswer } from '../../wire/plain-answer.js';
import { isCommandTag } from '../../wire/rows.js';
import { readParameterStatus, readReadyForQuery } from '../../wire/session-messages.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Settings } from '../settings/settings.js';
import type { BackendUser } from './backend-user.js';
import { CopyIn } from './copy-in.js';
import { isFatal, readErrorHead } from './error-head.js';
import { Outgoing } from './outgoing.js';
import type { StandIn } from './repeated-statement.js';
import { Asked, type Dropped, firstMadeUp, ReplyQueue, type Subject } from './reply-queue.js';
import { isAnswerTo } from './reply-rules.js';
import type { ReportedSettings } from './reported-settings.js';
import { type Preparation, ServerCopy, type ServerStatements } from './server-statements.js';
import { parameterTypesOf, type StatementShape, shapeOf, writeParameterTypes } from './statement-shape.js';
import { MixedQuery, SwallowedStatement } from './swallowed.js';
import { keepsUnnamed, UnnamedStatement, unnamedStatement } from './unnamed-statement.js';

const letterD = 0x44;
/** A ReadyForQuery. */
const readyBytes = 6;
/** Parameters that servers report and no client can change. */
const neverSet = new Set(['in_hot_standby', 'integer_datetimes', 'server_encoding', 'server_version']);

/** Error classes that an outdated prepared statement can cause: its result, values or names have changed, or it no longer exists. */
const mayBeOfAge = /^(?:0A|22|26|42)/;
const dataException = '22';

/** Answer that the pooler gives in the server's place, once the Query reaches the head of the queue. */
export interface LocalReply {
  write(writer: MessageWriter, status: TransactionStatus): void;
}

/** Error that the client gets in place of the server's, where that has a certain code. */
export interface Replacement {
  readonly error: ErrorFields;
  readonly insteadOf: string;
}

/** Queue entry's subject for a statement that a client has named. */
export interface NamedStatement extends Preparation {
  /** The client's name for it. */
  readonly nameBytes: Buffer;
}

export abstract class ServerDialogue {
  readonly replies = new ReplyQueue();
  readonly #reported: ReportedSettings;
  readonly statements: ServerStatements;
  readonly copyIn = new CopyIn();
  /** Bytes for the next `flush()`. */
  readonly toServer = new Outgoing();
  status: TransactionStatus = TransactionStatus.idle;
  user: BackendUser | undefined;
  /** How often the unnamed statement was parsed or discarded, as far as the server has answered. */
  unnamedVersion = 0;
  /** Settings of the session on the server. */
  settings: Settings;
  /** Bytes for the client. */
  protected readonly toClient = new Outgoing();
  protected lastFatal: ErrorFields | undefined;
  readonly #freshSettings: Settings;
  #isDiscarding = false;
  #isUnsynced = false;
  #isMixedUp = false;
  #ownError: ErrorFields | undefined;
  /** First half of a description that the pooler reads. */
  #parameterTypes: Buffer | undefined;

  /** `settings`: those of a new session. */
  constructor(statements: ServerStatements, settings: Settings, reported: ReportedSettings) {
    this.statements = statements;
    this.settings = settings;
    this.#freshSettings = settings;
    this.#reported = reported;
  }

  /** Parameters that the server reports of the present session. */
  get parameters(): ReadonlyMap<string, string> {
    return this.#reported.all;
  }

  /** After an error in a pipeline, the server ignores everything up to the next Sync. */
  get isDiscarding(): boolean {
    return this.#isDiscarding;
  }

  /** An extended-protocol message was sent without a Sync behind it: the server has a transaction open for it. */
  get isUnsynced(): boolean {
    return this.#isUnsynced;
  }

  /**
   * The connection must not be used again, since its state is unknown: the number of answers owed after a COPY, or the outcome
   * of a pipeline's transaction that ended with a Query in place of a Sync, which PostgreSQL does not close properly.
   */
  protected get isOutOfStep(): boolean {
    return this.copyIn.isInDoubt || this.#isMixedUp;
  }

  /** The server reports a setting by itself. */
  protected abstract reportedUnasked(name: string, value: string): void;

  /** The server has reported more than is kept: the connection is about to be closed. */
  protected abstract reportedTooMuch(): void;

  /** The client has received a part of a message, and nothing may come before the rest. */
  abstract get isInsideAnswer(): boolean;

  /** Settings are those of a new session again. */
  settingsWereReset(): void {
    this.settings = this.#freshSettings;
  }

  /** Notes a request that will be answered. An answer to be made up is given at once if nothing is owed before it. */
  expect(asked: Asked, subject?: Subject): void {
    if (asked <= Asked.ownSync) {
      if (asked <= Asked.ownQuery && this.#isUnsynced) this.#isMixedUp = true;
      this.#isUnsynced = false;
      if (asked >= Asked.sync) this.#isDiscarding = false;
    } else if (asked < Asked.localQuery) this.#isUnsynced = true;
    this.replies.push(asked, subject);
    if (asked >= firstMadeUp && this.replies.size === 1 && !this.isInsideAnswer) this.makeUp();
  }

  /** Notes a whole batch that will be answered, for a client that has just checked out this connection. */
  expectWhole(
    asked: typeof Asked.wholeTurn | typeof Asked.wholeRun | typeof Asked.standInTurn,
    subject: Subject,
  ): void {
    this.#isUnsynced = false;
    this.replies.push(asked, subject);
  }

  /**
   * Notes the effect of these bytes if they are the whole answer to what is owed, for the client, and nothing out of the
   * ordinary. Most are. False when the messages must be sorted one by one.
   */
  protected sortWhole(source: Buffer, start: number, end: number): boolean {
    const { replies, user } = this;
    if (user === undefined) return false;
    if (replies.isOneQuery) {
      const parts = plainAnswer(source, start, end);
      if (parts !== 0 && parts !== AnswerPart.description) return false;
      this.#changeUnnamed(undefined);
    } else {
      const parts = replies.turnParts;
      if (parts === notPlain || parts !== plainAnswer(source, start, end)) return false;
      if ((parts & AnswerPart.parseComplete) !== 0) this.#noteParsed(replies.headSubject, Asked.parse);
      else if (replies.head === Asked.standInTurn) this.#makeUpParsed(replies.headSubject as StandIn);
    }
    this.status = TransactionStatus.idle;
    replies.clear();
    if (user.wantsTags) user.tagCame(source, start, end - readyBytes);
    user.readyCame(TransactionStatus.idle);
    return true;
  }

  /** Notes the effect of a message on what is owed. Returns whether it is for the client. */
  protected sort(message: MessageScanner): boolean {
    const { replies } = this;
    if (replies.isHeadWhole) replies.unfold();
    const { head } = replies;
    const { type } = message;
    if (!isAnswerTo(type, head)) return this.#sortOther(message, head);
    switch (type) {
      case From.dataRow:
      case From.copyData:
        break;
      case From.readyForQuery:
        return this.#noteReady(message, head);
      case From.commandComplete: {
        const mixed = this.#insertBefore();
        this.#noteCommand(message, head);
        if (mixed?.complete() === false) return false;
        break;
      }
      case From.emptyQuery:
        if (replies.headSubject instanceof SwallowedStatement)
          return this.#answerSwallowed(replies.headSubject);
        if (head === Asked.execute) replies.shift();
        break;
      case From.portalSuspended:
        if (head === Asked.execute) replies.shift();
        break;
      case From.parameterDescription:
        if (this.#isLookedAt(head))
          this.#parameterTypes = message.isWhole ? parameterTypesOf(message) : undefined;
        return head !== Asked.ownDescribe;
      case From.rowDescription:
      case From.noData:
        if (head === Asked.query) this.#insertBefore();
        if (this.#isLookedAt(head)) this.#noteDescribed(message);
        if (head === Asked.describeStatement || head === Asked.describePortal || head === Asked.ownDescribe)
          replies.shift();
        if (head === Asked.ownDescribe) return false;
        break;
      case From.parseComplete:
        this.#noteParsed(replies.headSubject, head);
        replies.shift();
        return head === Asked.parse;
      case From.bindComplete:
        if (head === Asked.standInBind) this.#makeUpParsed(replies.headSubject as StandIn);
        replies.shift();
        return head !== Asked.ownBind;
      case From.closeComplete:
        if (replies.headSubject === unnamedStatement) this.#changeUnnamed(undefined);
        replies.shift();
        return head === Asked.close;
      case From.copyInResponse:
        this.#noteCopyIn(head);
        break;
      default:
    }
    return head !== Asked.ownQuery && head !== Asked.ownExecute;
  }

  /** The head is a text that the server received in part: answers statements swallowed before the present one. */
  #insertBefore(): MixedQuery | undefined {
    const mixed = this.replies.headSubject;
    if (!(mixed instanceof MixedQuery)) return undefined;
    mixed.writeBefore(() => this.toClient.mix());
    return mixed;
  }

  /** The server has run an empty statement in place of the swallowed one. */
  #answerSwallowed(swallowed: SwallowedStatement): false {
    this.replies.shift();
    swallowed.run();
    swallowed.write(this.toClient.mix());
    return false;
  }

  /** Sorts messages that answer nothing: they may come at any time, or never. */
  #sortOther(message: MessageScanner, head: Asked | 0): boolean {
    switch (message.type) {
      case From.error:
        return this.#noteError(message, head);
      case From.parameterStatus: {
        // Settings that the pooler changes within a pipeline are also restored there.
        if (head === Asked.ownExecute) return false;
        const { name, value } = readParameterStatus(message.source, message.start, message.end);
        if (!this.#reported.report(name, value)) throw this.#flooded();
        if (this.user === undefined || neverSet.has(name)) this.reportedUnasked(name, value);
        return this.user?.parameterReported(name, value, head === Asked.ownQuery) === true;
      }
      case From.notice:
        // Notices about a statement were already sent when the client prepared it.
        return head !== Asked.ownQuery && head !== Asked.ownParse && head !== Asked.ownExecute;
      case From.notification:
        return true;
      case From.readyForQuery:
        if (this.copyIn.isInDoubt) return false;
    }
    throw new ProtocolViolationError(
      `The server sent ${backendName(message.type)}, which nothing that is owed explains.`,
    );
  }

  #flooded(): ProtocolViolationError {
    this.reportedTooMuch();
    return new ProtocolViolationError(
      `The server reports more settings than max_server_parameters_size allows: it has ${this.#reported.size} bytes already.`,
    );
  }

  /** The pooler reads descriptions of the client's unnamed statements. Named ones are described by separate requests. */
  #isLookedAt(head: Asked | 0): boolean {
    if (head === Asked.ownDescribe) return true;
    return head === Asked.describeStatement && this.replies.headSubject instanceof UnnamedStatement;
  }

  #noteDescribed(message: MessageScanner): void {
    const types = this.#parameterTypes;
    this.#parameterTypes = undefined;
    let shape: StatementShape | undefined;
    if (types !== undefined && message.isWhole) shape = shapeOf(types, message);
    this.user?.statementDescribed(this.replies.headSubject, shape);
  }

  #noteReady(message: MessageScanner, head: Asked | 0): boolean {
    const status = readReadyForQuery(message.source, message.start, message.end);
    this.status = status;
    const subject = this.replies.headSubject;
    if (head === Asked.query) this.#insertBefore();
    if (head === Asked.query && subject !== keepsUnnamed) this.#changeUnnamed(undefined);
    this.replies.shift();
    if (head === Asked.query || head === Asked.sync) {
      this.user?.readyCame(status);
      return true;
    }
    if (head === Asked.ownQuery) {
      const error = this.#ownError;
      this.#ownError = undefined;
      this.user?.ownQueryAnswered(error, subject);
    }
    return false;
  }

  #noteCommand({ source, start, end }: MessageScanner, head: Asked | 0): void {
    const subject = this.replies.headSubject;
    this.copyIn.succeeded();
    if (head === Asked.execute || head === Asked.ownExecute) this.replies.shift();
    if (source[start + headerBytes] === letterD) {
      if (isCommandTag(source, start, end, 'DISCARD ALL')) {
        this.statements.clear();
        this.settingsWereReset();
      } else if (isCommandTag(source, start, end, 'DEALLOCATE ALL')) this.statements.clear();
    }
    if (head !== Asked.ownQuery && head !== Asked.ownExecute)
      this.user?.commandCompleted(source, start, end, subject);
  }

  #noteParsed(subject: Subject, head: Asked | 0): void {
    if (!(subject instanceof UnnamedStatement)) return;
    if (head === Asked.parse) this.#changeUnnamed(subject);
    else this.unnamedVersion++;
  }

  /** Tells the client that its own statement was parsed. */
  #makeUpParsed({ unnamed }: StandIn): void {
    this.toClient.mix().append(parseComplete);
    this.user?.unnamedChanged(unnamed, false);
  }

  /** Changed by a request of the client's. */
  #changeUnnamed(unnamed: UnnamedStatement | undefined): void {
    this.unnamedVersion++;
    this.user?.unnamedChanged(unnamed, true);
  }

  #noteCopyIn(head: Asked | 0): void {
    const { copyIn, replies } = this;
    copyIn.began(replies);
    if (head === Asked.execute) this.#isUnsynced = !replies.owesSync;
    if (copyIn.isUnderWay) this.user?.copyInBegan();
  }

  #noteError(message: MessageScanner, head: Asked | 0): boolean {
    const error = readErrorHead(message.source, message.start, message.end);
    if (isFatal(error)) {
      this.lastFatal = error;
      return true;
    }
    const hasKeptSync = this.copyIn.failed();
    if (head === Asked.ownQuery || head === Asked.ownSync) {
      this.#ownError = error;
      return false;
    }
    if (head === Asked.query || head === Asked.sync) {
      const { headSubject } = this.replies;
      if (headSubject instanceof MixedQuery) headSubject.hasFailed = true;
      const own = this.user?.insteadOf(error);
      this.user?.errorCame(own ?? error);
      if (own !== undefined) writeError(this.toClient.mix(), own);
      return own === undefined;
    }
    if (head === 0)
      throw new ProtocolViolationError('The server sent an error although nothing was asked of it.');
    return this.#failPipeline(error, hasKeptSync);
  }

  /** In the extended protocol, the server now ignores everything up to the next Sync. */
  #failPipeline(error: ErrorFields, hasKeptSync: boolean): boolean {
    const { replies, user } = this;
    const replacement = replies.head === Asked.mustFail ? (replies.headSubject as Replacement) : undefined;
    let told = replacement?.insteadOf === error.code ? replacement.error : (user?.insteadOf(error) ?? error);
    if (replies.head === Asked.standInBind) {
      if (this.#askAgain(error)) return false;
      this.#makeUpParsed(replies.headSubject as StandIn);
    } else if (error.code === SqlState.invalidStatementName) told = this.#noteLost(told);
    // In a failed transaction the server describes nothing.
    if (replies.head === Asked.ownParse && error.code !== SqlState.inFailedSqlTransaction)
      this.#describeParameters(replies.headSubject);
    const isReplaced = told !== error;
    if (isReplaced) writeError(this.toClient.mix(), told);
    const dropped = replies.dropUntilSync();
    for (const [index, entry] of dropped.entries()) {
      this.#undo(entry, index === dropped.length - 1);
      user?.answerDropped(entry);
    }
    this.#isDiscarding = !replies.owesSync;
    user?.errorCame(told);
    if (hasKeptSync && this.#isDiscarding) {
      this.expect(Asked.sync);
      this.toServer.mix().append(sync);
    }
    return !isReplaced;
  }

  /**
   * The stand-in for the client's statement could not be bound. It may be older than a change to one of its tables, which the
   * client can't know. The client's own statement is sent in its place, and that answer counts. Nothing of the batch has been
   * answered, and its transaction ends with it.
   */
  #askAgain({ code }: ErrorFields): boolean {
    const { replies, user } = this;
    if (user === undefined || !mayBeOfAge.test(code)) return false;
    if (code === SqlState.invalidStatementName) this.statements.distrust();
    // An error of values alone does not prove that the stand-in is outdated.
    else if (!code.startsWith(dataException)) (replies.headSubject as StandIn).isOutdated = true;
    replies.dropUntilSync();
    replies.keepSync();
    user.askAgain();
    return true;
  }

  /**
   * A statement that the server should have is missing: something hidden, such as a function, has deallocated it, and probably
   * others. The client may have had no part in that, and gets one error, with its own name for the statement.
   */
  #noteLost(error: ErrorFields): ErrorFields {
    const named = this.replies.headSubject as Partial<NamedStatement> | undefined;
    if (named?.statement === undefined) return error;
    const ownName = this.statements.find(named.statement)?.name.toString('latin1');
    if (ownName === undefined || !error.message.includes(`"${ownName}"`)) return error;
    this.statements.distrust();
    const name = named.nameBytes?.toString('utf8') ?? ownName;
    return { ...error, message: error.message.replace(`"${ownName}"`, () => `"${name}"`) };
  }

  /** A server describes the parameters of a statement before it finds that its columns no longer exist. */
  #describeParameters(subject: Subject): void {
    let told: StatementShape | undefined;
    if (subject instanceof UnnamedStatement) told = subject.told;
    else if (isPreparation(subject) && subject.isForDescribe === true) told = subject.statement.shape;
    if (told !== undefined) writeParameterTypes(this.toClient.mix(), told);
  }

  /** `hasFailed`: this request is the one that failed; otherwise it was ignored. */
  #undo({ asked, subject }: Dropped, hasFailed: boolean): void {
    if (asked === Asked.ownClose && subject instanceof ServerCopy) this.statements.putBack(subject);
    // For the client, its own statement could not be parsed.
    if (asked === Asked.standInBind && !hasFailed) this.user?.unnamedChanged(undefined, false);
    if (asked !== Asked.ownParse && asked !== Asked.parse) return;
    if (isPreparation(subject)) this.statements.failed(subject);
    if (!(subject instanceof UnnamedStatement)) return;
    // A Parse that fails still ends the previous unnamed statement.
    if (hasFailed && asked === Asked.parse) this.#changeUnnamed(undefined);
    else if (hasFailed) this.unnamedVersion++;
  }

  /** Gives the answers that the server was not asked for, once they reach the head of the queue. */
  protected makeUp(): void {
    for (let { head } = this.replies; head >= firstMadeUp; head = this.replies.head) {
      const subject = this.replies.headSubject;
      this.replies.shift();
      if (head === Asked.localClose) this.toClient.mix().append(closeComplete);
      else if (head === Asked.localDescription)
        writeParameterTypes(this.toClient.mix(), subject as StatementShape);
      else if (head === Asked.localQuery) (subject as LocalReply).write(this.toClient.mix(), this.status);
    }
  }
}

function isPreparation(subject: Subject): subject is Preparation {
  return (subject as Partial<Preparation> | undefined)?.copy !== undefined;
}

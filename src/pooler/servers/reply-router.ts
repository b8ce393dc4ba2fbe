/**
 * Meaning of a server's messages: which are the client's, which are the pooler's own, which must be made up, and what is owed at
 * any moment. It has no socket.
 */
import { type ErrorFields, writeError } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { closeComplete, sync } from '../../wire/fixed-messages.js';
import type { MessageScanner } from '../../wire/message-scanner.js';
import { backendName, Backend as From, headerBytes, TransactionStatus } from '../../wire/message-types.js';
import { AnswerPart, notPlain, plainAnswer } from '../../wire/plain-answer.js';
import { isCommandTag } from '../../wire/rows.js';
import { readParameterStatus, readReadyForQuery } from '../../wire/session-messages.js';
import type { Settings } from '../settings/settings.js';
import type { BackendUser } from './backend-user.js';
import { CopyIn } from './copy-in.js';
import { isFatal, readErrorHead } from './error-head.js';
import { Outgoing } from './outgoing.js';
import { PipelineFailures } from './pipeline-failures.js';
import type { StandIn } from './repeated-statement.js';
import { Asked, firstMadeUp, ReplyQueue, type Subject } from './reply-queue.js';
import { isAnswerTo } from './reply-rules.js';
import type { LocalReply } from './reply-subjects.js';
import type { ReportedSettings } from './reported-settings.js';
import type { ServerStatements } from './server-statements.js';
import { parameterTypesOf, type StatementShape, shapeOf, writeParameterTypes } from './statement-shape.js';
import { MixedQuery, SwallowedStatement } from './swallowed.js';
import { UnnamedOnServer } from './unnamed-on-server.js';
import { keepsUnnamed, UnnamedStatement, unnamedStatement } from './unnamed-statement.js';

const letterD = 0x44;
/** Most answers that are made up before others are served. */
const mostMadeUpAtOnce = 512;
/** A ReadyForQuery. */
const readyBytes = 6;
/** Parameters that servers report and no client can change. */
const neverSet = new Set(['in_hot_standby', 'integer_datetimes', 'server_encoding', 'server_version']);

/** The server connection that the answers come from. */
export interface RouterOwner {
  /** The client has received a part of a message, and nothing may come before the rest. */
  readonly isInsideAnswer: boolean;
  /** The server reports a setting by itself. */
  reportedUnasked(name: string, value: string): void;
  /** The server has reported more than is kept: the connection is about to be closed. */
  reportedTooMuch(): void;
}

export class ReplyRouter {
  readonly replies = new ReplyQueue();
  readonly #reported: ReportedSettings;
  readonly statements: ServerStatements;
  readonly copyIn = new CopyIn();
  /** Bytes for the next `flush()`. */
  readonly toServer = new Outgoing();
  status: TransactionStatus = TransactionStatus.idle;
  user: BackendUser | undefined;
  readonly unnamed = new UnnamedOnServer();
  /** Settings of the session on the server. */
  settings: Settings;
  /** Bytes for the client. */
  readonly toClient = new Outgoing();
  /** The FATAL error that the server has sent. */
  lastFatal: ErrorFields | undefined;
  readonly #owner: RouterOwner;
  readonly #failures: PipelineFailures;
  readonly #freshSettings: Settings;
  #isDiscarding = false;
  #isUnsynced = false;
  #isMixedUp = false;
  #ownError: ErrorFields | undefined;
  /** First half of a description that the pooler reads. */
  #parameterTypes: Buffer | undefined;

  /** `settings`: those of a new session. */
  constructor(
    owner: RouterOwner,
    statements: ServerStatements,
    settings: Settings,
    reported: ReportedSettings,
  ) {
    this.#owner = owner;
    this.#failures = new PipelineFailures(this.replies, statements, this.unnamed, this.toClient);
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
  get isOutOfStep(): boolean {
    return this.copyIn.isInDoubt || this.#isMixedUp;
  }

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
    if (asked >= firstMadeUp && this.replies.size === 1 && !this.#owner.isInsideAnswer) this.makeUp();
  }

  /** Notes a whole batch that will be answered, for a client that has just checked out this connection. */
  expectWhole(
    asked: typeof Asked.parseBatch | typeof Asked.bindBatch | typeof Asked.standInBatch,
    subject: Subject,
  ): void {
    this.#isUnsynced = false;
    this.replies.push(asked, subject);
  }

  /**
   * Notes the effect of these bytes if they are the whole answer to what is owed, for the client, and nothing out of the
   * ordinary. Most are. False when the messages must be sorted one by one.
   */
  sortWhole(source: Buffer, start: number, end: number): boolean {
    const { replies, user } = this;
    if (user === undefined) return false;
    if (replies.isOneQuery) {
      const parts = plainAnswer(source, start, end);
      if (parts !== 0 && parts !== AnswerPart.description) return false;
      this.unnamed.changed(undefined, this.user);
    } else {
      const parts = replies.batchParts;
      if (parts === notPlain || parts !== plainAnswer(source, start, end)) return false;
      if ((parts & AnswerPart.parseComplete) !== 0)
        this.unnamed.parsed(replies.headSubject, Asked.parse, user);
      else if (replies.head === Asked.standInBatch)
        this.unnamed.pretendParsed(replies.headSubject as StandIn, this.toClient, user);
    }
    this.status = TransactionStatus.idle;
    replies.clear();
    if (user.wantsTags) user.tagCame(source, start, end - readyBytes);
    user.readyCame(TransactionStatus.idle);
    return true;
  }

  /** Notes the effect of a message on what is owed. Returns whether it is for the client. */
  sort(message: MessageScanner): boolean {
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
        this.unnamed.parsed(replies.headSubject, head, this.user);
        replies.shift();
        return head === Asked.parse;
      case From.bindComplete:
        if (head === Asked.standInBind)
          this.unnamed.pretendParsed(replies.headSubject as StandIn, this.toClient, this.user);
        replies.shift();
        return head !== Asked.ownBind;
      case From.closeComplete:
        if (replies.headSubject === unnamedStatement) this.unnamed.changed(undefined, this.user);
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
        if (this.user === undefined || neverSet.has(name)) this.#owner.reportedUnasked(name, value);
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
    this.#owner.reportedTooMuch();
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
    if (head === Asked.query && subject !== keepsUnnamed) this.unnamed.changed(undefined, this.user);
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
    const told = this.#failures.fail(error, user);
    if (told === undefined) return false;
    this.#isDiscarding = !replies.owesSync;
    user?.errorCame(told);
    if (hasKeptSync && this.#isDiscarding) {
      this.expect(Asked.sync);
      this.toServer.mix().append(sync);
    }
    return told === error;
  }

  /** Gives the answers that the server was not asked for, once they reach the head of the queue. Returns whether these were all. */
  makeUp(): boolean {
    let count = 0;
    for (let { head } = this.replies; head >= firstMadeUp; head = this.replies.head) {
      if (count++ === mostMadeUpAtOnce) return false;
      const subject = this.replies.headSubject;
      this.replies.shift();
      if (head === Asked.localClose) this.toClient.mix().append(closeComplete);
      else if (head === Asked.localDescription)
        writeParameterTypes(this.toClient.mix(), subject as StatementShape);
      else if (head === Asked.localQuery) (subject as LocalReply).write(this.toClient.mix(), this.status);
    }
    return true;
  }
}

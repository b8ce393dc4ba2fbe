/** Errors of the extended protocol: what the client is told, and what of its pipeline has not happened. */
import { type ErrorFields, writeError } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import type { BackendUser } from './backend-user.js';
import type { Outgoing } from './outgoing.js';
import type { StandIn } from './repeated-statement.js';
import { Asked, type Dropped, type ReplyQueue, type Subject } from './reply-queue.js';
import { isPreparation, type NamedStatement, type Replacement } from './reply-subjects.js';
import { ServerCopy, type ServerStatements } from './server-statements.js';
import { type StatementShape, writeParameterTypes } from './statement-shape.js';
import type { UnnamedOnServer } from './unnamed-on-server.js';
import { UnnamedStatement } from './unnamed-statement.js';

/** Error classes that an outdated prepared statement can cause: its result, values or names have changed, or it no longer exists. */
const mayBeOfAge = /^(?:0A|22|26|42)/;
const dataException = '22';

export class PipelineFailures {
  readonly #replies: ReplyQueue;
  readonly #statements: ServerStatements;
  readonly #unnamed: UnnamedOnServer;
  readonly #toClient: Outgoing;

  constructor(
    replies: ReplyQueue,
    statements: ServerStatements,
    unnamed: UnnamedOnServer,
    toClient: Outgoing,
  ) {
    this.#replies = replies;
    this.#statements = statements;
    this.#unnamed = unnamed;
    this.#toClient = toClient;
  }

  /**
   * The request at the head has failed: drops it and what is ignored with it. Returns the error that the client is told, which is
   * written if it is not the server's; undefined where the client's own statement is sent in place of its stand-in.
   */
  fail(error: ErrorFields, user: BackendUser | undefined): ErrorFields | undefined {
    const replies = this.#replies;
    const replacement = replies.head === Asked.mustFail ? (replies.headSubject as Replacement) : undefined;
    let told = replacement?.insteadOf === error.code ? replacement.error : (user?.insteadOf(error) ?? error);
    if (replies.head === Asked.standInBind) {
      if (this.#asksAgain(error, user)) return undefined;
      this.#unnamed.pretendParsed(replies.headSubject as StandIn, this.#toClient, user);
    } else if (error.code === SqlState.invalidStatementName) told = this.#noteLost(told);
    // In a failed transaction the server describes nothing.
    if (replies.head === Asked.ownParse && error.code !== SqlState.inFailedSqlTransaction)
      this.#describeParameters(replies.headSubject);
    if (told !== error) writeError(this.#toClient.mix(), told);
    const dropped = replies.dropUntilSync();
    for (const [index, entry] of dropped.entries()) {
      this.#undo(entry, index === dropped.length - 1, user);
      user?.answerDropped(entry);
    }
    return told;
  }

  /**
   * The stand-in for the client's statement could not be bound. It may be older than a change to one of its tables, which the
   * client can't know. The client's own statement is sent in its place, and that answer counts. Nothing of the batch has been
   * answered, and its transaction ends with it.
   */
  #asksAgain({ code }: ErrorFields, user: BackendUser | undefined): boolean {
    const replies = this.#replies;
    if (user === undefined || !mayBeOfAge.test(code)) return false;
    if (code === SqlState.invalidStatementName) this.#statements.distrust();
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
    const named = this.#replies.headSubject as Partial<NamedStatement> | undefined;
    if (named?.statement === undefined) return error;
    const ownName = this.#statements.find(named.statement)?.name.toString('latin1');
    if (ownName === undefined || !error.message.includes(`"${ownName}"`)) return error;
    this.#statements.distrust();
    const name = named.nameBytes?.toString('utf8') ?? ownName;
    return { ...error, message: error.message.replace(`"${ownName}"`, () => `"${name}"`) };
  }

  /** A server describes the parameters of a statement before it finds that its columns no longer exist. */
  #describeParameters(subject: Subject): void {
    let told: StatementShape | undefined;
    if (subject instanceof UnnamedStatement) told = subject.told;
    else if (isPreparation(subject) && subject.isForDescribe === true) told = subject.statement.shape;
    if (told !== undefined) writeParameterTypes(this.#toClient.mix(), told);
  }

  /** `hasFailed`: this request is the one that failed; otherwise it was ignored. */
  #undo({ asked, subject }: Dropped, hasFailed: boolean, user: BackendUser | undefined): void {
    if (asked === Asked.ownClose && subject instanceof ServerCopy) this.#statements.putBack(subject);
    // For the client, its own statement could not be parsed.
    if (asked === Asked.standInBind && !hasFailed) user?.unnamedChanged(undefined, false);
    if (asked !== Asked.ownParse && asked !== Asked.parse) return;
    if (isPreparation(subject)) this.#statements.failed(subject);
    if (!(subject instanceof UnnamedStatement)) return;
    // A Parse that fails still ends the previous unnamed statement.
    if (hasFailed && asked === Asked.parse) this.#unnamed.changed(undefined, user);
    else if (hasFailed) this.#unnamed.version++;
  }
}

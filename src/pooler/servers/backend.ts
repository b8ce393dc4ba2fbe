/** A connection to the server, once it is logged in: sends what is asked, and passes answers on to whoever has it. */
import type { ConnectionPool } from '../../core/connection-pool.js';
import type { PooledConnection } from '../../core/pooled-connection.js';
import type { DialOptions } from '../../net/connect-transport.js';
import type { Transport, TransportListener } from '../../net/transport.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { sync } from '../../wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeCopyFail,
  writeDescribe,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../wire/frontend-writers.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Backend as From, Target, TransactionStatus } from '../../wire/message-types.js';
import { endOfReady } from '../../wire/plain-answer.js';
import { backendRules } from '../../wire/scan-rules.js';
import type { BackendKey } from '../../wire/session-messages.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Settings } from '../settings/settings.js';
import { Caretaker } from './backend-user.js';
import { OwnRow } from './own-row.js';
import { Asked, firstMadeUp } from './reply-queue.js';
import type { ReportedSettings } from './reported-settings.js';
import { type Replacement, ServerDialogue } from './server-dialogue.js';
import type { ServerCopy, ServerStatements } from './server-statements.js';

const rules = backendRules({
  error: { wholeUpTo: 16_384, head: 4_096 },
  readyForQuery: { wholeUpTo: 6 },
  commandComplete: { wholeUpTo: 1_024, head: 64 },
  parameterStatus: { wholeUpTo: 30_001 },
  // Both are compared with what a client was told. PostgreSQL has at most 65,535 parameters, and 1,664 columns.
  parameterDescription: { wholeUpTo: 262_147 },
  rowDescription: { wholeUpTo: 262_147 },
});

/** A name that no statement has on a server. */
const noStatement = 'headgate_none';
/** The name of a statement and a portal for something of the pooler's own in the middle of a pipeline. */
const ownStatement = 'headgate_own';

export interface BackendParts {
  readonly id: number;
  readonly transport: Transport;
  /** How it was connected to. */
  readonly dial: DialOptions;
  readonly statements: ServerStatements;
  /** Those of a new session. */
  readonly settings: Settings;
  readonly key: BackendKey | undefined;
  /** What the server has reported. */
  readonly parameters: ReportedSettings;
}

/** A statement that was sent behind another client's statement, and the client that waits for its answer. */
export interface Follower {
  /** The client's number; undefined where the client has left. */
  readonly clientId: number | undefined;
  /** All ahead of it is answered: its statement is the one that runs. `generation`: the checkout, which is its own from here on. */
  takeOver(backend: Backend, generation: number): void;
  /** The connection has ended before that. `hasNotBegun`: the server has said that it ends before it came to this statement. */
  serverLost(error: Error, hasNotBegun: boolean): void;
  /** A cancel request is sent for a statement ahead of it, and may hit this one. */
  mayBeHit(): void;
}

export class Backend extends ServerDialogue implements TransportListener {
  /** No other server connection of the process has it. */
  readonly id: number;
  readonly connectedAt = Date.now();
  readonly transport: Transport;
  readonly dial: DialOptions;
  readonly key: BackendKey | undefined;
  /** Its place in the engine, and the engine; known as soon as it is opened. */
  pooled: PooledConnection<Backend> | undefined;
  home: ConnectionPool<Backend> | undefined;
  /** Who is told what it reports by itself. */
  onReport: ((name: string, value: string) => void) | undefined;
  /** Statements of other clients that were sent behind the one that runs. */
  readonly followers: Follower[] = [];
  /** Which of the statements that share the connection is the one that runs. */
  turnNumber = 0;
  /** The connection for replication that has its place in the engine. */
  substitute: Backend | undefined;
  /** It has reported more than is kept. */
  onFlood: (() => void) | undefined;
  readonly #scanner = new MessageScanner(rules);
  /** The present message is passed on. */
  #passes = false;
  #cancelsUnderWay = 0;
  #mayBeCancelled = false;
  #isHeldUp = false;
  #isLost = false;
  #isGone = false;

  constructor({ id, transport, dial, statements, settings, key, parameters }: BackendParts) {
    super(statements, settings, parameters);
    this.id = id;
    this.transport = transport;
    this.dial = dial;
    this.key = key;
    this.pooled = undefined;
    this.home = undefined;
    this.substitute = undefined;
    this.onReport = undefined;
    this.onFlood = undefined;
    transport.listener = this;
  }

  /** Whoever has it is a client, and not someone who checks, cleans or closes it. */
  get hasClient(): boolean {
    return this.user !== undefined && !(this.user instanceof Caretaker);
  }

  /** Of no use any more: the server has said FATAL, hung up or broken the protocol. Its socket may still be there. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Its socket is closed. */
  get isGone(): boolean {
    return this.#isGone;
  }

  override get isInsideAnswer(): boolean {
    return this.#passes && !this.#scanner.isLast;
  }

  /** Nothing is owed and no transaction is open: whoever has it loses nothing with it. */
  get isAtRest(): boolean {
    return (
      this.replies.size === 0 &&
      this.status === TransactionStatus.idle &&
      !this.isUnsynced &&
      !this.isDiscarding &&
      !this.copyIn.isUnderWay &&
      this.toServer.isEmpty
    );
  }

  /** At rest, and all was sent: it can go to another client. */
  get isSettled(): boolean {
    return (
      this.isAtRest &&
      !this.#isLost &&
      this.#cancelsUnderWay === 0 &&
      this.transport.unsent === 0 &&
      this.#scanner.isBetweenMessages
    );
  }

  // ---- to the server ----------------------------------------------------------------------------------------------

  /** Asks a query of the pooler's own; its answer stays here, and its first row is collected where one is wanted. */
  ask(text: string, row?: OwnRow): void {
    this.expect(Asked.ownQuery, row);
    this.unnamedVersion++;
    writeQuery(this.toServer.mix(), text);
  }

  /** The same within the client's pipeline, and its transaction: whatever the client has there stays as it is. */
  askWithin(text: string): void {
    const writer = this.toServer.mix();
    // Where the last one was cut short, it is there still.
    this.expect(Asked.ownClose);
    writeClose(writer, Target.statement, ownStatement);
    this.expect(Asked.ownParse);
    writeParse(writer, { name: ownStatement, text });
    this.expect(Asked.ownBind);
    writeBind(writer, { portal: ownStatement, statement: ownStatement });
    this.expect(Asked.ownExecute);
    writeExecute(writer, ownStatement);
    for (const target of [Target.portal, Target.statement]) {
      this.expect(Asked.ownClose);
      writeClose(writer, target, ownStatement);
    }
  }

  /** Ends a pipeline that nobody else will end. */
  sync(): void {
    this.expect(Asked.ownSync);
    this.toServer.mix().append(sync);
  }

  /** The client has sent the end of COPY data. */
  endCopy(): void {
    if (this.copyIn.isUnderWay) this.copyIn.isUnderWay = false;
    else if (this.replies.size > 0) this.expect(Asked.copyEnd);
  }

  /** Ends a COPY that nobody will send data for. */
  failCopy(reason: string): void {
    this.copyIn.isUnderWay = false;
    writeCopyFail(this.toServer.mix(), reason);
    if (this.replies.head === Asked.execute && !this.replies.owesSync) this.sync();
  }

  /** Closes a statement that the server has; nobody hears of it. */
  closeStatement(copy: ServerCopy): void {
    this.expect(Asked.ownClose, copy);
    writeClose(this.toServer.mix(), Target.statement, copy.name);
  }

  /** Has a statement described, which stays here; without a name, the unnamed one. */
  describeStatement(name: Buffer | undefined, subject: object): void {
    this.expect(Asked.ownDescribe, subject);
    writeDescribe(this.toServer.mix(), Target.statement, name);
  }

  /** What is sent next fails. Should the server's error be of the code `insteadOf`, the client gets this one. */
  expectFailure(error: ErrorFields, insteadOf: string): void {
    this.expect(Asked.mustFail, { error, insteadOf } satisfies Replacement);
  }

  /** An error in the middle of a pipeline: the server is made to fail it, and the client gets this one. */
  fail(error: ErrorFields): void {
    this.expectFailure(error, SqlState.invalidStatementName);
    writeDescribe(this.toServer.mix(), Target.statement, noStatement);
  }

  /** Sends what was put into `toServer`; false to hold on until `backendDrained()`. */
  flush(): boolean {
    const goesOn = this.toServer.sendTo(this.transport);
    // What was made up meanwhile is for the client now.
    if (!this.toClient.isEmpty) this.#passOn();
    return goesOn;
  }

  /** The statement that ran is answered: the next that was sent behind it runs from here on. False where there is none. */
  handOn(generation: number): boolean {
    const next = this.followers.shift();
    if (next === undefined) return false;
    this.turnNumber++;
    this.home?.shareEnded();
    next.takeOver(this, generation);
    return true;
  }

  /** A cancel request for the statement that runs is about to be sent: it may come too late for that one. */
  cancelIsSent(): void {
    for (const follower of this.followers) follower.mayBeHit();
  }

  /** It waits until its client has read more. */
  get isHeldUp(): boolean {
    return this.#isHeldUp;
  }

  /** The client can take more. */
  resume(): void {
    if (!this.#isHeldUp) return;
    this.#isHeldUp = false;
    this.transport.resumeReading();
  }

  /** A cancel request for it is under way: it must not go to the next client before that one is over. */
  cancelBegan(): void {
    this.#cancelsUnderWay++;
  }

  /** Nobody knows whether the server is yet to get a cancel request: it might hit whoever has the connection then. */
  cancelWasLost(): void {
    this.#mayBeCancelled = true;
  }

  /** It must not be used again, since nobody knows its state, or what a cancel request may yet hit. */
  get isInDoubt(): boolean {
    return this.#mayBeCancelled || this.isOutOfStep;
  }

  get isBeingCancelled(): boolean {
    return this.#cancelsUnderWay > 0;
  }

  cancelEnded(): void {
    this.#cancelsUnderWay--;
    if (this.#cancelsUnderWay === 0 && this.replies.size === 0 && !this.#isGone)
      this.user?.backendSettled(this);
  }

  destroy(error?: Error): void {
    this.transport.destroy(error);
    this.substitute?.destroy(error);
  }

  // ---- from the server --------------------------------------------------------------------------------------------

  bytesCame(source: Buffer, start: number, end: number): void {
    if (this.#isLost) return;
    const from = this.followers.length === 0 ? start : this.#sortShared(source, start, end);
    if (from === end) return;
    const { toClient, replies } = this;
    if (this.#scanner.isBetweenMessages && this.sortWhole(source, from, end)) toClient.add(source, from, end);
    else if (!this.#scan(source, from, end)) return;
    if (!toClient.isEmpty) this.#passOn();
    if (this.lastFatal !== undefined) {
      this.#sawFatal(this.lastFatal);
      return;
    }
    if (!this.toServer.isEmpty) this.flush();
    if (replies.size === 0) this.user?.backendSettled(this);
  }

  /** Whole answers of clients that share the connection, one after the other; where the rest begins. */
  #sortShared(source: Buffer, start: number, end: number): number {
    let at = start;
    while (this.followers.length > 0 && this.#scanner.isBetweenMessages) {
      const until = endOfReady(source, at, end);
      if (until === -1 || !this.sortWhole(source, at, until)) return at;
      this.toClient.add(source, at, until);
      this.#answerEnded();
      at = until;
    }
    return at;
  }

  /** Others share the connection: it goes to the next of them. */
  #answerEnded(): void {
    if (!this.toClient.isEmpty) this.#passOn();
    this.user?.backendSettled(this);
  }

  /** One message after the other, up to a FATAL; false when the server has broken the protocol. */
  #scan(source: Buffer, start: number, end: number): boolean {
    const scanner = this.#scanner;
    const { toClient, replies } = this;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst) {
          this.#passes = false;
          this.#passes = this.sort(scanner) && (this.lastFatal === undefined || this.#concernsUser());
        }
        if (this.#passes) toClient.add(scanner.source, scanner.start, scanner.end);
        else if (scanner.type === From.dataRow) this.#collect(scanner);
        if (scanner.isLast && this.lastFatal !== undefined) return true;
        if (scanner.isLast && replies.head >= firstMadeUp) this.makeUp();
        if (this.followers.length > 0 && scanner.isLast && replies.size === 0) this.#answerEnded();
      }
      return true;
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      // Whole messages, the last of which the client may have the beginning of.
      if (!toClient.isEmpty) this.#passOn();
      this.transport.destroy(error);
      this.#lose(error);
      return false;
    }
  }

  #collect({ source, start, end, isLast }: MessageScanner): void {
    const { headSubject } = this.replies;
    if (headSubject instanceof OwnRow) headSubject.add(source, start, end, isLast);
  }

  /** Whether whoever has it loses something with it. */
  #concernsUser(): boolean {
    return this.user?.needsBackend(this) === true;
  }

  /** The server closes the connection after a FATAL. Nobody may take it meanwhile, and nobody waits for that. */
  #sawFatal({ message }: ErrorFields): void {
    if (this.#scanner.isLast) this.#lose(new Error(message));
  }

  /** Takes it from whoever has it, or out of the pool; once, as soon as it is of no use any more. */
  #lose(reason: Error): void {
    if (this.#isLost) return;
    this.#isLost = true;
    const { user } = this;
    const isTold = this.lastFatal !== undefined && this.#passes;
    this.user = undefined;
    if (user !== undefined) user.backendLost(reason, this.lastFatal, isTold);
    else if (this.pooled !== undefined) this.home?.broken(this.pooled, reason);
    for (const follower of this.followers.splice(0)) {
      this.home?.shareEnded();
      follower.serverLost(reason, this.lastFatal !== undefined);
    }
  }

  #passOn(): void {
    const { user } = this;
    if (user === undefined) this.toClient.clear();
    else if (!user.takeAnswer(this.toClient) && !this.#isHeldUp) {
      this.#isHeldUp = true;
      this.transport.pauseReading();
    }
  }

  protected override reportedUnasked(name: string, value: string): void {
    // What the last client has set says nothing about new sessions.
    if (!this.settings.statements.has(name.toLowerCase())) this.onReport?.(name, value);
  }

  protected override reportedTooMuch(): void {
    this.onFlood?.();
  }

  drained(): void {
    this.user?.backendDrained();
  }

  ended(): void {
    this.transport.destroy();
    this.#lose(new Error('The server closed the connection.'));
  }

  closed(error: Error | undefined): void {
    this.#isGone = true;
    const reason = error ?? new Error('The server closed the connection.');
    if (!this.#isLost) {
      this.#lose(reason);
      return;
    }
    // The user that closes the connection waits for this.
    const { user } = this;
    this.user = undefined;
    user?.backendLost(reason, undefined, false);
  }
}

/** A logged-in server connection: sends requests, and passes answers on to its present user. */
import type { ConnectionPool } from '../../core/connection-pool.js';
import type { PooledConnection } from '../../core/pooled-connection.js';
import type { DialOptions } from '../../net/connect-transport.js';
import type { Transport, TransportListener } from '../../net/transport.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Backend as From, TransactionStatus } from '../../wire/message-types.js';
import { endOfReady } from '../../wire/plain-answer.js';
import { backendRules } from '../../wire/scan-rules.js';
import type { BackendKey } from '../../wire/session-messages.js';
import type { Settings } from '../settings/settings.js';
import { type BackendUser, Caretaker } from './backend-user.js';
import type { CopyIn } from './copy-in.js';
import { type HeavyWork, heavyWork, lookAtPortion, portionIsOver } from './heavy-work.js';
import type { Outgoing } from './outgoing.js';
import { OwnRequests } from './own-requests.js';
import { OwnRow } from './own-row.js';
import { ReplicationStream } from './replication-stream.js';
import { Asked, firstMadeUp, type ReplyQueue, type Subject } from './reply-queue.js';
import { ReplyRouter, type RouterOwner } from './reply-router.js';
import type { ReportedSettings } from './reported-settings.js';
import type { ServerStatements } from './server-statements.js';

const rules = backendRules({
  error: { wholeUpTo: 16_384, head: 4_096 },
  readyForQuery: { wholeUpTo: 6 },
  commandComplete: { wholeUpTo: 1_024, head: 64 },
  parameterStatus: { wholeUpTo: 30_001 },
  // Both are compared with what a client was told. PostgreSQL has at most 65,535 parameters, and 1,664 columns.
  parameterDescription: { wholeUpTo: 262_147 },
  rowDescription: { wholeUpTo: 262_147 },
});

/** Most answers of one server that are read before others are served. Rows and COPY data do not count: they cost little. */
const mostAnswersAtOnce = 128;
/** Answers between two looks at the clock. */
const answersPerLook = 32;

export interface BackendParts {
  readonly id: number;
  readonly transport: Transport;
  /** How it was connected to. */
  readonly dial: DialOptions;
  readonly statements: ServerStatements;
  /** Settings of a new session. */
  readonly settings: Settings;
  readonly key: BackendKey | undefined;
  /** Parameters that the server has reported. */
  readonly parameters: ReportedSettings;
}

/** A statement that was sent behind another client's statement, and the client that waits for its answer. */
export interface Follower {
  /** The client's number; undefined where the client has left. */
  readonly clientId: number | undefined;
  /**
   * Everything ahead is answered: this statement is the one that runs. `generation`: the checkout, which belongs to the
   * follower from here on.
   */
  takeOver(backend: Backend, generation: number): void;
  /** The connection ended before that. `hasNotBegun`: the server said that it ended before it reached this statement. */
  serverLost(error: Error, hasNotBegun: boolean): void;
  /** A cancel request is sent for a statement ahead of it, and may hit this one. */
  mayBeHit(): void;
}

export class Backend implements TransportListener, RouterOwner, HeavyWork {
  /** Requests of the pooler's own. */
  readonly own: OwnRequests;
  readonly #router: ReplyRouter;
  readonly replies: ReplyQueue;
  readonly statements: ServerStatements;
  readonly copyIn: CopyIn;
  /** Bytes for the next `flush()`. */
  readonly toServer: Outgoing;
  /** Unique among the server connections of the process. */
  readonly id: number;
  readonly connectedAt = Date.now();
  readonly transport: Transport;
  readonly dial: DialOptions;
  readonly key: BackendKey | undefined;
  /** Place of the connection in the engine, and the engine; known as soon as the connection is open. */
  pooled: PooledConnection<Backend> | undefined;
  home: ConnectionPool<Backend> | undefined;
  /** Receives the settings that the server reports by itself. */
  onReport: ((name: string, value: string) => void) | undefined;
  /** Statements of other clients that were sent behind the one that runs. */
  readonly followers: Follower[] = [];
  /** Number of the statement that runs, among those that share the connection. */
  statementNumber = 0;
  /** Carries the bytes of a connection for replication; undefined for an ordinary one. */
  replication: ReplicationStream | undefined;
  /** The connection for replication that has this one's place in the engine. */
  substitute: Backend | undefined;
  /** Closed to make room for one for replication, which was logged then. */
  isEvicted = false;
  /** Called when the server has reported more than is kept. */
  onFlood: (() => void) | undefined;
  readonly #scanner = new MessageScanner(rules);
  /** The present message is passed on. */
  #passes = false;
  #cancelsUnderWay = 0;
  #mayBeCancelled = false;
  #isHeldUp = false;
  /** The rest of a chunk with many answers, for the next portion. */
  #rest: Buffer | undefined;
  #isRestQueued = false;
  /** The chunk that is read, if it is such a rest: nobody writes to its memory. */
  #own: Buffer | undefined;
  #isLost = false;
  #isGone = false;

  constructor({ id, transport, dial, statements, settings, key, parameters }: BackendParts) {
    const router = new ReplyRouter(this, statements, settings, parameters);
    this.#router = router;
    this.own = new OwnRequests(router);
    this.replies = router.replies;
    this.statements = statements;
    this.copyIn = router.copyIn;
    this.toServer = router.toServer;
    this.id = id;
    this.transport = transport;
    this.dial = dial;
    this.key = key;
    transport.listener = this;
  }

  get user(): BackendUser | undefined {
    return this.#router.user;
  }

  set user(user: BackendUser | undefined) {
    this.#router.user = user;
  }

  get status(): TransactionStatus {
    return this.#router.status;
  }

  /** Settings of the session on the server. */
  get settings(): Settings {
    return this.#router.settings;
  }

  set settings(settings: Settings) {
    this.#router.settings = settings;
  }

  /** Parameters that the server reports of the present session. */
  get parameters(): ReadonlyMap<string, string> {
    return this.#router.parameters;
  }

  /** How often the unnamed statement was parsed or discarded, as far as the server has answered. */
  get unnamedVersion(): number {
    return this.#router.unnamed.version;
  }

  /** After an error in a pipeline, the server ignores everything up to the next Sync. */
  get isDiscarding(): boolean {
    return this.#router.isDiscarding;
  }

  /** An extended-protocol message was sent without a Sync behind it: the server has a transaction open for it. */
  get isUnsynced(): boolean {
    return this.#router.isUnsynced;
  }

  /** The user is a client, and not a caretaker that checks, cleans or closes the connection. */
  get hasClient(): boolean {
    if (this.replication !== undefined) return this.replication.client !== undefined;
    return this.user !== undefined && !(this.user instanceof Caretaker);
  }

  /** Unusable: the server has sent FATAL, hung up or broken the protocol. The socket may still be open. */
  get isLost(): boolean {
    return this.#isLost && this.replication?.isUsable !== true;
  }

  /** The socket is closed. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** The client has received a part of a message, and nothing may come before the rest. */
  get isInsideAnswer(): boolean {
    return this.#passes && !this.#scanner.isLast;
  }

  /** Nothing is owed and no transaction is open: the user loses nothing with the connection. */
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

  /** At rest, and everything is sent: the connection can go to another client. */
  get isSettled(): boolean {
    return (
      this.isAtRest &&
      !this.#isLost &&
      this.#cancelsUnderWay === 0 &&
      this.transport.unsent === 0 &&
      this.#rest === undefined &&
      this.#scanner.isBetweenMessages
    );
  }

  /** Leaves the socket to a replication stream. No client can use the connection but the one with these startup parameters. */
  beginReplication(startup: ReadonlyMap<string, string>): void {
    this.#isLost = true;
    // Never at rest: no other client may have it, and a cancel request always has something to hit.
    this.replies.push(Asked.query);
    this.replication = new ReplicationStream(this.transport, startup, (error) => this.closed(error));
  }

  // ---- to the server ----------------------------------------------------------------------------------------------

  /** Notes a request that will be answered. An answer to be made up is given at once if nothing is owed before it. */
  expect(asked: Asked, subject?: Subject): void {
    this.#router.expect(asked, subject);
  }

  /** Notes a whole batch that will be answered, for a client that has just checked out this connection. */
  expectWhole(
    asked: typeof Asked.parseBatch | typeof Asked.bindBatch | typeof Asked.standInBatch,
    subject: Subject,
  ): void {
    this.#router.expectWhole(asked, subject);
  }

  /** Settings are those of a new session again. */
  settingsWereReset(): void {
    this.#router.settingsWereReset();
  }

  /** The client has sent the end of COPY data. */
  endCopy(): void {
    if (this.copyIn.isUnderWay) this.copyIn.isUnderWay = false;
    else if (this.replies.size > 0) this.expect(Asked.copyEnd);
  }

  /** Sends the content of `toServer`; false to hold on until `backendDrained()`. */
  flush(): boolean {
    const goesOn = this.toServer.sendTo(this.transport);
    // Answers made up meanwhile are sent to the client now.
    if (!this.#router.toClient.isEmpty) this.#passOn();
    return goesOn;
  }

  /** The present statement is answered: the next follower's statement runs from here on. False where there is none. */
  handOn(generation: number): boolean {
    const next = this.followers.shift();
    if (next === undefined) return false;
    this.statementNumber++;
    this.home?.shareEnded();
    next.takeOver(this, generation);
    return true;
  }

  /** A cancel request for the present statement is about to be sent. It may arrive late and hit a follower's. */
  cancelIsSent(): void {
    for (const follower of this.followers) follower.mayBeHit();
  }

  /** Reading is paused until the client has read more. */
  get isHeldUp(): boolean {
    return this.#isHeldUp;
  }

  /** The client accepts more bytes. */
  resume(): void {
    if (!this.#isHeldUp) return;
    this.#isHeldUp = false;
    if (this.#rest === undefined) this.transport.resumeReading();
    else this.#queueRest();
  }

  /** A cancel request is under way. The connection must not go to another client before the request is over. */
  cancelBegan(): void {
    this.#cancelsUnderWay++;
  }

  /** The server may still receive a cancel request, which might hit the next user of the connection. */
  cancelWasLost(): void {
    this.#mayBeCancelled = true;
  }

  /** The connection must not be used again: its state is unknown, or a late cancel request may hit its next user. */
  get isInDoubt(): boolean {
    return this.#mayBeCancelled || this.#router.isOutOfStep;
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
    const { replies } = this;
    const { toClient } = this.#router;
    if (this.#scanner.isBetweenMessages && this.#router.sortWhole(source, from, end))
      toClient.add(source, from, end);
    else if (!this.#scan(source, from, end)) return;
    if (!toClient.isEmpty) this.#passOn();
    const fatal = this.#router.lastFatal;
    if (fatal !== undefined) {
      // A server closes the connection after a FATAL. The connection is unusable at once, without waiting for that.
      if (this.#scanner.isLast) this.#lose(new Error(fatal.message));
      return;
    }
    if (!this.toServer.isEmpty) this.flush();
    if (replies.size === 0) this.user?.backendSettled(this);
  }

  /** Passes on whole answers of clients that share the connection, one after the other. Returns where the rest begins. */
  #sortShared(source: Buffer, start: number, end: number): number {
    let at = start;
    while (this.followers.length > 0 && this.#scanner.isBetweenMessages) {
      const until = endOfReady(source, at, end);
      if (until === -1 || !this.#router.sortWhole(source, at, until)) return at;
      this.#router.toClient.add(source, at, until);
      this.#answerEnded();
      at = until;
    }
    return at;
  }

  /** Hands a shared connection on to the next follower. */
  #answerEnded(): void {
    if (!this.#router.toClient.isEmpty) this.#passOn();
    this.user?.backendSettled(this);
  }

  /** Reads message after message, up to a FATAL; false when the server has broken the protocol. */
  #scan(source: Buffer, start: number, end: number): boolean {
    const scanner = this.#scanner;
    const { replies } = this;
    const { toClient } = this.#router;
    let answers = 0;
    let endsAt = 0;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst) {
          this.#passes = false;
          this.#passes =
            this.#router.sort(scanner) &&
            (this.#router.lastFatal === undefined || this.user?.needsBackend(this) === true);
        }
        if (this.#passes) toClient.add(scanner.source, scanner.start, scanner.end);
        else if (scanner.type === From.dataRow) this.#collect(scanner);
        if (scanner.isLast && this.#router.lastFatal !== undefined) return true;
        if (scanner.isLast && replies.head >= firstMadeUp && !this.#router.makeUp()) {
          this.#putOff(scanner.takeRest(this.#own));
          break;
        }
        if (this.followers.length > 0 && scanner.isLast && replies.size === 0) this.#answerEnded();
        const isData = scanner.type === From.dataRow || scanner.type === From.copyData;
        if (!scanner.isLast || isData || ++answers % answersPerLook !== 0) continue;
        endsAt = lookAtPortion(endsAt);
        const isEnough = answers >= mostAnswersAtOnce || endsAt === portionIsOver;
        if (isEnough && scanner.unread > 0) {
          this.#putOff(scanner.takeRest(this.#own));
          break;
        }
      }
      return true;
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      // Passes on whole messages. The client may already have the beginning of the last one.
      if (!toClient.isEmpty) this.#passOn();
      this.transport.destroy(error);
      this.#lose(error);
      return false;
    }
  }

  /** Others are served before the rest of this chunk. */
  #putOff(rest: Buffer): void {
    this.#rest = rest;
    this.transport.pauseReading();
    this.#queueRest();
  }

  #queueRest(): void {
    if (this.#isRestQueued) return;
    this.#isRestQueued = true;
    heavyWork.add(this);
  }

  nextPortion(): void {
    this.#isRestQueued = false;
    if (this.#rest === undefined || this.#isHeldUp) return;
    this.#readRest();
    if (this.#rest === undefined && !this.#isHeldUp) this.transport.resumeReading();
  }

  #readRest(): void {
    const rest = this.#rest;
    if (rest === undefined) return;
    if (this.replies.head >= firstMadeUp && !this.#makeUpMore()) return;
    this.#rest = undefined;
    this.#own = rest;
    this.bytesCame(rest, 0, rest.length);
    this.#own = undefined;
    if (rest.length === 0 && this.replies.size === 0) this.user?.backendSettled(this);
  }

  /** Goes on with answers that are made up, before the rest of the chunk. Returns whether these were all. */
  #makeUpMore(): boolean {
    const isDone = this.#router.makeUp();
    this.#passOn();
    if (!isDone) this.#queueRest();
    return isDone;
  }

  #collect({ source, start, end, isLast }: MessageScanner): void {
    const { headSubject } = this.replies;
    if (headSubject instanceof OwnRow) headSubject.add(source, start, end, isLast);
  }

  /** Takes the connection from its user or out of the pool, once, as soon as it is unusable. */
  #lose(reason: Error): void {
    if (this.#isLost) return;
    this.#isLost = true;
    const { user } = this;
    const isTold = this.#router.lastFatal !== undefined && this.#passes;
    this.user = undefined;
    if (user !== undefined) user.backendLost(reason, this.#router.lastFatal, isTold);
    else if (this.pooled !== undefined) this.home?.broken(this.pooled, reason);
    for (const follower of this.followers.splice(0)) {
      this.home?.shareEnded();
      follower.serverLost(reason, this.#router.lastFatal !== undefined);
    }
  }

  #passOn(): void {
    const { user } = this;
    if (user === undefined) this.#router.toClient.clear();
    else if (!user.takeAnswer(this.#router.toClient) && !this.#isHeldUp) {
      this.#isHeldUp = true;
      this.transport.pauseReading();
    }
  }

  reportedUnasked(name: string, value: string): void {
    // Settings of the last client say nothing about new sessions.
    if (!this.settings.statements.has(name.toLowerCase())) this.onReport?.(name, value);
  }

  reportedTooMuch(): void {
    this.onFlood?.();
  }

  drained(): void {
    this.user?.backendDrained();
  }

  ended(): void {
    while (this.#rest !== undefined) this.#readRest();
    this.transport.destroy();
    this.#lose(new Error('The server closed the connection.'));
  }

  closed(error: Error | undefined): void {
    while (this.#rest !== undefined) this.#readRest();
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

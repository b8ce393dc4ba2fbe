/**
 * A connected client: passes its messages on to a server connection, and the server's answers back. The holder decides which
 * server connection, and for how long.
 */

import type { Transport, TransportListener } from '../../../net/transport.js';
import { systemClock } from '../../../runtime/system.js';
import type { SettingChange } from '../../../sql/setting-change.js';
import { type ErrorFields, writeError } from '../../../wire/error-fields.js';
import { ProtocolViolationError } from '../../../wire/errors.js';
import { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend, headerBytes, TransactionStatus } from '../../../wire/message-types.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import { writeParameterStatus } from '../../../wire/session-messages.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { PoolSettings } from '../../config/pool-settings.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendUser } from '../../servers/backend-user.js';
import { isCopyMessage } from '../../servers/copy-in.js';
import type { Outgoing } from '../../servers/outgoing.js';
import { type PlacedStatement, placedQuery } from '../../servers/placed-statement.js';
import { Asked, type Dropped, type Subject } from '../../servers/reply-queue.js';
import type { StatementShape } from '../../servers/statement-shape.js';
import { MixedQuery, SwallowedStatement } from '../../servers/swallowed.js';
import type { UnnamedStatement } from '../../servers/unnamed-statement.js';
import { KeptTimeouts } from '../../settings/kept-timeouts.js';
import * as errors from '../session-errors.js';
import { pipelineCost } from './client-bounds.js';
import { ClientFlow, Pause } from './client-flow.js';
import { NamedByClient } from './client-statements.js';
import { MessageRelay } from './message-relay.js';
import { RunningQuery } from './running-query.js';
import type { ClientIdentity, SessionParts } from './session-parts.js';
import { SessionSettings } from './session-settings.js';
import { SharingHolder } from './sharing-holder.js';
import { Passing, StatementRelay } from './statement-relay.js';
import { swallowingFor } from './swallow-relay.js';

/** Answers of the pooler's own, sent before the present event is handled. */
const own = new MessageWriter();

export class ClientSession extends SharingHolder implements TransportListener, BackendUser {
  readonly identity: ClientIdentity;
  readonly transport: Transport;
  readonly statements: StatementRelay;
  /** Undefined where no statistics of statements are kept. */
  readonly running: RunningQuery | undefined;
  readonly wantsTags: boolean;
  readonly #messages: MessageRelay;
  readonly #parts: SessionParts;
  readonly #scanner: MessageScanner;
  /** The rest of the present message, which comes in pieces, goes to the server, too. */
  #passesPieces = false;
  /** The held bytes are a single plain statement. */
  #holdsPlain = false;
  /** The settings on the server are unknown. */
  #isServerSpoilt = false;
  /** A cancel request came while the server ran one of the pooler's own queries. */
  #cancelsLater = false;
  /** Timeouts that the client has set and its server refuses. */
  readonly #timeouts: KeptTimeouts | undefined;
  #isEnding = false;
  #whyEnded = 'the client hung up';

  constructor(parts: SessionParts) {
    const { transport, pool, mode, startup, bounds } = parts;
    const ownSettings = new SessionSettings(pool, startup, bounds, () => this.statements.clear());
    super(pool, mode, ownSettings, new ClientFlow(transport, bounds.maxClientUnreadSize));
    this.identity = parts.identity;
    this.transport = transport;
    const { effects, kept } = ownSettings;
    const swallowing = swallowingFor(pool, ownSettings, this.local);
    const running = pool.queries && new RunningQuery(pool.queries);
    this.running = running;
    this.wantsTags = running !== undefined;
    const failed = (error: ErrorFields): void => parts.failed(error);
    const endsWith = (error: ErrorFields): boolean => this.#endsWith(error);
    const owner = { pool, settings: ownSettings, effects, bounds, failed, running, endsWith };
    this.statements = new StatementRelay(owner, mode, swallowing);
    this.#messages = new MessageRelay(ownSettings, this.statements, swallowing, running);
    if (!parts.refusesSimpleQueries) this.local.keeper = swallowing;
    this.#timeouts = kept && new KeptTimeouts(this, kept);
    this.#parts = parts;
    this.#scanner = new MessageScanner(parts.rules);
    transport.listener = this;
  }

  /** What the client replicates by; `none` for an ordinary client. */
  get replication(): 'none' | 'logical' | 'physical' {
    return 'none';
  }

  protected override get backendUser(): BackendUser {
    return this;
  }

  override get limits(): PoolSettings {
    return this.#parts.limits();
  }

  // ---- from the client --------------------------------------------------------------------------------------------

  bytesCame(source: Buffer, start: number, end: number): void {
    this.pool.tally.received += end - start;
    this.flow.took(end - start);
    if (!this.#relayPlain(source, start, end)) this.#relay(source, start, end);
    if (this.#timeouts !== undefined) this.#timeouts.wake();
  }

  protected override tellParameter(name: string, value: string): void {
    writeParameterStatus(own, { name, value });
  }

  protected override feed(held: Buffer): void {
    const { backend } = this;
    const isPlain = this.#holdsPlain && backend !== undefined && this.prepare(backend);
    this.#holdsPlain = false;
    if (isPlain) this.#askPlain(held, 0, held.length, true);
    else this.#relay(held, 0, held.length);
  }

  /**
   * Short path for the most common input: a single statement without effect on the session, from a client without a server.
   * False for anything else.
   */
  #relayPlain(source: Buffer, start: number, end: number): boolean {
    if (this.backend !== undefined || !this.#isPlain(source, start, end)) return false;
    if (this.take()) this.#askPlain(source, start, end, false);
    else {
      this.#holdsPlain = true;
      if (this.pool.plan.multiplex !== undefined && !this.settings.effects.isOwn)
        this.mayShare(this.statements.profileOf(source, start, end));
      this.holdBytes(source, start, end);
      this.flush();
    }
    return true;
  }

  #isPlain(source: Buffer, start: number, end: number): boolean {
    const scanner = this.#scanner;
    if (!this.local.isAtRest || this.#isEnding) return false;
    if (source[start] !== Frontend.query)
      return scanner.isBetweenMessages && this.statements.isPlain(source, start, end, scanner.rules);
    return (
      scanner.isWholeMessage(source, start, end) &&
      !this.#parts.refusesSimpleQueries &&
      this.settings.effects.isPlainQuery(source, start, end, this.settings.told)
    );
  }

  #askPlain(source: Buffer, start: number, end: number, hasWaited: boolean): void {
    const backend = this.backend as Backend;
    if (source[start] === Frontend.query) {
      this.running?.asksText(source, start + headerBytes, end - 1, backend.replies.owesTurn);
      backend.expect(Asked.query);
      backend.toServer.add(source, start, end);
    } else if (!this.statements.askPlain(backend, source, start, end)) {
      this.#relay(source, start, end);
      return;
    } else this.awaitsAnswers = this.statements.mayAskAgain;
    if (hasWaited && this.turn !== undefined) this.gather(backend, source);
    this.flush();
  }

  protected override place(backend: Backend, held: Buffer): PlacedStatement | undefined {
    if (this.#timeouts !== undefined || !this.#holdsPlain) return undefined;
    const placed =
      held[0] === Frontend.query ? placedQuery : this.statements.place(backend, held, 0, held.length);
    if (placed === placedQuery) backend.toServer.add(held, 0, held.length);
    if (placed !== undefined) this.#holdsPlain = false;
    return placed;
  }

  protected override countAdopted(held: Buffer): void {
    if (held[0] === Frontend.query) this.running?.asksText(held, headerBytes, held.length - 1, false);
    else this.statements.countAdopted(held);
  }

  get clientId(): number {
    return this.identity.id;
  }

  #relay(source: Buffer, start: number, end: number): void {
    if (this.#isEnding) return;
    const scanner = this.#scanner;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst) {
          if (!this.#handle(scanner)) break;
        } else if (this.#passesPieces) {
          this.backend?.toServer.add(scanner.source, scanner.start, scanner.end);
          this.#passesPieces = !scanner.isLast;
        }
      }
      this.flush();
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      this.end({ severity: 'FATAL', code: SqlState.protocolViolation, message: error.message });
    }
  }

  /** Sends what was collected while the present bytes were handled. */
  protected override flush(): void {
    this.#sendOwn();
    const { backend } = this;
    if (backend === undefined) return;
    if (!backend.flush()) {
      this.flow.pause(Pause.serverFull);
      if (this.flow.hasRoom) backend.resume();
    }
    if (backend.replies.size === 0) this.backendSettled(backend);
  }

  #sendOwn(): void {
    if (own.length === 0) return;
    // This client is answered here without a server; pause it if it does not read.
    if (!this.transport.send(own.buffer, 0, own.length) && !this.flow.hasRoom)
      this.flow.pause(Pause.clientFull);
    own.clear();
  }

  /** False when the rest of this chunk must not be read: it is held, or the client is disconnecting. */
  #handle(message: MessageScanner): boolean {
    this.#passesPieces = false;
    const { type } = message;
    if (type === Frontend.terminate) {
      this.flush();
      this.#end(undefined, true);
      return false;
    }
    const { backend } = this;
    if (backend?.copyIn.isUnderWay === true) return this.#handleInCopy(backend, message);
    if (backend === undefined) {
      const defersBegin = this.pool.plan.defersBegin && this.mode !== 'statement';
      const wasInTransaction = this.local.isInTransaction;
      if (this.local.answer(message, own, defersBegin)) {
        this.idleSince = systemClock.coarse();
        if (!wasInTransaction) this.inTransactionSince = this.idleSince;
        if (type === Frontend.query) this.statements.unnamedChanged(undefined, undefined);
        return true;
      }
    }
    const isReady = backend === undefined ? this.take() : this.prepare(backend);
    if (isReady && type === Frontend.query && this.#parts.refusesSimpleQueries) {
      this.end(errors.simpleQueryRefused());
      return false;
    }
    if (isReady && this.#ask(this.backend as Backend, message)) return true;
    this.hold(this.#scanner);
    return false;
  }

  /** While the server takes COPY data, no message may wait for answers: it would wait for ever. */
  #handleInCopy(backend: Backend, message: MessageScanner): boolean {
    if (isCopyMessage(message.type)) return this.#ask(backend, message);
    // PostgreSQL is out of step after such a message, and hangs up.
    this.end(errors.noCopyMessage(message.type));
    return false;
  }

  /** False when the message has to wait for answers. */
  #ask(backend: Backend, message: MessageScanner): boolean {
    // After an error the server ignores everything but a Sync, so it need not get the message.
    if (backend.isDiscarding && message.type !== Frontend.sync) return true;
    if (this.unanswered > this.#parts.bounds.maxClientPipelineSize && backend.replies.size > 0) {
      this.pool.tally.limitReached('max_client_pipeline_size');
      this.awaitsAnswers = true;
      return false;
    }
    this.unanswered += pipelineCost(message);
    const passing = this.#messages.pass(backend, message);
    this.awaitsAnswers = this.#messages.mustWait || passing === Passing.later;
    if (passing === Passing.later) return false;
    if (passing === Passing.asItIs) backend.toServer.add(message.source, message.start, message.end);
    this.#passesPieces = passing !== Passing.none && !message.isLast;
    return true;
  }

  // ---- from the server --------------------------------------------------------------------------------------------

  takeAnswer(answer: Outgoing): boolean {
    this.running?.took(answer.size);
    if (this.turn?.isRunning === true) return this.passShared(answer, this.transport);
    this.pool.tally.sent += answer.size;
    return answer.sendTo(this.transport) || this.flow.clientIsSlow();
  }

  commandCompleted(source: Buffer, start: number, end: number, subject: Subject): void {
    this.running?.tagCame(source, start, end);
    if (subject instanceof SwallowedStatement) {
      subject.run();
      return;
    }
    if (subject instanceof NamedByClient) this.statements.deallocated(subject);
    const change = subject instanceof MixedQuery ? subject.effects.change : subject;
    const { settings } = this;
    settings.effects.commandCompleted(settings, source, start, end, change as SettingChange | undefined);
  }

  tagCame(source: Buffer, start: number, end: number): void {
    this.running?.tagCame(source, start, end);
  }

  insteadOf(error: ErrorFields): ErrorFields | undefined {
    return this.#timeouts?.insteadOf(error);
  }

  errorCame({ code }: ErrorFields): void {
    if (this.turn?.isRunning === true && !this.turn.failed(code)) return;
    this.pool.tally.errorCame(code);
    this.running?.errorCame();
    this.settings.effects.errorCame();
  }

  answerDropped(dropped: Dropped): void {
    this.statements.answerDropped(dropped);
  }

  statementDescribed(subject: Subject, shape: StatementShape | undefined): void {
    this.statements.described(this.backend as Backend, subject, shape);
  }

  unnamedChanged(unnamed: UnnamedStatement | undefined, isOnServer: boolean): void {
    this.statements.unnamedChanged(unnamed, isOnServer ? this.backend : undefined);
  }

  askAgain(): void {
    const { backend, turn } = this;
    if (backend !== undefined && backend.followers.length > 0) turn?.runAgain();
    else this.statements.askAgain(backend as Backend);
  }

  readyCame(status: TransactionStatus): void {
    const { tally } = this.pool;
    const now = systemClock.coarse();
    tally.answeredAt = now;
    tally.queryTimes.record(now - this.askedAt);
    if (this.running !== undefined) {
      const waitMs = this.waitedSince === 0 ? 0 : Math.max(0, this.askedAt - this.waitedSince);
      this.running.answered(now - this.askedAt, waitMs);
    }
    this.turn?.answered(now - this.askedAt);
    this.askedAt = now;
    this.waitedSince = 0;
    this.#timeouts?.answered();
    if (status !== TransactionStatus.idle) this.reserve();
    else {
      tally.transactionTimes.record(now - this.beganAt);
      this.beganAt = this.inTransactionSince = now;
    }
    const { backend } = this;
    const isLast = backend === undefined || (backend.replies.size === 0 && !backend.isUnsynced);
    this.settings.effects.readyCame(this.settings, status, isLast);
  }

  backendSettled(backend: Backend): void {
    this.idleSince = systemClock.coarse();
    const { turn } = this;
    if (turn?.isRunning === true && this.sharedTurnEnded(backend, turn)) return;
    // `cancelEnded` calls again.
    if (backend.isBeingCancelled) return;
    if (this.goOn()) return;
    if (backend.status !== TransactionStatus.idle) {
      if (this.mode === 'statement') this.end(errors.transactionInStatementMode());
      return;
    }
    if (this.#passesPieces || !backend.isSettled) return;
    if (this.mustCheck) {
      this.check(backend);
      return;
    }
    if (this.keepsServer) this.reserve();
    else this.giveBack(backend);
    this.partIfFree();
  }

  parameterReported(name: string, value: string, isOwn: boolean): boolean {
    return this.settings.reported(name, value, isOwn);
  }

  /** Messages that wait for answers must go on, because the server waits for them. */
  copyInBegan(): void {
    if (this.heldBytes > 0) process.nextTick(() => this.#goOnInCopy());
  }

  #goOnInCopy(): void {
    if (this.backend?.copyIn.isUnderWay === true) this.goOn();
  }

  ownQueryAnswered(error: ErrorFields | undefined, row: Subject): void {
    const { backend } = this;
    const isCheck = backend !== undefined && this.takeCheck(backend, row, error);
    if (!isCheck && error !== undefined) {
      if (backend !== undefined && this.replacesServer(backend, row, error)) return;
      this.#isServerSpoilt = true;
      this.end(errors.settingsNotRestored(error));
      return;
    }
    if (!isCheck) this.settings.areUnchecked = false;
    if (this.#cancelsLater && backend !== undefined) {
      this.#cancelsLater = false;
      void this.pool.canceller.cancel(backend);
    }
  }

  backendDrained(): void {
    this.flow.resume(Pause.serverFull);
    const { backend } = this;
    if (backend !== undefined && backend.replies.size === 0) this.backendSettled(backend);
  }

  needsBackend(backend: Backend): boolean {
    const hasOwn = this.keepsServer || this.settings.effects.isOwn;
    return hasOwn || this.heldBytes > 0 || this.#passesPieces || !backend.isAtRest;
  }

  backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void {
    const backend = this.backend as Backend;
    const [isInsideAnswer, isNeeded] = [backend.isInsideAnswer, this.needsBackend(backend)];
    this.serverLost(backend, error);
    if (!isNeeded) {
      this.idleSince = systemClock.coarse();
      this.partIfFree();
      return;
    }
    if (fatal !== undefined) this.pool.tally.errorCame(fatal.code);
    this.end(isTold || isInsideAnswer ? undefined : (fatal ?? errors.lostServer(error)));
  }

  // ---- called by the pooler ---------------------------------------------------------------------------------------

  /** Cancels the client's present request. Resolves when the server has been told. */
  async cancel(): Promise<void> {
    const { backend } = this;
    const shared = this.cancelShared();
    if (shared !== undefined) await shared;
    else if (this.stopWaiting()) this.refuseHeld(errors.canceledWhileWaiting);
    else if (backend?.replies.head === Asked.ownQuery) this.#cancelsLater = true;
    else if (backend !== undefined && backend.replies.size > 0) await this.pool.canceller.cancel(backend);
  }

  statementLost(error: Error): void {
    this.end(errors.lostServer(error));
  }

  protected override refuseHeld(error: ErrorFields): void {
    const told = this.#parts.word(error);
    if (told.severity === 'FATAL') {
      this.end(error);
      return;
    }
    this.#parts.failed(error);
    this.local.refuseNext(told);
    this.goOn();
    this.partIfFree();
  }

  /** Whether the wording of this error ends the session; if so, ends it. */
  #endsWith(error: ErrorFields): boolean {
    const isEnd = this.#parts.word(error).severity === 'FATAL';
    if (isEnd) this.end(error);
    return isEnd;
  }

  word(error: ErrorFields): ErrorFields {
    return this.#parts.word(error);
  }

  /** Sends a notice between the client's messages. */
  tell(write: (writer: MessageWriter) => void): void {
    if (this.#isEnding || this.backend?.isInsideAnswer === true) return;
    write(own);
    this.#sendOwn();
  }

  /** How long the client has read nothing although its server waits for that, for periodic checks. */
  stalledFor(now: number): number {
    return this.flow.stalledFor(now, this.backend?.isHeldUp === true);
  }

  /** Pauses reading until `resume()`. */
  suspend(): void {
    this.flow.pause(Pause.suspended);
  }

  resume(): void {
    this.flow.resume(Pause.suspended);
  }

  drained(): void {
    this.flow.resume(Pause.clientFull);
    this.backend?.resume();
  }

  // ---- the end ----------------------------------------------------------------------------------------------------

  /** Ends the session, after the error if there is one. Running statements are cancelled. */
  end(error?: ErrorFields): void {
    this.#end(error, false);
  }

  /** The client has, and waits for nothing. */
  protected saidGoodbye(): void {
    this.#end(undefined, true);
  }

  /** As `end()`, and closes the connection at once, even if it is ending already. */
  kill(error: ErrorFields): void {
    this.end(error);
    this.transport.endAtOnce();
  }

  /** `hasSaidGoodbye`: the client has sent Terminate, and waits for nothing. */
  #end(error: ErrorFields | undefined, hasSaidGoodbye: boolean): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#timeouts?.stop();
    if (hasSaidGoodbye) this.#whyEnded = 'the client said goodbye';
    else if (error !== undefined) this.#whyEnded = this.#parts.word(error).message;
    const isInsideAnswer = this.backend?.isInsideAnswer === true;
    // Logged before the client gets the error, so that the entry exists when somebody looks for it.
    if (error !== undefined) this.#parts.ending(this.#whyEnded);
    this.#leave(!hasSaidGoodbye);
    if (error !== undefined) this.#parts.failed(error);
    if (error !== undefined && !isInsideAnswer) writeError(own, this.#parts.word(error));
    this.#sendOwn();
    const { transport } = this;
    // TLS has a closing message of its own, which some clients would miss.
    if (hasSaidGoodbye && transport.unsent === 0 && transport.tls === undefined) transport.destroy();
    else transport.end();
  }

  /** The client has hung up without Terminate: nothing waits for its running statements. */
  ended(): void {
    this.end();
  }

  closed(): void {
    this.#isEnding = true;
    this.#timeouts?.stop();
    this.#leave(true);
    this.#parts.ended(this.#whyEnded);
  }

  #leave(cancels: boolean): void {
    this.statements.clear();
    const cut = this.#passesPieces ? 'The client left in the middle of a message.' : undefined;
    this.leaveServer(this.#isServerSpoilt ? 'Its settings are not known.' : cut, cancels);
  }
}

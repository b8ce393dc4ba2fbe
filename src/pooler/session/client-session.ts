/**
 * A client that is let in: passes what it sends on to a server connection, which it has for as long as something is owed or
 * open, and gives back in between.
 *
 * The rule above all others: a server connection goes back only when nothing is owed to this client, no transaction is
 * open, and everything sent has left. Otherwise it is cleaned up, or closed.
 */
import type { PooledConnection } from '../../core/pooled-connection.js';
import { systemClock } from '../../runtime/system.js';
import { type ErrorFields, writeError } from '../../wire/error-fields.js';
import { ProtocolViolationError } from '../../wire/errors.js';
import { QueryView } from '../../wire/frontend-views.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Frontend, TransactionStatus } from '../../wire/message-types.js';
import { MessageWriter } from '../../wire/message-writer.js';
import type { ScanRules } from '../../wire/scan-rules.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Backend } from '../backend/backend.js';
import type { BackendPool } from '../backend/backend-pool.js';
import type { BackendUser } from '../backend/backend-user.js';
import { Asked, type Dropped, type Subject } from '../backend/reply-queue.js';
import type { PoolMode } from '../config/pooling-options.js';
import type { Outgoing } from '../outgoing.js';
import { type Settings, transition } from '../settings.js';
import type { Transport, TransportListener } from '../transport/transport.js';
import { BackendWaiter, type WaitingClient } from './backend-waiter.js';
import { ClientFlow, Pause } from './client-flow.js';
import { deallocatedName, deallocateReply } from './deallocate.js';
import { LocalAnswers } from './local-answers.js';
import type { PinReason } from './pin-reason.js';
import * as errors from './session-errors.js';
import { SessionSettings } from './session-settings.js';
import type { SettingChange } from './setting-change.js';
import { Passing, StatementRelay } from './statement-relay.js';

/** Who a client is, for the console and the log. */
export interface ClientIdentity {
  readonly id: number;
  readonly user: string;
  readonly database: string;
  /** In milliseconds since 1970. */
  readonly connectedAt: number;
}

export interface SessionParts {
  readonly identity: ClientIdentity;
  readonly transport: Transport;
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  readonly rules: ScanRules;
  /** What the startup packet has set. */
  readonly settings: Settings;
  /** The reported settings that the client was told. */
  readonly told: ReadonlyMap<string, string>;
  readonly refusesSimpleQueries: boolean;
  /** Gone for good; exactly once. */
  readonly ended: () => void;
  /** It is told an error of the pooler's, and not of the server's. */
  readonly failed: (error: ErrorFields) => void;
}

export type SessionState = 'idle' | 'waiting' | 'active' | 'idle in transaction';

const queryView = new QueryView();
/** Answers of the pooler's own, sent before the turn is over. */
const own = new MessageWriter();

export class ClientSession implements TransportListener, BackendUser, WaitingClient {
  readonly identity: ClientIdentity;
  readonly transport: Transport;
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  readonly statements: StatementRelay;
  readonly #parts: SessionParts;
  readonly #scanner: MessageScanner;
  readonly #settings: SessionSettings;
  readonly #flow: ClientFlow;
  readonly #local = new LocalAnswers();
  #backend: Backend | undefined;
  #generation = 0;
  #waiter: BackendWaiter | undefined;
  /** What came while it could not be passed on. */
  #held: Buffer | undefined;
  /** The rest of the present message, which comes in pieces, goes to the server too. */
  #passesPieces = false;
  /** What comes next waits until the server has answered all. */
  #awaitsAnswers = false;
  /** What the server is set to is not known: it must not be used again. */
  #isServerSpoilt = false;
  /** A cancel came while the server was busy with something of the pooler's own. */
  #cancelsLater = false;
  #isEnding = false;
  /** What it is told when its transaction is over, because it is to go. */
  #goodbye: ErrorFields | undefined;
  /** Times, by the clock of the process: of the last query, the transaction, the last answer, the wait. */
  askedAt = 0;
  beganAt = 0;
  idleSince = 0;
  waitingSince = 0;
  /** The client was told that it waits. */
  hasNotice = false;

  constructor(parts: SessionParts) {
    const { transport, pool } = parts;
    this.#parts = parts;
    this.identity = parts.identity;
    this.transport = transport;
    this.pool = pool;
    this.mode = parts.mode;
    this.#scanner = new MessageScanner(parts.rules);
    this.#settings = new SessionSettings(pool, parts.settings, parts.told, () => this.statements.clear());
    this.statements = new StatementRelay({ pool, settings: this.#settings, effects: this.#settings.effects });
    this.#flow = new ClientFlow(transport);
    this.#backend = undefined;
    this.#waiter = undefined;
    this.#held = undefined;
    this.#goodbye = undefined;
    this.idleSince = systemClock.coarse();
    transport.listener = this;
  }

  get backend(): Backend | undefined {
    return this.#backend;
  }

  get pin(): PinReason | undefined {
    return this.#settings.effects.pin;
  }

  /** In milliseconds since 1970. */
  get pinnedAt(): number {
    return this.#settings.effects.pinnedAt;
  }

  /** Bytes that wait to be passed on. */
  get heldBytes(): number {
    return this.#held?.length ?? 0;
  }

  get told(): ReadonlyMap<string, string> {
    return this.#settings.told;
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  get state(): SessionState {
    if (this.#waiter !== undefined) return 'waiting';
    const backend = this.#backend;
    if (backend === undefined) return this.#local.isInTransaction ? 'idle in transaction' : 'idle';
    if (backend.replies.size > 0) return 'active';
    return backend.status === TransactionStatus.idle && !backend.isUnsynced ? 'idle' : 'idle in transaction';
  }

  // ---- from the client --------------------------------------------------------------------------------------------

  bytesCame(source: Buffer, start: number, end: number): void {
    if (this.#isEnding) return;
    this.pool.tally.received += end - start;
    try {
      this.#scanner.push(source, start, end);
      this.#relay();
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      this.end({ severity: 'FATAL', code: SqlState.protocolViolation, message: error.message });
    }
  }

  #relay(): void {
    const scanner = this.#scanner;
    while (scanner.next()) {
      if (scanner.isFirst) {
        if (!this.#handle(scanner)) break;
      } else if (this.#passesPieces) {
        this.#backend?.toServer.add(scanner.source, scanner.start, scanner.end);
        this.#passesPieces = !scanner.isLast;
      }
    }
    this.#flush();
  }

  /** Sends on what was collected in this turn. */
  #flush(): void {
    if (own.length > 0) {
      this.transport.send(own.buffer, 0, own.length);
      own.clear();
    }
    const backend = this.#backend;
    if (backend === undefined) return;
    if (!backend.flush()) {
      this.#flow.pause(Pause.serverFull);
      if (this.#flow.hasRoom) backend.resume();
    }
    if (backend.replies.size === 0) this.backendSettled(backend);
  }

  /** False when no more of this chunk is to be looked at: it is held, or the client is leaving. */
  #handle(message: MessageScanner): boolean {
    this.#passesPieces = false;
    const { type } = message;
    if (type === Frontend.terminate) {
      this.#flush();
      this.#end(undefined, false);
      return false;
    }
    const backend = this.#backend;
    if (backend !== undefined) {
      if (!this.#mayAsk(backend)) return this.#hold();
      if (backend.replies.size === 0 && !backend.isUnsynced) this.#noteAsked(backend);
    } else if (this.#local.answer(message, own, this.pool.plan.defersBegin && this.mode !== 'statement'))
      return true;
    else if (!this.#take()) return this.#hold();
    if (type === Frontend.query && this.#parts.refusesSimpleQueries) {
      this.end(errors.simpleQueryRefused());
      return false;
    }
    this.#ask(this.#backend as Backend, message);
    return true;
  }

  #ask(backend: Backend, message: MessageScanner): void {
    const { type } = message;
    // After an error the server ignores all but a Sync, and so it need not see it.
    if (backend.isDiscarding && type !== Frontend.sync) return;
    let passing: Passing = Passing.asItIs;
    switch (type) {
      case Frontend.query:
        passing = this.#query(backend, message);
        break;
      case Frontend.parse:
        passing = this.statements.parse(backend, message);
        break;
      case Frontend.bind:
        passing = this.statements.bind(backend, message);
        break;
      case Frontend.execute:
        passing = this.statements.execute(backend, message);
        break;
      case Frontend.sync:
        passing = this.#sync(backend);
        break;
      case Frontend.describe:
        passing = this.statements.describe(backend, message);
        break;
      case Frontend.close:
        passing = this.statements.close(backend, message);
        break;
      case Frontend.functionCall:
        backend.expect(Asked.query);
        break;
      case Frontend.copyDone:
      case Frontend.copyFail:
        backend.endCopy();
        break;
      default:
    }
    if (passing === Passing.asItIs) backend.toServer.add(message.source, message.start, message.end);
    this.#passesPieces = passing !== Passing.none && !message.isLast;
  }

  #query(backend: Backend, message: MessageScanner): Passing {
    let change: SettingChange | undefined;
    if (message.isWhole) {
      const view = queryView.read(message.source, message.start, message.end);
      const name = deallocatedName(view);
      if (name !== undefined && !backend.isUnsynced && this.statements.deallocate(name)) {
        backend.expect(Asked.localQuery, deallocateReply);
        return Passing.none;
      }
      change = this.#settings.effects.textComes(view);
      // Statements that are prepared behind it would be thrown away with the others, or not.
      this.#awaitsAnswers = this.#settings.effects.mayDiscard;
    }
    this.statements.forgetUnnamed(backend);
    backend.expect(Asked.query, change);
    return Passing.asItIs;
  }

  #sync(backend: Backend): Passing {
    // A server that takes COPY data would ignore it.
    if (backend.copyIn.isUnderWay) {
      backend.copyIn.keepSync();
      return Passing.none;
    }
    backend.expect(Asked.sync);
    return Passing.asItIs;
  }

  // ---- taking and giving back -------------------------------------------------------------------------------------

  /** Whether a server is there, and can be asked at once. */
  #take(): boolean {
    const pooled = this.pool.tryTake();
    return pooled !== undefined && this.#attach(pooled);
  }

  /** Whether the server can be asked at once. */
  #attach(pooled: PooledConnection<Backend>): boolean {
    const backend = pooled.connection;
    this.#backend = backend;
    this.#settings.backend = backend;
    this.#generation = pooled.generation;
    backend.user = this;
    this.#noteAsked(backend);
    return this.#mayAsk(backend);
  }

  #noteAsked(backend: Backend): void {
    this.askedAt = systemClock.coarse();
    if (backend.status !== TransactionStatus.idle) return;
    this.beganAt = this.askedAt;
    const { settings } = this.#settings;
    if (backend.settings !== settings) {
      backend.ask(transition(backend.settings, settings));
      backend.settings = settings;
      this.#awaitsAnswers = !settings.areSure;
    }
    if (this.#local.handOver()) backend.ask('BEGIN');
  }

  /** False while everything that was asked must be answered first. */
  #mayAsk(backend: Backend): boolean {
    if (!this.#awaitsAnswers) return true;
    if (backend.replies.size > 0) return false;
    this.#awaitsAnswers = false;
    return true;
  }

  /** Keeps what can't be passed on yet, and reads no more until a server is there, or has answered. */
  #hold(): false {
    this.#held = this.#scanner.takeBack();
    this.#flow.pause(Pause.held);
    if (this.#backend === undefined) {
      this.waitingSince = systemClock.coarse();
      this.hasNotice = false;
      this.#enqueue();
    }
    return false;
  }

  #enqueue(): void {
    const { queryWaitTimeout } = this.pool.limits;
    const waiter = new BackendWaiter(this);
    this.#waiter = waiter;
    this.pool.enqueue(waiter, queryWaitTimeout === 0 ? Number.POSITIVE_INFINITY : queryWaitTimeout);
  }

  #goOn(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#flow.resume(Pause.held);
    this.bytesCame(held, 0, held.length);
  }

  /** A server is there. */
  granted(pooled: PooledConnection<Backend>, waiter: BackendWaiter): void {
    const { connection: backend, generation } = pooled;
    if (this.#waiter !== waiter) {
      // It was cancelled meanwhile, or is gone.
      this.pool.release(backend, generation);
    } else if (backend.isGone) {
      this.pool.lost(backend, generation, new Error('The server closed the connection.'));
      this.#enqueue();
    } else {
      this.#waiter = undefined;
      this.pool.tally.waitMs += systemClock.coarse() - this.waitingSince;
      if (this.#attach(pooled)) this.#goOn();
      else this.#flush();
    }
  }

  refused(error: Error, waiter: BackendWaiter): void {
    if (this.#waiter === waiter) this.#refuseHeld(errors.noServer(this.pool, error));
  }

  /** The message that waits for a server fails, and the client goes on. */
  #refuseHeld(error: ErrorFields): void {
    this.#waiter = undefined;
    if (error.severity === 'FATAL') {
      this.end(error);
      return;
    }
    this.#parts.failed(error);
    this.#local.refuseNext(error);
    this.#goOn();
  }

  backendSettled(backend: Backend): void {
    this.idleSince = systemClock.coarse();
    if (this.#held !== undefined) {
      this.#goOn();
      return;
    }
    if (backend.status !== TransactionStatus.idle) {
      if (this.mode === 'statement') this.end(errors.transactionInStatementMode());
      return;
    }
    if (this.#passesPieces || !backend.isSettled) return;
    if (this.mode === 'session' || this.pin !== undefined) {
      if (this.#goodbye !== undefined) this.end(this.#goodbye);
      return;
    }
    this.#giveBack(backend);
    if (this.#goodbye !== undefined) this.end(this.#goodbye);
  }

  #giveBack(backend: Backend): void {
    this.#letGo(backend);
    if (backend.isInDoubt)
      this.pool.discard(backend, this.#generation, new Error('Nobody knows what state the server is in.'));
    else if (this.pool.plan.resetsAlways) this.pool.cleanUp(backend, this.#generation, true);
    else this.pool.release(backend, this.#generation);
  }

  /** It is somebody else's from here on. */
  #letGo(backend: Backend): void {
    this.#backend = undefined;
    this.#settings.backend = undefined;
    backend.user = undefined;
    backend.resume();
    this.#flow.resume(Pause.serverFull);
  }

  // ---- from the server --------------------------------------------------------------------------------------------

  takeAnswer(answer: Outgoing): boolean {
    this.pool.tally.sent += answer.size;
    return answer.sendTo(this.transport) || this.#flow.clientIsSlow();
  }

  commandCompleted(source: Buffer, start: number, end: number, subject: Subject): void {
    const change = subject as SettingChange | undefined;
    this.#settings.effects.commandCompleted(this.#settings, source, start, end, change);
  }

  errorCame(): void {
    this.#settings.effects.errorCame();
  }

  answerDropped(dropped: Dropped, hasFailed: boolean): void {
    this.statements.answerDropped(dropped, hasFailed);
  }

  readyCame(status: TransactionStatus): void {
    const { tally } = this.pool;
    const now = systemClock.coarse();
    tally.queries++;
    tally.queryMs += now - this.askedAt;
    this.askedAt = now;
    if (status === TransactionStatus.idle) {
      tally.transactions++;
      tally.transactionMs += now - this.beganAt;
      this.beganAt = now;
    }
    this.#settings.effects.readyCame(this.#settings, status);
  }

  parameterReported(name: string, value: string, isOwn: boolean): boolean {
    return this.#settings.reported(name, value, isOwn);
  }

  copyInBegan(): void {}

  ownQueryAnswered(error: ErrorFields | undefined): void {
    const backend = this.#backend;
    if (error === undefined) {
      if (this.#cancelsLater && backend !== undefined) void this.pool.canceller.cancel(backend);
      this.#cancelsLater = false;
      return;
    }
    this.#isServerSpoilt = true;
    this.end(errors.settingsNotRestored(error));
  }

  backendDrained(): void {
    this.#flow.resume(Pause.serverFull);
    const backend = this.#backend;
    if (backend !== undefined && backend.replies.size === 0) this.backendSettled(backend);
  }

  backendLost(error: Error, fatal: ErrorFields | undefined): void {
    const backend = this.#backend as Backend;
    const isInsideAnswer = backend.isInsideAnswer;
    this.#letGo(backend);
    this.pool.lost(backend, this.#generation, error);
    // What the server said last, the client has heard.
    this.end(fatal === undefined && !isInsideAnswer ? errors.lostServer(error) : undefined);
  }

  // ---- from others ------------------------------------------------------------------------------------------------

  /** Cancels what the client waits for. Resolves when the server has been told. */
  async cancel(): Promise<void> {
    const waiter = this.#waiter;
    const backend = this.#backend;
    if (waiter !== undefined) {
      this.pool.leave(waiter);
      this.#refuseHeld(errors.canceledWhileWaiting);
    } else if (backend?.replies.head === Asked.ownQuery) this.#cancelsLater = true;
    else if (backend !== undefined && backend.replies.size > 0) await this.pool.canceller.cancel(backend);
  }

  /** Between the client's messages: a notice. */
  tell(write: (writer: MessageWriter) => void): void {
    if (this.#isEnding || this.#backend?.isInsideAnswer === true) return;
    write(own);
    this.transport.send(own.buffer, 0, own.length);
    own.clear();
  }

  /** It has to go as soon as it is in no transaction and waits for nothing. */
  endWhenIdle(goodbye: ErrorFields): void {
    this.#goodbye = goodbye;
    const isFree = this.#backend === undefined ? this.#waiter === undefined : this.state === 'idle';
    if (isFree) this.end(goodbye);
  }

  /** Nothing is read until `resume()`. */
  suspend(): void {
    this.#flow.pause(Pause.suspended);
  }

  resume(): void {
    this.#flow.resume(Pause.suspended);
  }

  drained(): void {
    this.#flow.resume(Pause.clientFull);
    this.#backend?.resume();
  }

  // ---- the end ----------------------------------------------------------------------------------------------------

  /** Says goodbye; with an error, that first. What is under way is cancelled. */
  end(error?: ErrorFields): void {
    this.#end(error, true);
  }

  #end(error: ErrorFields | undefined, cancels: boolean): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const isInsideAnswer = this.#backend?.isInsideAnswer === true;
    this.#leave(cancels);
    if (error !== undefined) this.#parts.failed(error);
    if (error !== undefined && !isInsideAnswer) writeError(own, error);
    if (own.length > 0) this.transport.send(own.buffer, 0, own.length);
    own.clear();
    this.transport.end();
  }

  /** Without a goodbye: nobody waits for what is under way. */
  ended(): void {
    this.end();
  }

  closed(): void {
    this.#isEnding = true;
    this.#leave(true);
    this.#parts.ended();
  }

  #leave(cancels: boolean): void {
    this.statements.clear();
    this.#held = undefined;
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter !== undefined) this.pool.leave(waiter);
    const backend = this.#backend;
    if (backend === undefined) return;
    const generation = this.#generation;
    this.#letGo(backend);
    if (this.#passesPieces || this.#isServerSpoilt) {
      const why = this.#isServerSpoilt
        ? 'Its settings are not known.'
        : 'The client left in the middle of a message.';
      this.pool.discard(backend, generation, new Error(why));
      return;
    }
    if (cancels && backend.replies.size > 0) void this.pool.canceller.cancel(backend);
    const resets = this.mode === 'session' || this.pin !== undefined || this.pool.plan.resetsAlways;
    this.pool.cleanUp(backend, generation, resets);
  }
}

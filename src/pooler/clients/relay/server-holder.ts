/**
 * The part of a client's session that uses or awaits a server connection: checks it out, applies the client's settings, and
 * releases it.
 *
 * Main invariant: a server connection is released only when nothing is owed to this client, no transaction is open, and
 * everything has been sent. Otherwise it is cleaned or closed.
 */
import type { PooledConnection } from '../../../core/pooled-connection.js';
import { copyRead } from '../../../net/byte-space.js';
import { systemClock } from '../../../runtime/system.js';
import type { PinReason } from '../../../sql/pin-reasons.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import { flush as flushMessage } from '../../../wire/fixed-messages.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { TransactionStatus } from '../../../wire/message-types.js';
import type { PoolSettings } from '../../config/pool-settings.js';
import type { PoolMode } from '../../config/pooling-options.js';
import type { Backend } from '../../servers/backend.js';
import { Cleaning } from '../../servers/backend-cleaner.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { BackendUser } from '../../servers/backend-user.js';
import { OwnRow } from '../../servers/own-row.js';
import type { Subject } from '../../servers/reply-queue.js';
import { textOf, transition } from '../../settings/settings.js';
import { noServer } from '../session-errors.js';
import { type ClientFlow, Pause } from './client-flow.js';
import { LocalAnswers } from './local-answers.js';
import { RequestedEnd } from './requested-end.js';
import { ServerWaiter, type WaitingClient } from './server-waiter.js';
import { readLeftovers, sessionCheckText } from './session-check.js';
import type { SessionSettings } from './session-settings.js';

/** Subject of the query that resets the settings of earlier clients. */
const leftoverReset = new OwnRow();
/** Limit in bytes of a held query whose memory is reused. */
const memoryKept = 256;

export type SessionState = 'idle' | 'waiting' | 'active' | 'idle in transaction';

export abstract class ServerHolder implements WaitingClient {
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  /** Clock times (process clock) of the last query, the transaction, the last answer and the wait. */
  askedAt = 0;
  /** Begin of the transaction on the server, and as the client knows it, which may be earlier. */
  beganAt = 0;
  inTransactionSince = 0;
  idleSince = systemClock.coarse();
  waitingSince = 0;
  /** Start of the wait of the query that runs; 0 where it did not wait. */
  waitedSince = 0;
  /** The client was sent a notice that it waits. */
  hasNotice = false;
  protected readonly settings: SessionSettings;
  protected readonly flow: ClientFlow;
  protected readonly local = new LocalAnswers();
  /** The next message waits until the server has answered everything. */
  protected awaitsAnswers = false;
  /** Memory used by requests since the server last owed nothing. */
  protected unanswered = 0;
  #backend: Backend | undefined;
  #generation = 0;
  /** Held bytes that were sent and may have to be sent again; they must not be overwritten. */
  protected inUse: Buffer | undefined;
  /** The server counts as reserved, because the client keeps it for longer than one statement. */
  #isReserved = false;
  #waiter: ServerWaiter | undefined;
  /** The last waiter, if it is not the present one; reused. */
  #spareWaiter: ServerWaiter | undefined;
  /** Something of this client was sent to the present server. */
  #hasUsed = false;
  /** The session check has run since this client has the present server. */
  #isChecked = false;
  /** Bytes that could not be passed on yet. */
  held: Buffer | undefined;
  /** The end requested for when the transaction is over. */
  readonly #parting = new RequestedEnd();
  /** Memory last used for held bytes, reused for the next query: with more clients than servers, every query waits. */
  protected spareMemory: Buffer | undefined;

  constructor(pool: BackendPool, mode: PoolMode, settings: SessionSettings, flow: ClientFlow) {
    this.pool = pool;
    this.mode = mode;
    this.settings = settings;
    this.flow = flow;
    this.#backend = undefined;
    this.#waiter = undefined;
    this.#spareWaiter = undefined;
    this.held = undefined;
    this.spareMemory = undefined;
    this.inUse = undefined;
  }

  /** Limits of the client. */
  abstract get limits(): PoolSettings;
  /** Receiver of the server's answers. */
  protected abstract get backendUser(): BackendUser;
  /** Tells the client a parameter, before anything else that is for it. */
  protected abstract tellParameter(name: string, value: string): void;
  /** Handles held bytes again. */
  protected abstract feed(held: Buffer): void;
  /** Sends the collected bytes. */
  protected abstract flush(): void;
  /** Fails the held message with this error. The session goes on, unless the error is fatal. */
  protected abstract refuseHeld(error: ErrorFields): void;

  get backend(): Backend | undefined {
    return this.#backend;
  }

  /** Why the client keeps its server after its transaction. */
  get pin(): PinReason | undefined {
    return this.settings.effects.pin;
  }

  /** In milliseconds since 1970. */
  get pinnedAt(): number {
    return this.settings.effects.pinnedAt;
  }

  /** Reported settings, as the client was told them. */
  get told(): ReadonlyMap<string, string> {
    return this.settings.told;
  }

  /** Bytes that wait to be passed on. */
  get heldBytes(): number {
    return this.held?.length ?? 0;
  }

  get isWaiting(): boolean {
    return this.#waiter !== undefined;
  }

  protected get waiter(): ServerWaiter | undefined {
    return this.#waiter;
  }

  /** The client's statement was sent behind those of other clients and has not begun. */
  abstract get isPlaced(): boolean;
  abstract follow(backend: Backend): boolean;
  /** Ends the session with this error. */
  abstract end(error?: ErrorFields): void;

  get state(): SessionState {
    if (this.#waiter !== undefined || this.isPlaced) return 'waiting';
    const backend = this.#backend;
    if (backend === undefined) return this.local.isInTransaction ? 'idle in transaction' : 'idle';
    if (backend.replies.size > 0) return 'active';
    return backend.status === TransactionStatus.idle && !backend.isUnsynced ? 'idle' : 'idle in transaction';
  }

  /** The client keeps its server for the session, or for longer than a transaction. */
  get keepsServer(): boolean {
    return this.mode === 'session' || this.settings.effects.pin !== undefined;
  }

  // ---- checkout ---------------------------------------------------------------------------------------------------

  /** Checks out a server connection. True if one can be used at once. */
  protected take(): boolean {
    const pooled = this.pool.tryTake();
    return pooled !== undefined && this.#attach(pooled);
  }

  #attach(pooled: PooledConnection<Backend>): boolean {
    const backend = pooled.connection;
    this.#backend = backend;
    this.settings.backend = backend;
    this.#generation = pooled.generation;
    this.#hasUsed = this.#isChecked = false;
    this.#isReserved = this.#willReserve();
    this.pool.classes.took(this.#isReserved);
    backend.user = this.backendUser;
    if (this.settings.hasNews) this.settings.tellNews((name, value) => this.tellParameter(name, value));
    return this.prepare(backend);
  }

  /** Takes over a server connection that already runs a statement of this client. */
  protected takeRunning(backend: Backend, generation: number): void {
    this.#backend = backend;
    this.settings.backend = backend;
    this.#generation = generation;
    this.#hasUsed = this.awaitsAnswers = true;
    this.#isChecked = this.#isReserved = false;
    this.pool.classes.took(false);
    backend.user = this.backendUser;
    this.askedAt = this.beganAt = this.inTransactionSince = systemClock.coarse();
  }

  /** The client's next request will keep the server, as far as can be known. */
  #willReserve(): boolean {
    return this.mode === 'session' || this.local.isInTransaction;
  }

  /** The client keeps the server, as has turned out. */
  protected reserve(): void {
    if (this.#isReserved) return;
    this.#isReserved = true;
    this.pool.classes.becameReserved();
  }

  /** Prepares the server for the next message. Returns whether the message may follow at once. */
  protected prepare(backend: Backend): boolean {
    if (backend.replies.size === 0) {
      // The cancel request was meant for the previous statement, and would hit this one.
      if (backend.isBeingCancelled) return false;
      this.awaitsAnswers = false;
      this.unanswered = 0;
      if (!backend.isUnsynced) this.#begin(backend);
    }
    this.#hasUsed ||= !this.awaitsAnswers;
    return !this.awaitsAnswers;
  }

  #begin(backend: Backend): void {
    this.askedAt = systemClock.coarse();
    const { status } = backend;
    if (status === TransactionStatus.failed) return;
    // In a transaction they differ after a RESET, which takes the client back to its startup settings.
    if (backend.settings !== this.settings.settings) this.#bringSettings(backend, status);
    // If the server refuses the settings, BEGIN must go to its replacement.
    if (status !== TransactionStatus.idle || this.awaitsAnswers) return;
    this.beganAt = this.askedAt;
    const begin = this.local.handOver();
    if (begin !== undefined) backend.ask(begin);
    else this.inTransactionSince = this.askedAt;
  }

  /** Applies the client's settings. Unchecked ones may be refused, so the message waits: the answers tell which failed and who set it. */
  #bringSettings(backend: Backend, status: TransactionStatus): void {
    const { settings, areUnchecked } = this.settings;
    const from = backend.settings;
    const steps = transition(from, settings);
    this.awaitsAnswers = !settings.areSure || from.mayStick || areUnchecked;
    if (!from.mayStick || status !== TransactionStatus.idle) backend.ask(textOf(steps));
    else {
      if (steps.resets !== '') backend.ask(steps.resets, leftoverReset);
      if (steps.sets !== '') backend.ask(steps.sets);
    }
    backend.settings = settings;
  }

  /** One of the pooler's own queries has failed. A server that can't be given the client's settings is replaced. */
  protected replacesServer(backend: Backend, row: Subject, error: ErrorFields): boolean {
    // The server may have state of a client that has already used it.
    if (row !== leftoverReset || this.#hasUsed) return false;
    this.pool.discard(
      backend,
      this.letGo(backend),
      new Error(`What an earlier client has set could not be taken back: ${error.message}`),
    );
    if (this.held !== undefined) this.waitForServer();
    return true;
  }

  // ---- checking ---------------------------------------------------------------------------------------------------

  /** The server has to be asked what this client has left in the session. */
  protected get mustCheck(): boolean {
    if (this.mode === 'session') return false;
    return this.settings.effects.isUnclear || (this.pool.plan.checksAlways && !this.#isChecked);
  }

  /** Sends the session check. Messages of the client wait for its answer. */
  protected check(backend: Backend): void {
    this.awaitsAnswers = true;
    this.pool.tally.sessionChecks++;
    backend.ask(sessionCheckText(this.pool.plan.isDsql), new OwnRow());
    backend.flush();
  }

  /** Takes the answer to the session check; false where the row belongs to another query. */
  protected takeCheck(backend: Backend, row: Subject, error: ErrorFields | undefined): boolean {
    if (!(row instanceof OwnRow) || row === leftoverReset) return false;
    this.#isChecked = true;
    const left = error === undefined ? readLeftovers(row) : undefined;
    this.settings.checked(left);
    if (left?.statements !== undefined && left.statements < backend.statements.count)
      backend.statements.distrust();
    if (this.pin !== undefined) this.pool.tally.sessionPins++;
    return true;
  }

  // ---- waiting ----------------------------------------------------------------------------------------------------

  /**
   * Keeps what can't be passed on yet, from the scanner's present message on. Reading pauses until a server is available or has
   * answered.
   */
  protected hold(scanner: MessageScanner): void {
    const held = this.#memoryFor(scanner.ahead);
    scanner.takeBack(held);
    this.#hold(held);
  }

  /** As `hold()`, for bytes that the scanner has not seen. */
  protected holdBytes(source: Buffer, start: number, end: number): void {
    const held = this.#memoryFor(end - start);
    copyRead(source, start, end, held);
    this.#hold(held);
  }

  #hold(held: Buffer): void {
    this.held = held;
    this.flow.pause(Pause.held);
    if (this.#backend !== undefined) {
      // Without a Sync or a Flush the server would not send its answers.
      if (this.#backend.isUnsynced) this.#backend.toServer.mix().append(flushMessage);
      return;
    }
    this.waitForServer();
  }

  protected waitForServer(): void {
    this.waitingSince = systemClock.coarse();
    this.hasNotice = false;
    this.#enqueue();
  }

  /** Allocates exactly this many bytes. Most queries of a client are as long as the one before, so its memory is reused. */
  #memoryFor(bytes: number): Buffer {
    const spare = this.spareMemory;
    this.spareMemory = undefined;
    if (spare?.length === bytes) return spare;
    if (bytes > memoryKept) return Buffer.allocUnsafe(bytes);
    return Buffer.from(spare?.buffer ?? new ArrayBuffer(memoryKept), 0, bytes);
  }

  #enqueue(): void {
    const { queryWaitTimeout } = this.limits;
    const spare = this.#spareWaiter;
    const waiter = spare?.isFree === true ? spare : new ServerWaiter(this);
    waiter.isReserved = this.#willReserve();
    this.pool.classes.waited(waiter.isReserved);
    this.#waiter = waiter;
    this.pool.enqueue(waiter, queryWaitTimeout === 0 ? Number.POSITIVE_INFINITY : queryWaitTimeout);
  }

  /** Continues with held bytes; false where there are none. */
  protected goOn(): boolean {
    const held = this.held;
    if (held === undefined) return false;
    this.held = undefined;
    this.flow.resume(Pause.held);
    this.feed(held);
    // All held bytes were sent or copied.
    if (held.length <= memoryKept && held !== this.inUse) this.spareMemory = held;
    return true;
  }

  /** A server connection was granted. */
  granted(pooled: PooledConnection<Backend>, waiter: ServerWaiter): void {
    const { connection: backend, generation } = pooled;
    if (this.#waiter !== waiter) {
      // The client has cancelled the wait or disconnected meanwhile.
      this.pool.release(backend, generation);
    } else if (backend.isLost) {
      this.pool.lost(backend, generation, new Error('The server closed the connection.'));
      this.#enqueue();
    } else {
      this.waitIsOver(waiter);
      this.waitedSince = this.waitingSince;
      if (this.#attach(pooled)) this.goOn();
      else this.flush();
    }
  }

  refused(error: Error, waiter: ServerWaiter): void {
    if (this.#waiter !== waiter) return;
    this.waitIsOver(waiter);
    this.refuseHeld(noServer(this.pool, error));
  }

  protected waitIsOver(waiter: ServerWaiter): void {
    this.#waiter = undefined;
    this.#spareWaiter = waiter;
    this.pool.tally.waitTimes.record(systemClock.coarse() - this.waitingSince);
  }

  /** Leaves the queue; false if the client was not queued. */
  protected stopWaiting(): boolean {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter !== undefined) this.pool.leave(waiter);
    return waiter !== undefined;
  }

  // ---- requested end --------------------------------------------------------------------------------------------------

  /** Ends the client as soon as it is in no transaction and waits for nothing. */
  endWhenIdle(goodbye: ErrorFields): void {
    this.#parting.whenIdle(goodbye);
    this.partIfFree();
  }

  /** As `endWhenIdle()`, but a client that keeps its server beyond a transaction may stay. */
  endWithoutServer(goodbye: ErrorFields): void {
    this.#parting.withoutServer(goodbye);
    this.partIfFree();
  }

  protected partIfFree(): void {
    if (!this.#parting.isWanted) return;
    const goodbye = this.#parting.dueFor(this);
    if (goodbye !== undefined) this.end(goodbye);
  }

  /** The pool was paused. */
  poolPaused(): void {
    this.partIfFree();
  }

  /** The client waits for a server that it will get. A pause has no known end. */
  get isServedSoon(): boolean {
    return this.isPlaced || (this.isWaiting && !this.pool.isPaused);
  }

  // ---- release ----------------------------------------------------------------------------------------------------

  /** Releases a settled server connection. */
  protected giveBack(backend: Backend): void {
    const { plan } = this.pool;
    const hasHidden = this.settings.effects.mayHideSettings || plan.checksAlways;
    const generation = this.letGo(backend);
    if (backend.isInDoubt)
      this.pool.discard(backend, generation, new Error('Nobody knows what state the server is in.'));
    else if (plan.resetsAlways) this.pool.cleanUp(backend, generation, Cleaning.session);
    else if (hasHidden) this.pool.cleanUp(backend, generation, Cleaning.settings);
    else this.pool.release(backend, generation);
  }

  /** The server connection broke. */
  protected serverLost(backend: Backend, error: Error): void {
    this.pool.lost(backend, this.letGo(backend), error);
  }

  /**
   * The client disconnects and leaves its server in any state. `spoilt`: why the connection can't be used again. `cancels`:
   * nothing waits for the running statements.
   */
  protected leaveServer(spoilt: string | undefined, cancels: boolean): void {
    this.held = undefined;
    this.stopWaiting();
    const backend = this.#backend;
    if (backend === undefined) return;
    // The bytes may complete a message that the server has in part.
    backend.flush();
    // Running statements may change settings, which nothing follows any more; a rollback changes them, too.
    const isUnderWay = backend.replies.size > 0 || backend.isUnsynced || backend.isDiscarding;
    const { effects } = this.settings;
    const hasOwn = this.mode !== 'session' && effects.isOwn;
    const resets = isUnderWay || this.keepsServer || this.pool.plan.resetsAlways;
    const areSettingsUnsure = isUnderWay || effects.hasChanged || effects.mayHideSettings;
    let cleaning: Cleaning = resets ? Cleaning.session : Cleaning.nothing;
    if (hasOwn) cleaning = Cleaning.everything;
    else if (areSettingsUnsure) cleaning = Cleaning.sessionAndSettings;
    const generation = this.letGo(backend);
    if (spoilt !== undefined) {
      this.pool.discard(backend, generation, new Error(spoilt));
      return;
    }
    if (cancels && backend.replies.size > 0) void this.pool.canceller.cancel(backend);
    this.pool.cleanUp(backend, generation, cleaning);
  }

  /** Detaches the server connection. Returns the generation of the checkout to end. */
  protected letGo(backend: Backend): number {
    this.pool.classes.gaveBack(this.#isReserved);
    this.#backend = undefined;
    this.settings.backend = undefined;
    if (this.settings.effects.mayHideSettings) this.settings.effects.leftServer();
    backend.user = undefined;
    backend.resume();
    this.flow.resume(Pause.serverFull);
    return this.#generation;
  }
}

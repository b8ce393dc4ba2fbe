/**
 * The part of a client's session that has a server, or waits for one: takes it from the pool, makes it what the client needs,
 * and gives it back.
 *
 * The rule above all others: a server connection goes back only when nothing is owed to this client, no transaction is
 * open, and everything sent has left. Otherwise it is cleaned up, or closed.
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
import { ServerWaiter, type WaitingClient } from './server-waiter.js';
import { readLeftovers, sessionCheckText } from './session-check.js';
import type { SessionSettings } from './session-settings.js';

/** Marks the query that resets what earlier clients have set. */
const leftoverReset = new OwnRow();
/** A query of up to so many bytes waits in memory that is used again. */
const memoryKept = 256;

export type SessionState = 'idle' | 'waiting' | 'active' | 'idle in transaction';

export abstract class ServerHolder implements WaitingClient {
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  /** Times by the clock of the process: of the last query, the transaction, the last answer, the wait. */
  askedAt = 0;
  /** Of the transaction on the server; and of the transaction as the client knows it, which may be there before a server is. */
  beganAt = 0;
  inTransactionSince = 0;
  idleSince = systemClock.coarse();
  waitingSince = 0;
  /** When the wait began for the query that runs; 0 where it did not wait. */
  waitedSince = 0;
  /** The client was told that it waits. */
  hasNotice = false;
  protected readonly settings: SessionSettings;
  protected readonly flow: ClientFlow;
  protected readonly local = new LocalAnswers();
  /** What comes next waits until the server has answered all. */
  protected awaitsAnswers = false;
  /** Memory for what was asked since the server owed nothing. */
  protected unanswered = 0;
  #backend: Backend | undefined;
  #generation = 0;
  /** Its server counts as reserved: it is kept for longer than one statement. */
  #isReserved = false;
  #waiter: ServerWaiter | undefined;
  /** The last waiter, if it is not the present one. */
  #spareWaiter: ServerWaiter | undefined;
  /** Something of this client was sent to the server, since the client has it. */
  #hasUsed = false;
  /** The server was asked what this client has left, since the client has it. */
  #isChecked = false;
  /** What came while it could not be passed on. */
  #held: Buffer | undefined;
  /** What was held last, to hold the next query in: where there are more clients than servers, each of them waits. */
  #spareMemory: Buffer | undefined;

  constructor(pool: BackendPool, mode: PoolMode, settings: SessionSettings, flow: ClientFlow) {
    this.pool = pool;
    this.mode = mode;
    this.settings = settings;
    this.flow = flow;
    this.#backend = undefined;
    this.#waiter = undefined;
    this.#spareWaiter = undefined;
    this.#held = undefined;
    this.#spareMemory = undefined;
  }

  /** What holds for the client. */
  abstract get limits(): PoolSettings;
  /** Who the server answers to. */
  protected abstract get backendUser(): BackendUser;
  /** Tells the client, before anything else that is for it. */
  protected abstract tellParameter(name: string, value: string): void;
  /** Takes up again what was held. */
  protected abstract feed(held: Buffer): void;
  /** Sends what was collected. */
  protected abstract flush(): void;
  /** The message that waits fails with this; the client goes on, unless it is fatal. */
  protected abstract refuseHeld(error: ErrorFields): void;

  get backend(): Backend | undefined {
    return this.#backend;
  }

  /** Why it keeps its server when its transaction is over. */
  get pin(): PinReason | undefined {
    return this.settings.effects.pin;
  }

  /** In milliseconds since 1970. */
  get pinnedAt(): number {
    return this.settings.effects.pinnedAt;
  }

  /** The reported settings, as the client knows them. */
  get told(): ReadonlyMap<string, string> {
    return this.settings.told;
  }

  /** What waits to be passed on. */
  get held(): Buffer | undefined {
    return this.#held;
  }

  /** Bytes that wait to be passed on. */
  get heldBytes(): number {
    return this.#held?.length ?? 0;
  }

  get isWaiting(): boolean {
    return this.#waiter !== undefined;
  }

  get state(): SessionState {
    if (this.#waiter !== undefined) return 'waiting';
    const backend = this.#backend;
    if (backend === undefined) return this.local.isInTransaction ? 'idle in transaction' : 'idle';
    if (backend.replies.size > 0) return 'active';
    return backend.status === TransactionStatus.idle && !backend.isUnsynced ? 'idle' : 'idle in transaction';
  }

  /** It keeps its server for as long as it is there, or for longer than a transaction. */
  protected get keepsServer(): boolean {
    return this.mode === 'session' || this.settings.effects.pin !== undefined;
  }

  // ---- taking -----------------------------------------------------------------------------------------------------

  /** Whether a server is there, and can be asked at once. */
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

  /** What it asks for next will keep the server, as far as can be known. */
  #willReserve(): boolean {
    return this.mode === 'session' || this.local.isInTransaction;
  }

  /** It has turned out that it keeps the server. */
  protected reserve(): void {
    if (this.#isReserved) return;
    this.#isReserved = true;
    this.pool.classes.becameReserved();
  }

  /** Before each message: what begins here is noted, and prepared. Whether the message may follow at once. */
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
    // In a transaction they differ after a RESET, which for the client goes back to what it began with.
    if (backend.settings !== this.settings.settings) this.#bringSettings(backend, status);
    // Should the server refuse them, another one is told that a transaction begins.
    if (status !== TransactionStatus.idle || this.awaitsAnswers) return;
    this.beganAt = this.askedAt;
    const begin = this.local.handOver();
    if (begin !== undefined) backend.ask(begin);
    else this.inTransactionSince = this.askedAt;
  }

  /** Some settings may be refused: then it is better to know first whether they hold, and whose fault it is if they do not. */
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

  /** A query of the pooler's own has failed: the server can't be made what this client needs, and another one is taken. */
  protected replacesServer(backend: Backend, row: Subject, error: ErrorFields): boolean {
    // A client that has used the server may have something of its own there.
    if (row !== leftoverReset || this.#hasUsed) return false;
    this.pool.discard(
      backend,
      this.#letGo(backend),
      new Error(`What an earlier client has set could not be taken back: ${error.message}`),
    );
    if (this.#held !== undefined) this.#await();
    return true;
  }

  // ---- checking ---------------------------------------------------------------------------------------------------

  /** The server has to be asked what this client has left there. */
  protected get mustCheck(): boolean {
    if (this.mode === 'session') return false;
    return this.settings.effects.isUnclear || (this.pool.plan.checksAlways && !this.#isChecked);
  }

  /** Asks it; what the client sends meanwhile waits. */
  protected check(backend: Backend): void {
    this.awaitsAnswers = true;
    this.pool.tally.sessionChecks++;
    backend.ask(sessionCheckText(this.pool.plan.isDsql), new OwnRow());
    backend.flush();
  }

  /** The answer is there; false where the row is another query's. */
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
   * Keeps what can't be passed on yet, from the scanner's present message on, and reads no more until a server is there,
   * or has answered.
   */
  protected hold(scanner: MessageScanner): void {
    const held = this.#memoryFor(scanner.ahead);
    scanner.takeBack(held);
    this.#hold(held);
  }

  /** The same for bytes that the scanner has not seen. */
  protected holdBytes(source: Buffer, start: number, end: number): void {
    const held = this.#memoryFor(end - start);
    copyRead(source, start, end, held);
    this.#hold(held);
  }

  #hold(held: Buffer): void {
    this.#held = held;
    this.flow.pause(Pause.held);
    if (this.#backend !== undefined) {
      // Without a Sync the server would keep its answers to itself.
      if (this.#backend.isUnsynced) this.#backend.toServer.mix().append(flushMessage);
      return;
    }
    this.#await();
  }

  #await(): void {
    this.waitingSince = systemClock.coarse();
    this.hasNotice = false;
    this.#enqueue();
  }

  /** So many bytes, and no more: most queries of a client are as long as the one before, and what was made for that will do. */
  #memoryFor(bytes: number): Buffer {
    const spare = this.#spareMemory;
    this.#spareMemory = undefined;
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

  /** What was held can go on; false where nothing was. */
  protected goOn(): boolean {
    const held = this.#held;
    if (held === undefined) return false;
    this.#held = undefined;
    this.flow.resume(Pause.held);
    this.feed(held);
    // All of it was sent or copied.
    if (held.length <= memoryKept) this.#spareMemory = held;
    return true;
  }

  /** A server is there. */
  granted(pooled: PooledConnection<Backend>, waiter: ServerWaiter): void {
    const { connection: backend, generation } = pooled;
    if (this.#waiter !== waiter) {
      // It was cancelled meanwhile, or is gone.
      this.pool.release(backend, generation);
    } else if (backend.isLost) {
      this.pool.lost(backend, generation, new Error('The server closed the connection.'));
      this.#enqueue();
    } else {
      this.#waitIsOver(waiter);
      this.waitedSince = this.waitingSince;
      if (this.#attach(pooled)) this.goOn();
      else this.flush();
    }
  }

  refused(error: Error, waiter: ServerWaiter): void {
    if (this.#waiter !== waiter) return;
    this.#waitIsOver(waiter);
    this.refuseHeld(noServer(this.pool, error));
  }

  #waitIsOver(waiter: ServerWaiter): void {
    this.#waiter = undefined;
    this.#spareWaiter = waiter;
    this.pool.tally.waitTimes.record(systemClock.coarse() - this.waitingSince);
  }

  /** Leaves the queue; false where it was in none. */
  protected stopWaiting(): boolean {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter !== undefined) this.pool.leave(waiter);
    return waiter !== undefined;
  }

  // ---- giving back ------------------------------------------------------------------------------------------------

  /** Only a server that is settled. */
  protected giveBack(backend: Backend): void {
    const { plan } = this.pool;
    const hasHidden = this.settings.effects.mayHideSettings || plan.checksAlways;
    const generation = this.#letGo(backend);
    if (backend.isInDoubt)
      this.pool.discard(backend, generation, new Error('Nobody knows what state the server is in.'));
    else if (plan.resetsAlways) this.pool.cleanUp(backend, generation, Cleaning.session);
    else if (hasHidden) this.pool.cleanUp(backend, generation, Cleaning.settings);
    else this.pool.release(backend, generation);
  }

  /** It broke. */
  protected serverLost(backend: Backend, error: Error): void {
    this.pool.lost(backend, this.#letGo(backend), error);
  }

  /**
   * The client goes, and leaves its server in whatever state it is. `spoilt`: why it can't be used again. `cancels`: nobody
   * waits for what is under way.
   */
  protected leaveServer(spoilt: string | undefined, cancels: boolean): void {
    this.#held = undefined;
    this.stopWaiting();
    const backend = this.#backend;
    if (backend === undefined) return;
    // It may be the end of a message that the server has a part of.
    backend.flush();
    // What is under way may change settings, and nobody will follow that; what is rolled back changes them, too.
    const isUnderWay = backend.replies.size > 0 || backend.isUnsynced || backend.isDiscarding;
    const { effects } = this.settings;
    const hasOwn = this.mode !== 'session' && effects.isOwn;
    const resets = isUnderWay || this.keepsServer || this.pool.plan.resetsAlways;
    const areSettingsUnsure = isUnderWay || effects.hasChanged || effects.mayHideSettings;
    let cleaning: Cleaning = resets ? Cleaning.session : Cleaning.nothing;
    if (hasOwn) cleaning = Cleaning.everything;
    else if (areSettingsUnsure) cleaning = Cleaning.sessionAndSettings;
    const generation = this.#letGo(backend);
    if (spoilt !== undefined) {
      this.pool.discard(backend, generation, new Error(spoilt));
      return;
    }
    if (cancels && backend.replies.size > 0) void this.pool.canceller.cancel(backend);
    this.pool.cleanUp(backend, generation, cleaning);
  }

  /** It is somebody else's from here on; the checkout that is to be ended. */
  #letGo(backend: Backend): number {
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

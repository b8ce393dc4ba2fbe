/**
 * One client's place at a server connection: the connection that it uses or waits for. Checks it out, applies the client's
 * settings, and releases it.
 *
 * Main invariant: a server connection is released only when nothing is owed to this client, no transaction is open, and
 * everything has been sent. Otherwise it is cleaned or closed.
 */
import type { PooledConnection } from '../../../core/pooled-connection.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import { flush as flushMessage } from '../../../wire/fixed-messages.js';
import { TransactionStatus } from '../../../wire/message-types.js';
import { writeParameterStatus } from '../../../wire/session-messages.js';
import type { PoolMode } from '../../config/pooling-options.js';
import type { Backend } from '../../servers/backend.js';
import { Cleaning } from '../../servers/backend-cleaner.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { BackendUser } from '../../servers/backend-user.js';
import { OwnRow } from '../../servers/own-row.js';
import type { Subject } from '../../servers/reply-queue.js';
import { textOf, transition } from '../../settings/transition.js';
import { type ClientFlow, Pause } from './client-flow.js';
import type { ClientOutput } from './client-output.js';
import type { LocalAnswers } from './local-answers.js';
import type { RequestTimes } from './request-times.js';
import { ServerWait, type WaitOwner } from './server-wait.js';
import { readLeftovers, sessionCheckText } from './session-check.js';
import type { SessionTracker } from './session-tracker.js';

/** Subject of the query that resets the settings of earlier clients. */
const leftoverReset = new OwnRow();

/** The session that the seat belongs to. */
export interface SeatOwner {
  /** Limit of a wait in milliseconds; 0: no limit. */
  readonly longestWaitMs: number;
  /** Receiver of the server's answers. */
  readonly answers: BackendUser;
  /** The client waits for a server from now on. */
  waits(): void;
  /** A server connection was granted. `isReady`: the held bytes can follow at once. */
  seated(isReady: boolean): void;
  /** The held message can't be served. */
  unserved(error: Error): void;
}

export interface SeatParts {
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  readonly tracker: SessionTracker;
  readonly local: LocalAnswers;
  readonly flow: ClientFlow;
  readonly output: ClientOutput;
  readonly times: RequestTimes;
}

export class ServerSeat implements WaitOwner {
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  readonly wait: ServerWait;
  readonly #owner: SeatOwner;
  readonly #tracker: SessionTracker;
  readonly #local: LocalAnswers;
  readonly #flow: ClientFlow;
  readonly #output: ClientOutput;
  readonly #times: RequestTimes;
  /** The next message waits until the server has answered everything. */
  awaitsAnswers = false;
  /** The statement that is about to take or await a server is known to be long. */
  isLong = false;
  /** Memory used by requests since the server last owed nothing. */
  unanswered = 0;
  #backend: Backend | undefined;
  #generation = 0;
  /** The server counts as reserved, because the client keeps it for longer than one statement. */
  #isReserved = false;
  /** The server counts as busy with a long statement. */
  #hasLong = false;
  /** Something of this client was sent to the present server. */
  #hasUsed = false;
  /** The session check has run since this client has the present server. */
  #isChecked = false;

  constructor({ pool, mode, tracker, local, flow, output, times }: SeatParts, owner: SeatOwner) {
    this.pool = pool;
    this.mode = mode;
    this.wait = new ServerWait(pool, this, times);
    this.#owner = owner;
    this.#tracker = tracker;
    this.#local = local;
    this.#flow = flow;
    this.#output = output;
    this.#times = times;
  }

  get backend(): Backend | undefined {
    return this.#backend;
  }

  /** The client keeps its server for the session, or for longer than a transaction. */
  get keepsServer(): boolean {
    return this.mode === 'session' || this.#tracker.pin.reason !== undefined;
  }

  // ---- checkout ---------------------------------------------------------------------------------------------------

  /** Checks out a server connection. True if one can be used at once. */
  take(): boolean {
    if (this.isLong && this.pool.classes.long.areTooMany) {
      this.pool.tally.longWaits++;
      return false;
    }
    const pooled = this.pool.tryTake();
    if (pooled === undefined) return false;
    if (this.isLong) this.pool.classes.long.began();
    return this.#attach(pooled);
  }

  waits(): void {
    this.#owner.waits();
  }

  /** Held bytes go on when the server has answered, or when there is one. */
  awaitServer(): void {
    const backend = this.#backend;
    if (backend === undefined) this.wait.begin();
    // Without a Sync or a Flush the server would not send its answers.
    else if (backend.isUnsynced) backend.toServer.mix().append(flushMessage);
  }

  served(pooled: PooledConnection<Backend>): void {
    this.#owner.seated(this.#attach(pooled));
  }

  notServed(error: Error): void {
    this.#owner.unserved(error);
  }

  get longestWaitMs(): number {
    return this.#owner.longestWaitMs;
  }

  /** The client's next request will keep the server, as far as can be known. */
  get willReserve(): boolean {
    return this.mode === 'session' || this.#local.isInTransaction;
  }

  #attach(pooled: PooledConnection<Backend>): boolean {
    const backend = pooled.connection;
    this.#backend = backend;
    this.#tracker.followed.backend = backend;
    this.#generation = pooled.generation;
    this.#hasUsed = this.#isChecked = false;
    this.#isReserved = this.willReserve;
    this.pool.classes.took(this.#isReserved);
    this.#hasLong = this.isLong;
    backend.user = this.#owner.answers;
    // Told before anything else that is for the client.
    if (this.#tracker.hasNews)
      this.#tracker.tellNews((name, value) => writeParameterStatus(this.#output.writer, { name, value }));
    return this.prepare(backend);
  }

  /** Takes over a server connection that already runs a statement of this client, sent at `placedAt`. */
  takeRunning(backend: Backend, generation: number, placedAt: number): void {
    this.#backend = backend;
    this.#tracker.followed.backend = backend;
    this.#generation = generation;
    this.#hasUsed = this.awaitsAnswers = true;
    this.#isChecked = this.#isReserved = this.#hasLong = false;
    this.pool.classes.took(false);
    backend.user = this.#owner.answers;
    this.#times.adopted(placedAt);
  }

  /** The client keeps the server, as has turned out. */
  reserve(): void {
    if (this.#isReserved) return;
    this.#isReserved = true;
    this.pool.classes.becameReserved();
  }

  // ---- settings ---------------------------------------------------------------------------------------------------

  /** Prepares the server for the next message. Returns whether the message may follow at once. */
  prepare(backend: Backend): boolean {
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
    this.#times.asks();
    const { status } = backend;
    if (status === TransactionStatus.failed) return;
    // In a transaction they differ after a RESET, which takes the client back to its startup settings.
    if (backend.settings !== this.#tracker.settings) this.#bringSettings(backend, status);
    // If the server refuses the settings, BEGIN must go to its replacement.
    if (status !== TransactionStatus.idle || this.awaitsAnswers) return;
    const begin = this.#local.handOver();
    this.#times.begins(begin !== undefined);
    if (begin !== undefined) backend.own.ask(begin);
  }

  /** Applies the client's settings. Unchecked ones may be refused, so the message waits: the answers tell which failed and who set it. */
  #bringSettings(backend: Backend, status: TransactionStatus): void {
    const { wanted: settings, areUnchecked } = this.#tracker.followed;
    const from = backend.settings;
    const steps = transition(from, settings);
    this.awaitsAnswers = !settings.areSure || from.mayStick || areUnchecked;
    if (!from.mayStick || status !== TransactionStatus.idle) backend.own.ask(textOf(steps));
    else {
      if (steps.resets !== '') backend.own.ask(steps.resets, leftoverReset);
      if (steps.sets !== '') backend.own.ask(steps.sets);
    }
    backend.settings = settings;
    this.pool.onSettingsBrought?.(backend, from, settings);
  }

  /** One of the pooler's own queries has failed. Discards a server that can't be given the client's settings; false for another failure. */
  discardsUnset(backend: Backend, row: Subject, { message }: ErrorFields): boolean {
    // The server may have state of a client that has already used it.
    if (row !== leftoverReset || this.#hasUsed) return false;
    this.pool.discard(
      backend,
      this.letGo(backend),
      new Error(`What an earlier client has set could not be taken back: ${message}`),
    );
    return true;
  }

  // ---- checking ---------------------------------------------------------------------------------------------------

  /** The server has to be asked what this client has left in the session. */
  get mustCheck(): boolean {
    if (this.mode === 'session') return false;
    return this.#tracker.pin.isUnclear || (this.pool.plan.checksAlways && !this.#isChecked);
  }

  /** Sends the session check. Messages of the client wait for its answer. */
  check(backend: Backend): void {
    this.awaitsAnswers = true;
    this.pool.tally.sessionChecks++;
    backend.own.ask(sessionCheckText(this.pool.plan.isDsql), new OwnRow());
    backend.flush();
  }

  /** Takes the answer to the session check; false where the row belongs to another query. */
  takeCheck(backend: Backend, row: Subject, error: ErrorFields | undefined): boolean {
    if (!(row instanceof OwnRow) || row === leftoverReset) return false;
    this.#isChecked = true;
    const left = error === undefined ? readLeftovers(row) : undefined;
    this.#tracker.checked(left);
    if (left?.statements !== undefined && left.statements < backend.statements.count)
      backend.statements.distrust();
    if (this.#tracker.pin.reason !== undefined) this.pool.tally.sessionPins++;
    return true;
  }

  // ---- release ----------------------------------------------------------------------------------------------------

  /** Releases a settled server connection. */
  giveBack(backend: Backend): void {
    const { plan } = this.pool;
    const hasHidden = this.#tracker.pin.mayHideSettings || plan.checksAlways;
    const generation = this.letGo(backend);
    if (backend.isInDoubt)
      this.pool.discard(backend, generation, new Error('The state of the server connection is unknown.'));
    else if (plan.resetsAlways) this.pool.cleanUp(backend, generation, Cleaning.session);
    else if (hasHidden) this.pool.cleanUp(backend, generation, Cleaning.settings);
    else this.pool.release(backend, generation);
  }

  /** The server connection broke. */
  lost(backend: Backend, error: Error): void {
    this.pool.lost(backend, this.letGo(backend), error);
  }

  /**
   * The client disconnects and leaves its server in any state. `spoilt`: why the connection can't be used again. `cancels`:
   * nothing waits for the running statements.
   */
  leave(spoilt: string | undefined, cancels: boolean): void {
    this.wait.stop();
    const backend = this.#backend;
    if (backend === undefined) return;
    // The bytes may complete a message that the server has in part.
    backend.flush();
    // Running statements may change settings, which nothing follows any more; a rollback changes them, too.
    const isUnderWay = backend.replies.size > 0 || backend.isUnsynced || backend.isDiscarding;
    const { pin, followed } = this.#tracker;
    const hasOwn = this.mode !== 'session' && pin.isOwn;
    const resets = isUnderWay || this.keepsServer || this.pool.plan.resetsAlways;
    const areSettingsUnsure = isUnderWay || followed.hasChanged || pin.mayHideSettings;
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
  letGo(backend: Backend): number {
    this.pool.classes.gaveBack(this.#isReserved);
    if (this.#hasLong) this.pool.classes.long.ended();
    this.#backend = undefined;
    this.#tracker.followed.backend = undefined;
    if (this.#tracker.pin.mayHideSettings) this.#tracker.pin.leftServer();
    backend.user = undefined;
    backend.resume();
    this.#flow.resume(Pause.serverFull);
    return this.#generation;
  }
}

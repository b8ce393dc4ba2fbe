/** A connected client in its session: puts its parts together, and ends them together. */
import type { Transport, TransportListener } from '../../../net/transport.js';
import type { PinReason } from '../../../sql/pin-reasons.js';
import { type ErrorFields, writeNotice } from '../../../wire/error-fields.js';
import { TransactionStatus } from '../../../wire/message-types.js';
import type { PoolSettings } from '../../config/pool-settings.js';
import type { PoolMode } from '../../config/pooling-options.js';
import { wordings } from '../../own-error.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { PlacedStatement } from '../../servers/placed-statement.js';
import { KeptTimeouts } from '../../settings/kept-timeouts.js';
import * as errors from '../session-errors.js';
import { ClientFlow, Pause } from './client-flow.js';
import { ClientOutput } from './client-output.js';
import { ClientRequests, type RequestsOwner } from './client-requests.js';
import type { ConnectedClient, SessionState } from './connected-client.js';
import { HeldInput } from './held-input.js';
import { LocalAnswers } from './local-answers.js';
import { MessageRelay } from './message-relay.js';
import { RequestTimes } from './request-times.js';
import { RequestedEnd } from './requested-end.js';
import { RunningQuery } from './running-query.js';
import { type AnswersOwner, ServerAnswers } from './server-answers.js';
import { type SeatOwner, ServerSeat } from './server-seat.js';
import { type EndingSession, SessionEnd } from './session-end.js';
import type { ClientIdentity, SessionParts } from './session-parts.js';
import { dueTimeout } from './session-timeouts.js';
import { SessionTracker } from './session-tracker.js';
import { StatementRelay } from './statement-relay.js';
import { type SharingOwner, StatementSharing } from './statement-sharing.js';
import { swallowingFor } from './swallow-relay.js';

type Owners = SeatOwner & SharingOwner & RequestsOwner & AnswersOwner & EndingSession;

export class ClientSession implements ConnectedClient, TransportListener, Owners {
  readonly identity: ClientIdentity;
  readonly clientId: number;
  readonly transport: Transport;
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  readonly times = new RequestTimes();
  readonly running: RunningQuery | undefined;
  readonly replication = 'none';
  readonly answers: ServerAnswers;
  readonly #parts: SessionParts;
  readonly #flow: ClientFlow;
  readonly #output: ClientOutput;
  readonly #held: HeldInput;
  readonly #local = new LocalAnswers();
  readonly #tracker: SessionTracker;
  readonly #statements: StatementRelay;
  readonly #seat: ServerSeat;
  readonly #sharing: StatementSharing;
  readonly #requests: ClientRequests;
  /** Timeouts that the client has set and its server refuses. */
  readonly #timeouts: KeptTimeouts | undefined;
  /** The end requested for when the transaction is over. */
  readonly #parting = new RequestedEnd();
  readonly #end: SessionEnd;

  constructor(parts: SessionParts) {
    const { transport, pool, mode, startup, bounds } = parts;
    const { times } = this;
    const local = this.#local;
    this.identity = parts.identity;
    this.clientId = parts.identity.id;
    this.transport = transport;
    this.pool = pool;
    this.mode = mode;
    this.#parts = parts;
    const flow = new ClientFlow(transport, bounds.maxClientUnreadSize);
    const output = new ClientOutput(transport, flow);
    const held = new HeldInput(flow);
    const tracker = new SessionTracker(pool, startup, bounds, () => this.#statements.clear());
    const swallowing = swallowingFor(pool, tracker, local);
    const running = pool.queries && new RunningQuery(pool.queries);
    const failed = (error: ErrorFields): void => parts.failed(error);
    const endsWith = (error: ErrorFields): boolean => this.#endsWith(error);
    const { kept } = tracker;
    const keepsUnparsed = parts.word === wordings.pgbouncer;
    const owner = { pool, tracker, bounds, failed, running, endsWith, keepsUnparsed };
    const statements = new StatementRelay(owner, mode, swallowing);
    const messages = new MessageRelay(tracker, statements, swallowing, running);
    if (!parts.refusesSimpleQueries) local.keeper = swallowing;
    this.#flow = flow;
    this.#output = output;
    this.#held = held;
    this.#tracker = tracker;
    this.#statements = statements;
    this.running = running;
    const seat = new ServerSeat({ pool, mode, tracker, local, flow, output, times }, this);
    this.#seat = seat;
    const sharing = new StatementSharing({ seat, held, tracker, flow, times }, this);
    this.#sharing = sharing;
    const timeouts = kept && new KeptTimeouts(this, kept);
    this.#timeouts = timeouts;
    // One object for both: to spread it costs as much as all other parts together.
    const shared = {
      seat,
      sharing,
      held,
      tracker,
      local,
      statements,
      messages,
      flow,
      output,
      transport,
      times,
      running,
      timeouts,
    };
    const requests = new ClientRequests(shared, parts, this);
    this.#requests = requests;
    this.answers = new ServerAnswers(shared, requests, this);
    this.#end = new SessionEnd(parts, this, output);
    transport.listener = this;
  }

  // ---- views ------------------------------------------------------------------------------------------------------

  get backend(): Backend | undefined {
    return this.#seat.backend;
  }

  get state(): SessionState {
    const { backend, wait } = this.#seat;
    if (wait.isUnderWay || this.#sharing.isPlaced) return 'waiting';
    if (backend === undefined) return this.#local.isInTransaction ? 'idle in transaction' : 'idle';
    if (backend.replies.size > 0) return 'active';
    return backend.status === TransactionStatus.idle && !backend.isUnsynced ? 'idle' : 'idle in transaction';
  }

  get isWaiting(): boolean {
    return this.#seat.wait.isUnderWay;
  }

  /** The client waits for a server that it will get. A pause has no known end. */
  get isServedSoon(): boolean {
    return this.#sharing.isPlaced || (this.#seat.wait.isUnderWay && !this.pool.isPaused);
  }

  get keepsServer(): boolean {
    return this.#seat.keepsServer;
  }

  get placedOn(): number | undefined {
    return this.#sharing.placedOn;
  }

  get pin(): PinReason | undefined {
    return this.#tracker.pin.reason;
  }

  get pinnedAt(): number {
    return this.#tracker.pin.since;
  }

  get told(): ReadonlyMap<string, string> {
    return this.#tracker.told;
  }

  get held(): Buffer | undefined {
    return this.#held.bytes;
  }

  get namedStatements(): number {
    return this.#statements.size;
  }

  get limits(): PoolSettings {
    return this.#parts.limits();
  }

  get longestWaitMs(): number {
    return this.limits.queryWaitTimeout;
  }

  // ---- from the client --------------------------------------------------------------------------------------------

  bytesCame(source: Buffer, start: number, end: number): void {
    this.#requests.bytesCame(source, start, end);
  }

  drained(): void {
    this.#flow.resume(Pause.clientFull);
    this.#seat.backend?.resume();
  }

  /** The client has hung up without Terminate: nothing waits for its running statements. */
  ended(): void {
    this.end();
  }

  closed(): void {
    this.#end.over();
  }

  // ---- among its parts --------------------------------------------------------------------------------------------

  seated(isReady: boolean): void {
    if (isReady) this.#requests.goOn();
    else this.#requests.flush();
  }

  unserved(error: Error): void {
    this.refuseHeld(errors.noServer(this.pool, error));
  }

  place(backend: Backend, held: Buffer): PlacedStatement | undefined {
    return this.#requests.place(backend, held);
  }

  countAdopted(held: Buffer): void {
    this.#requests.countAdopted(held);
  }

  statementLost(error: Error): void {
    this.end(errors.lostServer(error));
  }

  goOn(): boolean {
    return this.#requests.goOn();
  }

  settled(backend: Backend): void {
    this.answers.backendSettled(backend);
  }

  refuseHeld(error: ErrorFields): void {
    const told = this.#parts.word(error);
    if (told.severity === 'FATAL') {
      this.end(error);
      return;
    }
    this.#parts.failed(error);
    this.#local.refuseNext(told);
    this.goOn();
    this.partIfFree();
  }

  // ---- called by the pooler ---------------------------------------------------------------------------------------

  async cancel(): Promise<void> {
    const shared = this.#sharing.cancel();
    if (shared !== undefined) await shared;
    else if (this.#seat.wait.stop()) this.refuseHeld(errors.canceledWhileWaiting);
    else await this.answers.cancel();
  }

  suspend(): void {
    this.#flow.pause(Pause.suspended);
  }

  resume(): void {
    this.#flow.resume(Pause.suspended);
  }

  checkTimeouts(now: number, notifyAfterMs: number): void {
    // A placed statement's timeouts begin when the statements ahead of it are answered. That is soon, or it runs on another connection.
    if (this.#sharing.isPlaced) {
      this.#sharing.leaveSlow(now);
      return;
    }
    const error = dueTimeout(this, now);
    const { wait } = this.#seat;
    const waitedMs = now - this.times.waitingSince;
    if (error !== undefined) this.end(error);
    else if (wait.isUnderWay && !wait.hasNotice && notifyAfterMs > 0 && waitedMs >= notifyAfterMs) {
      wait.hasNotice = true;
      this.#notify(errors.waitNotice(this.pool, waitedMs));
    }
  }

  /** How long the client has read nothing although its server waits for that, for periodic checks. */
  stalledFor(now: number): number {
    return this.#flow.stalledFor(now, this.backend?.isHeldUp === true);
  }

  /** Sends a notice between the client's messages. */
  #notify(notice: ErrorFields): void {
    if (this.isEnding || this.isInsideAnswer) return;
    writeNotice(this.#output.writer, this.#parts.word(notice));
    this.#output.send();
  }

  // ---- the end ----------------------------------------------------------------------------------------------------

  endWhenIdle(goodbye: ErrorFields): void {
    this.#parting.whenIdle(goodbye);
    this.partIfFree();
  }

  endWithoutServer(goodbye: ErrorFields): void {
    this.#parting.withoutServer(goodbye);
    this.partIfFree();
  }

  endOnDemand(goodbye: ErrorFields): void {
    this.#parting.onDemand(goodbye);
    this.partIfFree();
  }

  waits(): void {
    // Not while the client's message is being handled.
    if (this.#parting.isWanted) setImmediate(() => this.partIfFree());
  }

  poolPaused(): void {
    this.partIfFree();
  }

  partIfFree(): void {
    if (!this.#parting.isWanted) return;
    const goodbye = this.#parting.dueFor(this);
    if (goodbye !== undefined) this.end(goodbye);
  }

  get isEnding(): boolean {
    return this.#end.hasBegun;
  }

  get isInsideAnswer(): boolean {
    return this.#seat.backend?.isInsideAnswer === true;
  }

  /** Ends the session, after the error if there is one. Running statements are cancelled. */
  end(error?: ErrorFields): void {
    this.#end.begin(error, false);
  }

  saidGoodbye(): void {
    this.#end.begin(undefined, true);
  }

  kill(error: ErrorFields): void {
    this.end(error);
    this.transport.endAtOnce();
  }

  /** Ends the session if the wording of this error does. Returns whether it does. */
  #endsWith(error: ErrorFields): boolean {
    const isEnd = this.#parts.word(error).severity === 'FATAL';
    if (isEnd) this.end(error);
    return isEnd;
  }

  leave(cancels: boolean): void {
    this.#timeouts?.stop();
    this.#statements.clear();
    this.#held.drop();
    if (this.#sharing.leave(cancels)) return;
    const cut = this.#requests.isInsideMessage ? 'The client left in the middle of a message.' : undefined;
    this.#seat.leave(this.answers.isServerSpoilt ? 'Its settings are not known.' : cut, cancels);
  }
}

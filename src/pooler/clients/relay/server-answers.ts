/** Answers of a server to one client: passes them on, follows their effects, and gives the server back when it owes nothing. */
import type { Transport } from '../../../net/transport.js';
import { systemClock } from '../../../runtime/system.js';
import type { SettingChange } from '../../../sql/setting-change.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import { TransactionStatus } from '../../../wire/message-types.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { BackendUser } from '../../servers/backend-user.js';
import type { Outgoing } from '../../servers/outgoing.js';
import { Asked, type Dropped, type Subject } from '../../servers/reply-queue.js';
import type { StatementShape } from '../../servers/statement-shape.js';
import { MixedQuery, SwallowedStatement } from '../../servers/swallowed.js';
import type { UnnamedStatement } from '../../servers/unnamed-statement.js';
import type { KeptTimeouts } from '../../settings/kept-timeouts.js';
import * as errors from '../session-errors.js';
import { type ClientFlow, Pause } from './client-flow.js';
import type { ClientRequests } from './client-requests.js';
import { NamedByClient } from './client-statements.js';
import type { HeldInput } from './held-input.js';
import type { RequestTimes } from './request-times.js';
import type { RunningQuery } from './running-query.js';
import type { ServerSeat } from './server-seat.js';
import type { SessionTracker } from './session-tracker.js';
import type { StatementRelay } from './statement-relay.js';
import type { StatementSharing } from './statement-sharing.js';

/** The session that the answers are for. */
export interface AnswersOwner {
  /** Ends the session, after the error if there is one. */
  end(error: ErrorFields | undefined): void;
  /** The client may have left its server: ends it if that is wanted. */
  partIfFree(): void;
}

export interface AnswerParts {
  readonly transport: Transport;
  readonly seat: ServerSeat;
  readonly sharing: StatementSharing;
  readonly held: HeldInput;
  readonly tracker: SessionTracker;
  readonly statements: StatementRelay;
  readonly flow: ClientFlow;
  readonly times: RequestTimes;
  readonly running: RunningQuery | undefined;
  readonly timeouts: KeptTimeouts | undefined;
}

export class ServerAnswers implements BackendUser {
  readonly wantsTags: boolean;
  readonly #owner: AnswersOwner;
  readonly #pool: BackendPool;
  readonly #transport: Transport;
  readonly #seat: ServerSeat;
  readonly #sharing: StatementSharing;
  readonly #held: HeldInput;
  readonly #tracker: SessionTracker;
  readonly #requests: ClientRequests;
  readonly #statements: StatementRelay;
  readonly #flow: ClientFlow;
  readonly #times: RequestTimes;
  readonly #running: RunningQuery | undefined;
  readonly #timeouts: KeptTimeouts | undefined;
  /** The settings on the server are unknown. */
  #isServerSpoilt = false;
  /** A cancel request came while the server ran one of the pooler's own queries. */
  #cancelsLater = false;

  constructor(parts: AnswerParts, requests: ClientRequests, owner: AnswersOwner) {
    this.wantsTags = parts.running !== undefined;
    this.#owner = owner;
    this.#pool = parts.seat.pool;
    this.#transport = parts.transport;
    this.#seat = parts.seat;
    this.#sharing = parts.sharing;
    this.#held = parts.held;
    this.#tracker = parts.tracker;
    this.#requests = requests;
    this.#statements = parts.statements;
    this.#flow = parts.flow;
    this.#times = parts.times;
    this.#running = parts.running;
    this.#timeouts = parts.timeouts;
  }

  get isServerSpoilt(): boolean {
    return this.#isServerSpoilt;
  }

  // ---- answers ----------------------------------------------------------------------------------------------------

  takeAnswer(answer: Outgoing): boolean {
    this.#running?.took(answer.size);
    if (this.#sharing.isRunning) return this.#sharing.passOn(answer, this.#transport);
    this.#pool.tally.sent += answer.size;
    return answer.sendTo(this.#transport) || this.#flow.clientIsSlow();
  }

  commandCompleted(source: Buffer, start: number, end: number, subject: Subject): void {
    this.#running?.tagCame(source, start, end);
    if (subject instanceof SwallowedStatement) {
      subject.run();
      return;
    }
    if (subject instanceof NamedByClient) this.#statements.deallocated(subject);
    const change = subject instanceof MixedQuery ? subject.effects.change : subject;
    this.#tracker.commandCompleted(source, start, end, change as SettingChange | undefined);
  }

  tagCame(source: Buffer, start: number, end: number): void {
    this.#running?.tagCame(source, start, end);
  }

  insteadOf(error: ErrorFields): ErrorFields | undefined {
    return this.#timeouts?.insteadOf(error);
  }

  errorCame({ code }: ErrorFields): void {
    const { shared } = this.#sharing;
    if (shared?.failed(code) === false) return;
    this.#pool.tally.errorCame(code);
    this.#running?.errorCame();
    this.#tracker.errorCame();
  }

  answerDropped(dropped: Dropped): void {
    this.#statements.answerDropped(dropped);
  }

  statementDescribed(subject: Subject, shape: StatementShape | undefined): void {
    this.#statements.described(this.#seat.backend as Backend, subject, shape);
  }

  unnamedChanged(unnamed: UnnamedStatement | undefined, isOnServer: boolean): void {
    this.#statements.unnamedChanged(unnamed, isOnServer ? this.#seat.backend : undefined);
  }

  askAgain(): void {
    const { backend } = this.#seat;
    if (backend !== undefined && backend.followers.length > 0) this.#sharing.shared?.runAgain();
    else this.#statements.plain.askAgain(backend as Backend);
  }

  parameterReported(name: string, value: string, isOwn: boolean): boolean {
    return this.#tracker.reported(name, value, isOwn);
  }

  /** Messages that wait for answers must go on, because the server waits for them. */
  copyInBegan(): void {
    if (this.#held.size > 0) process.nextTick(() => this.#goOnInCopy());
  }

  #goOnInCopy(): void {
    if (this.#seat.backend?.copyIn.isUnderWay === true) this.#requests.goOn();
  }

  // ---- the end of an answer ---------------------------------------------------------------------------------------

  readyCame(status: TransactionStatus): void {
    const { tally } = this.#pool;
    const times = this.#times;
    const now = systemClock.coarse();
    tally.answeredAt = now;
    const { waitMs } = times;
    const ms = times.answered(now);
    tally.queryTimes.record(ms);
    this.#running?.answered(ms, waitMs);
    this.#sharing.shared?.answered(ms, now);
    this.#timeouts?.answered();
    if (status !== TransactionStatus.idle) this.#seat.reserve();
    else tally.transactionTimes.record(times.committed(now));
    const { backend } = this.#seat;
    const isLast = backend === undefined || (backend.replies.size === 0 && !backend.isUnsynced);
    this.#tracker.readyCame(status, isLast);
  }

  backendSettled(backend: Backend): void {
    this.#times.settled();
    const seat = this.#seat;
    if (this.#sharing.isRunning && this.#sharing.answered(backend)) return;
    // `cancelEnded` calls again.
    if (backend.isBeingCancelled) return;
    if (this.#requests.goOn()) return;
    if (backend.status !== TransactionStatus.idle) {
      if (seat.mode === 'statement') this.#owner.end(errors.transactionInStatementMode());
      return;
    }
    if (this.#requests.isInsideMessage || !backend.isSettled) return;
    if (seat.mustCheck) {
      seat.check(backend);
      return;
    }
    if (seat.keepsServer) seat.reserve();
    else seat.giveBack(backend);
    this.#owner.partIfFree();
  }

  ownQueryAnswered(error: ErrorFields | undefined, row: Subject): void {
    const seat = this.#seat;
    const { backend } = seat;
    const isCheck = backend !== undefined && seat.takeCheck(backend, row, error);
    if (!isCheck && error !== undefined) {
      if (backend !== undefined && seat.discardsUnset(backend, row, error)) {
        if (this.#held.bytes !== undefined) seat.wait.begin();
        return;
      }
      this.#isServerSpoilt = true;
      this.#owner.end(errors.settingsNotRestored(error));
      return;
    }
    if (!isCheck) this.#tracker.followed.areUnchecked = false;
    if (this.#cancelsLater && backend !== undefined) {
      this.#cancelsLater = false;
      void this.#pool.canceller.cancel(backend);
    }
  }

  // ---- the connection ---------------------------------------------------------------------------------------------

  /** Cancels the running request, if there is one. Resolves when the server has been told. */
  async cancel(): Promise<void> {
    const { backend } = this.#seat;
    if (backend?.replies.head === Asked.ownQuery) this.#cancelsLater = true;
    else if (backend !== undefined && backend.replies.size > 0) await this.#pool.canceller.cancel(backend);
  }

  backendDrained(): void {
    this.#flow.resume(Pause.serverFull);
    const { backend } = this.#seat;
    if (backend !== undefined && backend.replies.size === 0) this.backendSettled(backend);
  }

  needsBackend(backend: Backend): boolean {
    const hasOwn = this.#seat.keepsServer || this.#tracker.pin.isOwn;
    return hasOwn || this.#held.size > 0 || this.#requests.isInsideMessage || !backend.isAtRest;
  }

  backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void {
    const backend = this.#seat.backend as Backend;
    const [isInsideAnswer, isNeeded] = [backend.isInsideAnswer, this.needsBackend(backend)];
    this.#seat.lost(backend, error);
    if (!isNeeded) {
      this.#times.settled();
      this.#owner.partIfFree();
      return;
    }
    if (fatal !== undefined) this.#pool.tally.errorCame(fatal.code);
    this.#owner.end(isTold || isInsideAnswer ? undefined : (fatal ?? errors.lostServer(error)));
  }
}

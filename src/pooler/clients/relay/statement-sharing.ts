/**
 * Shares a server connection with other clients while all connections of the pool are in use. A plain statement that has waited
 * is sent together with those of the next clients in the queue, and the connection is handed from one client to the next.
 */
import type { Transport } from '../../../net/transport.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import { TransactionStatus } from '../../../wire/message-types.js';
import { AbandonedStatement } from '../../servers/abandoned-statement.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { Outgoing } from '../../servers/outgoing.js';
import type { PlacedStatement } from '../../servers/placed-statement.js';
import { Asked } from '../../servers/reply-queue.js';
import type { StatementProfile } from '../../servers/statement-times.js';
import { canceledWhileWaiting } from '../session-errors.js';
import type { ClientFlow } from './client-flow.js';
import type { HeldInput } from './held-input.js';
import type { RequestTimes } from './request-times.js';
import type { ServerSeat } from './server-seat.js';
import { ServerWaiter } from './server-waiter.js';
import type { SessionTracker } from './session-tracker.js';
import { SharedStatement, type SharingClient } from './shared-statement.js';

/** Limit of the wait behind others, as a multiple of the longest time that one of them may take. */
const patience = 20;

/** The session that the statements belong to. */
export interface SharingOwner {
  readonly clientId: number;
  /** Writes the held plain statement behind those of others; undefined where the server needs more than one round trip for it. */
  place(backend: Backend, held: Buffer): PlacedStatement | undefined;
  /** The placed statement in these bytes is now the one that runs; for the statistics. */
  countAdopted(held: Buffer): void;
  /** The statement may have been run, or not. */
  statementLost(error: Error): void;
  /** Fails the held message with this error. The session goes on, unless the error is fatal. */
  refuseHeld(error: ErrorFields): void;
  /** Continues with held bytes; false where there are none. */
  goOn(): boolean;
  /** The client has left its server: ends it if that is wanted. */
  partIfFree(): void;
}

export interface SharingParts {
  readonly seat: ServerSeat;
  readonly held: HeldInput;
  readonly tracker: SessionTracker;
  readonly flow: ClientFlow;
  readonly times: RequestTimes;
}

export class StatementSharing implements SharingClient {
  readonly pool: BackendPool;
  readonly clientId: number;
  readonly #owner: SharingOwner;
  readonly #seat: ServerSeat;
  readonly #held: HeldInput;
  readonly #tracker: SessionTracker;
  readonly #flow: ClientFlow;
  readonly #times: RequestTimes;
  /** Undefined until the client has waited in a pool that shares connections. */
  #shared: SharedStatement | undefined;

  constructor({ seat, held, tracker, flow, times }: SharingParts, owner: SharingOwner) {
    this.pool = seat.pool;
    this.clientId = owner.clientId;
    this.#owner = owner;
    this.#seat = seat;
    this.#held = held;
    this.#tracker = tracker;
    this.#flow = flow;
    this.#times = times;
    seat.wait.sharing = this;
  }

  get shared(): SharedStatement | undefined {
    return this.#shared;
  }

  /** The client's statement was sent behind those of other clients and has not begun. */
  get isPlaced(): boolean {
    return this.#shared?.isPlaced === true;
  }

  /** The client's statement runs on a shared connection. */
  get isRunning(): boolean {
    return this.#shared?.isRunning === true;
  }

  /** Id of the connection on which the statement is behind others. */
  get placedOn(): number | undefined {
    return this.#shared?.serverId;
  }

  // ---- sending ----------------------------------------------------------------------------------------------------

  /** A plain statement is about to wait. `profile`: its usual run time; undefined where it may not share a connection. */
  mayShare(profile: StatementProfile | undefined): void {
    this.#shared ??= new SharedStatement(this);
    this.#shared.profile = profile;
  }

  /** A statement that has waited is written and not sent yet: statements of other waiting clients are written behind it. */
  gather(backend: Backend, source: Buffer): void {
    const { multiplex } = this.pool.plan;
    const shared = this.#shared;
    if (multiplex === undefined || shared?.profile === undefined) return;
    shared.measure();
    if (!this.#isShareable(backend) || backend.replies.head === Asked.ownQuery) return;
    const { followers, home } = backend;
    let last = shared.profile;
    while (followers.length < multiplex.depth - 1 && last.usualMs <= multiplex.longestMs) {
      const gathered = this.pool.gathering.first;
      if (gathered !== undefined) {
        if (!gathered.follow(backend)) break;
        home?.shareBegan();
      } else {
        const waiter = home?.firstToShare;
        // A long statement has a connection to itself, which counts as such.
        if (!(waiter instanceof ServerWaiter) || waiter.isLong || !waiter.client.follow(backend)) break;
        home?.share();
      }
      last = (followers.at(-1) as SharedStatement).profile as StatementProfile;
    }
    if (followers.length === 0) return;
    shared.run(source);
    this.#held.keepInUse(source);
    this.#seat.awaitsAnswers = true;
  }

  /** Sends the client's held statement behind what was written for another client; false where that is not possible. */
  follow(backend: Backend): boolean {
    const shared = this.#shared;
    const { bytes } = this.#held;
    const { wait } = this.#seat;
    if (shared?.profile === undefined || bytes === undefined || !wait.isUnderWay) return false;
    if (!this.#isShareable(backend) || this.#tracker.hasNews) return false;
    const placed = this.#owner.place(backend, bytes);
    if (placed === undefined) return false;
    this.pool.tally.multiplexed++;
    shared.place(placed, backend);
    backend.followers.push(shared);
    wait.end();
    return true;
  }

  /** Session and server allow sharing: the statement means the same on this connection as on any other. */
  #isShareable(backend: Backend): boolean {
    const { followed, pin } = this.#tracker;
    return (
      this.#seat.mode !== 'session' &&
      backend.settings === followed.wanted &&
      !followed.areUnchecked &&
      !pin.isOwn &&
      !pin.mayHideSettings
    );
  }

  adopt(backend: Backend, generation: number): void {
    const shared = this.#shared as SharedStatement;
    this.#seat.takeRunning(backend, generation, shared.placedAt);
    const held = this.#held.sent();
    this.#owner.countAdopted(held);
    shared.run(held);
  }

  waitAgain(): void {
    if (this.#held.bytes !== undefined) this.#seat.wait.begin();
  }

  statementLost(error: Error): void {
    this.#owner.statementLost(error);
  }

  // ---- leaving ----------------------------------------------------------------------------------------------------

  /** Cancels the client's statement; undefined where it is on no shared connection. */
  cancel(): Promise<void> | undefined {
    const shared = this.#shared;
    const { backend } = this.#seat;
    if (shared?.isPlaced === true) shared.cancelLater();
    else if (shared?.isRunning === true && backend !== undefined) return shared.cancel(backend);
    else return undefined;
    return Promise.resolve();
  }

  /**
   * Leaves a connection where the statements ahead turn out to be slow: the statement is sent once more on another connection.
   * The first answer is dropped, so this is for reads only.
   */
  leaveSlow(now: number): void {
    const shared = this.#shared;
    const { waitingSince } = this.#times;
    const { multiplex } = this.pool.plan;
    const patienceMs = patience * (multiplex?.longestMs ?? 0);
    if (shared?.profile?.isRead !== true || now - shared.placedAt < patienceMs) return;
    shared.abandon(false);
    this.#shared = new SharedStatement(this);
    this.#shared.profile = shared.profile;
    if (shared.isToBeCancelled) {
      this.#owner.refuseHeld(canceledWhileWaiting);
      return;
    }
    this.pool.tally.multiplexedAgain++;
    this.#seat.wait.begin();
    this.#times.waitingSince = waitingSince;
  }

  /** The client disconnects. True: others share its connection, which is left to them. */
  leave(cancels: boolean): boolean {
    if (this.isPlaced) this.#shared?.abandon(cancels);
    const { backend } = this.#seat;
    if (backend === undefined || backend.followers.length === 0) return false;
    new AbandonedStatement(this.pool, backend, this.#seat.letGo(backend));
    if (cancels) void this.pool.canceller.cancel(backend);
    return true;
  }

  // ---- answers ----------------------------------------------------------------------------------------------------

  /** Passes on a part of an answer on a shared connection; false where the server is to hold on. */
  passOn(answer: Outgoing, transport: Transport): boolean {
    const { backend } = this.#seat;
    const filtered = this.#shared?.filter(answer, backend?.replies.size === 0);
    if (filtered === 'nothing') return true;
    if (filtered !== undefined) answer.mix().append(filtered.take());
    this.pool.tally.sent += answer.size;
    if (answer.sendTo(transport)) return true;
    // A client that does not read does not block the followers, while the bytes for it can be kept.
    const isFollowed = backend !== undefined && backend.followers.length > 0;
    return isFollowed && this.#flow.hasRoom ? true : this.#flow.clientIsSlow();
  }

  /** The answer to a statement on a shared connection is complete. False: the client still has the connection, and may go on. */
  answered(backend: Backend): boolean {
    const shared = this.#shared as SharedStatement;
    const { bytes } = shared;
    const again = shared.end();
    this.#held.answered(bytes, again);
    if (backend.followers.length === 0) return false;
    if (backend.status !== TransactionStatus.idle) {
      backend.destroy(new Error('A statement on a shared connection has left a transaction open.'));
      return true;
    }
    backend.handOn(this.#seat.letGo(backend));
    if (again !== undefined) this.#seat.wait.begin();
    else if (!this.#owner.goOn()) this.#owner.partIfFree();
    return true;
  }
}

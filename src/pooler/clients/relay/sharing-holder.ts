/**
 * The part of a client's session that shares a server connection with other clients while all connections of the pool are in
 * use. A plain statement that has waited is sent together with those of the next clients in the queue, and the connection is
 * handed from one client to the next.
 */

import type { Transport } from '../../../net/transport.js';
import { systemClock } from '../../../runtime/system.js';
import { TransactionStatus } from '../../../wire/message-types.js';
import { AbandonedStatement } from '../../servers/abandoned-statement.js';
import type { Backend } from '../../servers/backend.js';
import type { Outgoing } from '../../servers/outgoing.js';
import type { PlacedStatement } from '../../servers/placed-statement.js';
import { Asked } from '../../servers/reply-queue.js';
import type { StatementProfile } from '../../servers/statement-times.js';
import { canceledWhileWaiting } from '../session-errors.js';
import { Pause } from './client-flow.js';
import { ServerHolder } from './server-holder.js';
import { ServerWaiter } from './server-waiter.js';
import { SharedTurn, type SharingClient } from './shared-turn.js';

/** Limit in bytes of a statement whose memory is reused. */
const memoryKept = 256;
/** Limit of the wait behind others, as a multiple of the longest time that one of them may take. */
const patience = 20;

export abstract class SharingHolder extends ServerHolder implements SharingClient {
  /** Undefined until the client has waited in a pool that shares connections. */
  protected turn: SharedTurn | undefined;

  /** Writes the held plain statement behind those of others; undefined where the server needs more than one round trip for it. */
  protected abstract place(backend: Backend, held: Buffer): PlacedStatement | undefined;
  abstract statementLost(error: Error): void;
  /** The placed statement in these bytes is now the one that runs; for the statistics. */
  protected abstract countAdopted(held: Buffer): void;
  abstract readonly clientId: number;

  override get isPlaced(): boolean {
    return this.turn?.isPlaced === true;
  }

  /** A plain statement is about to wait. `profile`: its usual run time; undefined where it may not share a connection. */
  protected mayShare(profile: StatementProfile | undefined): void {
    this.turn ??= new SharedTurn(this);
    this.turn.profile = profile;
  }

  /** A statement that has waited is written and not sent yet: statements of other waiting clients are written behind it. */
  protected gather(backend: Backend, source: Buffer): void {
    const { multiplex } = this.pool.plan;
    const { turn } = this;
    if (multiplex === undefined || turn?.profile === undefined) return;
    turn.measure();
    if (!this.#isShareable(backend) || backend.replies.head === Asked.ownQuery) return;
    const { followers, home } = backend;
    let last = turn.profile;
    while (followers.length < multiplex.depth - 1 && last.usualMs <= multiplex.longestMs) {
      const waiter = home?.firstToShare;
      if (!(waiter instanceof ServerWaiter) || !waiter.client.follow(backend)) break;
      home?.share();
      last = (followers.at(-1) as SharedTurn).profile as StatementProfile;
    }
    if (followers.length === 0) return;
    turn.run(source);
    this.inUse = source;
    this.awaitsAnswers = true;
  }

  /** Sends the client's held statement behind what was written for another client; false where that is not possible. */
  override follow(backend: Backend): boolean {
    const { turn, held, waiter } = this;
    if (turn?.profile === undefined || held === undefined || waiter === undefined) return false;
    if (!this.#isShareable(backend) || this.settings.hasNews) return false;
    const placed = this.place(backend, held);
    if (placed === undefined) return false;
    this.pool.tally.multiplexed++;
    turn.place(placed, backend);
    backend.followers.push(turn);
    this.waitIsOver(waiter);
    return true;
  }

  /** Cancels the client's statement; undefined where it is on no shared connection. */
  protected cancelShared(): Promise<void> | undefined {
    const { turn, backend } = this;
    if (turn?.isPlaced === true) turn.cancelLater();
    else if (turn?.isRunning === true && backend !== undefined) return turn.cancel(backend);
    else return undefined;
    return Promise.resolve();
  }

  /** Session and server allow sharing: the statement means the same on this connection as on any other. */
  #isShareable(backend: Backend): boolean {
    const { settings, mode } = this;
    const { effects } = settings;
    return (
      mode !== 'session' &&
      this.turn?.isAlone === false &&
      backend.settings === settings.settings &&
      !settings.areUnchecked &&
      !effects.isOwn &&
      !effects.mayHideSettings
    );
  }

  adopt(backend: Backend, generation: number): void {
    const turn = this.turn as SharedTurn;
    this.takeRunning(backend, generation);
    // The time behind other statements does not count.
    this.waitedSince = systemClock.coarse() - (turn.placedAt - this.waitingSince);
    const held = this.held as Buffer;
    this.countAdopted(held);
    turn.run(held);
    this.inUse = held;
    this.held = undefined;
  }

  waitAgain(): void {
    if (this.held !== undefined) this.waitForServer();
  }

  /**
   * Leaves a connection where the statements ahead turn out to be slow: the statement is sent once more on another connection.
   * The first answer is dropped, so this is for reads only.
   */
  leaveSlow(now: number): void {
    const { turn, waitingSince } = this;
    const { multiplex } = this.pool.plan;
    const patienceMs = patience * (multiplex?.longestMs ?? 0);
    if (turn?.profile?.isRead !== true || now - turn.placedAt < patienceMs) return;
    turn.abandon();
    this.turn = new SharedTurn(this);
    this.turn.profile = turn.profile;
    if (turn.isToBeCancelled) {
      this.refuseHeld(canceledWhileWaiting);
      return;
    }
    this.pool.tally.multiplexedAgain++;
    this.waitForServer();
    this.waitingSince = waitingSince;
  }

  /** Id of the connection on which the statement is behind others. */
  get placedOn(): number | undefined {
    return this.turn?.serverId;
  }

  /** Passes on a part of an answer on a shared connection; false where the server is to hold on. */
  protected passShared(answer: Outgoing, transport: Transport): boolean {
    const { backend, turn } = this;
    const filtered = turn?.filter(answer, backend?.replies.size === 0);
    if (filtered === 'nothing') return true;
    if (filtered !== undefined) answer.mix().append(filtered.take());
    this.pool.tally.sent += answer.size;
    if (answer.sendTo(transport)) return true;
    // A client that does not read does not block the followers, while the bytes for it can be kept.
    const isFollowed = backend !== undefined && backend.followers.length > 0;
    return isFollowed && this.flow.hasRoom ? true : this.flow.clientIsSlow();
  }

  /** The answer to a statement on a shared connection is complete. False: the client still has the connection, and may go on. */
  protected sharedTurnEnded(backend: Backend, turn: SharedTurn): boolean {
    const { bytes } = turn;
    const again = turn.end();
    this.inUse = undefined;
    if (again !== undefined) this.held = this.held === undefined ? again : Buffer.concat([again, this.held]);
    else if (bytes !== undefined && bytes.length <= memoryKept) this.spareMemory = bytes;
    if (this.held === undefined) this.flow.resume(Pause.held);
    else this.flow.pause(Pause.held);
    if (backend.followers.length === 0) return false;
    if (backend.status !== TransactionStatus.idle) {
      backend.destroy(new Error('A statement on a shared connection has left a transaction open.'));
      return true;
    }
    backend.handOn(this.letGo(backend));
    if (again !== undefined) this.waitForServer();
    else if (!this.goOn()) this.partIfFree();
    return true;
  }

  protected override leaveServer(spoilt: string | undefined, cancels: boolean): void {
    if (this.isPlaced) this.turn?.abandon();
    const { backend } = this;
    if (backend === undefined || backend.followers.length === 0) {
      super.leaveServer(spoilt, cancels);
      return;
    }
    this.held = undefined;
    new AbandonedStatement(this.pool, backend, this.letGo(backend));
    if (cancels) void this.pool.canceller.cancel(backend);
  }
}

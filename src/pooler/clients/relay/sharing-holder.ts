/**
 * The part of a client's session that shares a server connection with other clients, while all connections of the pool are in use: a plain
 * statement that has waited is sent together with those of the next clients in the queue, and the connection goes from one to the next.
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

/** Longer statements are not kept in memory that is used again. */
const memoryKept = 256;
/** A statement waits behind others for so many times as long as one of them may take. */
const patience = 20;

export abstract class SharingHolder extends ServerHolder implements SharingClient {
  /** Undefined before the client has waited where connections are shared. */
  protected turn: SharedTurn | undefined;

  /** Writes the plain statement that waits behind those of others; undefined where the server can't be asked for it in one go. */
  protected abstract place(backend: Backend, held: Buffer): PlacedStatement | undefined;
  abstract statementLost(error: Error): void;
  /** The statement in these bytes, which was placed behind others, is the one that runs: for the statistics. */
  protected abstract countAdopted(held: Buffer): void;
  abstract readonly clientId: number;

  override get isPlaced(): boolean {
    return this.turn?.isPlaced === true;
  }

  /** A plain statement is about to wait. `profile`: how long it usually takes; undefined where it may not share a connection. */
  protected mayShare(profile: StatementProfile | undefined): void {
    this.turn ??= new SharedTurn(this);
    this.turn.profile = profile;
  }

  /** A statement that has waited is written, and is not sent yet: those of other clients that wait are written behind it. */
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

  /** Sends what the client waits with behind what was written for another client; false where that is not possible. */
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

  /** A cancel request of the client; undefined where its statement is on no shared connection. */
  protected cancelShared(): Promise<void> | undefined {
    const { turn, backend } = this;
    if (turn?.isPlaced === true) turn.cancelLater();
    else if (turn?.isRunning === true && backend !== undefined) return turn.cancel(backend);
    else return undefined;
    return Promise.resolve();
  }

  /** The session and the server are such that the statement means the same on this connection as on any other. */
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
    // The time behind others does not count.
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
   * What is ahead of its statement turns out to be slow: it waits for another connection, where it is sent once more. What comes of it
   * here goes nowhere, so that this is for reads alone.
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

  /** The connection on which its statement is behind those of others. */
  get placedOn(): number | undefined {
    return this.turn?.serverId;
  }

  /** A part of the answer to a statement on a shared connection; false where the server is to hold on. */
  protected passShared(answer: Outgoing, transport: Transport): boolean {
    const { backend, turn } = this;
    const filtered = turn?.filter(answer, backend?.replies.size === 0);
    if (filtered === 'nothing') return true;
    if (filtered !== undefined) answer.mix().append(filtered.take());
    this.pool.tally.sent += answer.size;
    if (answer.sendTo(transport)) return true;
    // Others are not held up by a client that does not read, as long as there is room for what it is sent.
    const isFollowed = backend !== undefined && backend.followers.length > 0;
    return isFollowed && this.flow.hasRoom ? true : this.flow.clientIsSlow();
  }

  /** The answer to a statement on a shared connection is complete. False: the client has the connection still, and may go on. */
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

/**
 * The live connections and their lives: idle, checking, closing, ageing. Callers are unknown here: serving.ts decides
 * which caller gets which connection.
 *
 * A connection that is idle, checking or closing is in the list of that name, and in no other.
 */
import type { Clock } from '../kernel/clock.js';
import { Heap } from '../kernel/heap.js';
import { LinkedList } from '../kernel/linked-list.js';
import type { Dialer } from './dialer.js';
import { CheckTimeoutError } from './errors.js';
import { ExpiryScanner, type ScanSituation } from './expiry-scanner.js';
import { IdleConnections } from './idle-connections.js';
import type { Slot } from './ledger.js';
import type { PoolListener } from './pool-listener.js';
import type { PoolPolicy } from './pool-policy.js';
import { PooledConnection } from './pooled-connection.js';
import type { DiscardReason } from './reasons.js';
import { tooOld } from './reservoir.js';
import type { Tally } from './tally.js';
import type { WakeUp } from './wake-up.js';

export interface LiveConnectionsParts<C> {
  readonly policy: PoolPolicy;
  readonly dialer: Dialer<C>;
  readonly clock: Clock;
  readonly wakeUp: WakeUp;
  readonly tally: Tally;
  readonly listener: PoolListener<C> | undefined;
}

const never = Infinity;

export class LiveConnections<C> {
  readonly idle: IdleConnections<C>;
  readonly #policy: PoolPolicy;
  readonly #dialer: Dialer<C>;
  readonly #clock: Clock;
  readonly #wakeUp: WakeUp;
  readonly #tally: Tally;
  readonly #listener: PoolListener<C> | undefined;

  /** Every live connection, whatever it is doing. */
  readonly #all = new Set<PooledConnection<C>>();
  // Deadlines are all equally far away, so each of these is in the order of its deadlines.
  readonly #checking = new LinkedList<PooledConnection<C>>();
  readonly #closing = new LinkedList<PooledConnection<C>>();
  /** With a reservoir: handles the ends of lives. */
  readonly #scanner: ExpiryScanner<C> | undefined;
  /** Without a reservoir: live connections by their next lifetime event: start of the guard window, then the end. */
  readonly #expiries = new Heap<PooledConnection<C>>();
  #nextKeepaliveAt = never;
  #lastId = 0;

  constructor(parts: LiveConnectionsParts<C>) {
    this.#policy = parts.policy;
    this.#dialer = parts.dialer;
    this.#clock = parts.clock;
    this.#wakeUp = parts.wakeUp;
    this.#tally = parts.tally;
    this.#listener = parts.listener;
    this.idle = new IdleConnections(parts.policy.idleOrder);
    const { reservoir, maxLifetime, maxLifetimeJitter } = parts.policy;
    if (reservoir !== undefined)
      this.#scanner = new ExpiryScanner(
        maxLifetime + maxLifetimeJitter / 2,
        this.idle,
        (connection, reason) => this.retire(connection, reason),
      );
  }

  /** Number of connections being checked. */
  get checking(): number {
    return this.#checking.size;
  }

  /** The live connections, in the order in which they were opened. */
  all(): IterableIterator<PooledConnection<C>> {
    return this.#all.values();
  }

  // ---- in ---------------------------------------------------------------------------------------------------------

  /** A new connection, which is in no list yet. */
  open(connection: C, now: number, lifetime: number, slot: Slot): PooledConnection<C> {
    const expiresAt = now + lifetime;
    const { guardWindow } = this.#policy;
    const lendUntil = this.#scanner === undefined ? expiresAt : expiresAt - guardWindow;
    const pooled = new PooledConnection(connection, ++this.#lastId, now, expiresAt, lendUntil, slot);
    this.#all.add(pooled);
    if (this.#scanner !== undefined) this.#scanUntilItsEnd(pooled, now);
    else if (lifetime !== never) this.#watchExpiry(pooled, expiresAt - guardWindow);
    this.#tally.opened++;
    return pooled;
  }

  becomeIdle(connection: PooledConnection<C>, now: number): void {
    connection.aliveAt = now;
    this.idle.add(connection, now);
    const { idleTimeout, idleKeepsProcessAlive, keepalive } = this.#policy;
    this.#wakeUp.by(now + idleTimeout, idleKeepsProcessAlive);
    if (now + keepalive < this.#nextKeepaliveAt) this.#planKeepalive(now);
    if (connection.heapIndex < 0) this.#watchEnd(connection, now);
  }

  // ---- through ----------------------------------------------------------------------------------------------------

  /**
   * The next idle connection that is ready for use, for one of `callers`. Connections past their end are retired on the
   * way, and those that need a check are checked: as many as there are callers for the outcome.
   */
  nextUsable(now: number, callers: number): PooledConnection<C> | undefined {
    for (;;) {
      const connection = this.idle.next;
      if (connection === undefined) return undefined;
      if (now >= connection.lendUntil) {
        this.idle.remove(connection);
        this.retire(connection, this.tooOld(connection, now, 'checkout'));
      } else if (now - connection.aliveAt > this.#policy.checkAfterIdle) {
        if (this.#checking.size >= callers) return this.#nextFresh(now);
        this.#beginCheck(connection, now);
      } else {
        return connection;
      }
    }
  }

  /** The next idle connection that needs no check, at any place in the list. */
  #nextFresh(now: number): PooledConnection<C> | undefined {
    return this.idle.find((connection) => this.isFresh(connection, now));
  }

  /** True if an idle connection can be used without a check. */
  isFresh(connection: PooledConnection<C>, now: number): boolean {
    return now < connection.lendUntil && now - connection.aliveAt <= this.#policy.checkAfterIdle;
  }

  /** The discard reason of a connection past its `lendUntil`. */
  tooOld(
    connection: PooledConnection<C>,
    now: number,
    foundBy: 'checkout' | 'return' | 'scan',
  ): DiscardReason {
    return tooOld(this.#scanner !== undefined, connection, now, foundBy);
  }

  #beginCheck(connection: PooledConnection<C>, now: number): void {
    this.idle.remove(connection);
    connection.state = 'checking';
    connection.deadline = now + this.#policy.checkTimeout;
    this.#checking.pushTail(connection);
    this.#wakeUp.by(connection.deadline);
    this.#dialer.check(connection);
  }

  /** The answer to a check. `unwanted`: the reason to close the connection even if it works. */
  checked(
    connection: PooledConnection<C>,
    error: Error | undefined,
    unwanted: DiscardReason | undefined,
  ): void {
    if (connection.state !== 'checking') return;
    const now = this.#clock.now();
    this.#checking.remove(connection);
    if (error !== undefined) this.retire(connection, 'failed_check');
    else if (now >= connection.lendUntil) this.retire(connection, this.tooOld(connection, now, 'scan'));
    else if (unwanted !== undefined) this.retire(connection, unwanted);
    else {
      connection.aliveAt = now;
      this.idle.putBack(connection);
      this.#planKeepalive(now);
      if (connection.heapIndex < 0) this.#watchEnd(connection, now);
    }
  }

  /** A connection failed by itself. One in use is retired when it is released. */
  broken(connection: PooledConnection<C>, error: Error, doubted?: (idle: C) => boolean): void {
    const { state } = connection;
    if (state === 'closing' || state === 'gone') return;
    if (state === 'in_use') connection.broken = error;
    else {
      if (state === 'idle') this.idle.remove(connection);
      else this.#checking.remove(connection);
      this.retire(connection, 'broken');
    }
    if (doubted !== undefined) this.#checkIdle(this.#clock.now(), ({ connection: c }) => doubted(c));
  }

  /** None of them is given to a caller before it has answered. */
  #checkIdle(now: number, isMeant: (idle: PooledConnection<C>) => boolean): void {
    for (const connection of [...this.idle].filter(isMeant)) {
      // The answer to an earlier check may have changed what this one is doing.
      if (connection.state === 'idle') this.#beginCheck(connection, now);
    }
  }

  // ---- out --------------------------------------------------------------------------------------------------------

  /** Begins to close a connection that has just left its list. It counts until its socket is closed. */
  retire(connection: PooledConnection<C>, reason: DiscardReason): void {
    this.#leave(connection, reason);
    this.#dialer.close(connection);
  }

  /** Closes a connection that has just left its list, at once. */
  destroy(connection: PooledConnection<C>, reason: DiscardReason): void {
    this.#leave(connection, reason);
    this.#dialer.destroy(connection);
    this.closed(connection);
  }

  /** Closes a connection that opened after its dial had been given up; without a slot, its place was given away too. */
  closeLate(connection: C, now: number, slot: Slot | undefined): void {
    const pooled = new PooledConnection(connection, ++this.#lastId, now, never, never, slot);
    this.#tally.opened++;
    this.#beginClosing(pooled, 'late_dial');
    if (slot !== undefined) {
      this.#dialer.close(pooled);
      return;
    }
    this.#dialer.destroy(pooled);
    this.closed(pooled);
  }

  /** The socket of a closing connection is closed. */
  closed(connection: PooledConnection<C>): void {
    if (connection.state !== 'closing') return;
    this.#closing.remove(connection);
    connection.state = 'gone';
    connection.slot?.free();
    this.#tally.closed++;
    this.#listener?.closed(connection);
  }

  #leave(connection: PooledConnection<C>, reason: DiscardReason): void {
    this.#all.delete(connection);
    if (this.#scanner !== undefined) this.#scanner.forget(connection);
    else this.#expiries.remove(connection);
    connection.slot?.beginClosing();
    this.#beginClosing(connection, reason);
  }

  #beginClosing(connection: PooledConnection<C>, reason: DiscardReason): void {
    connection.state = 'closing';
    connection.reason = reason;
    connection.deadline = this.#clock.now() + this.#policy.closeTimeout;
    this.#closing.pushTail(connection);
    this.#wakeUp.by(connection.deadline);
    this.#tally.discarded[reason]++;
    this.#listener?.discarded(connection, reason);
  }

  // ---- in time ----------------------------------------------------------------------------------------------------

  /** Ends the checks and the closings that take too long. */
  timeOut(now: number): void {
    let isServerSilent = false;
    for (let c = this.#checking.head; c !== undefined && c.deadline <= now; c = this.#checking.head) {
      this.checked(c, new CheckTimeoutError(this.#policy.checkTimeout), undefined);
      isServerSilent = true;
    }
    // The server may have lost the other connections, too.
    if (isServerSilent) this.#checkIdle(now, () => true);
    for (let c = this.#closing.head; c !== undefined && c.deadline <= now; c = this.#closing.head) {
      this.#dialer.destroy(c);
      this.closed(c);
    }
  }

  /** Handles lifetime events that are due: entering the guard window, after which the connection is no spare, or the end. */
  turn(now: number, situation: ScanSituation): void {
    this.#scanner?.scan(now, situation);
    for (let c = this.#expiries.peek(); c !== undefined && c.heapKey <= now; c = this.#expiries.peek()) {
      this.#expiries.remove(c);
      if (now < c.expiresAt) {
        if (c.state === 'idle') this.idle.markExpiring(c);
        else c.expiring = true;
        this.#watchExpiry(c, c.expiresAt);
      } else if (c.state === 'idle') {
        this.idle.remove(c);
        this.retire(c, 'max_lifetime');
      }
    }
  }

  /** The alarm may ring a fraction early: one that was in use then, and is back before its end, is watched again. */
  #watchEnd(connection: PooledConnection<C>, now: number): void {
    if (this.#scanner !== undefined) this.#scanUntilItsEnd(connection, now);
    else if (connection.expiresAt !== never) this.#watchExpiry(connection, connection.expiresAt);
  }

  #scanUntilItsEnd(connection: PooledConnection<C>, now: number): void {
    const scanner = this.#scanner as ExpiryScanner<C>;
    scanner.watch(connection, now);
    this.#wakeUp.by(scanner.nextScanAt);
  }

  #watchExpiry(connection: PooledConnection<C>, at: number): void {
    connection.heapKey = at;
    this.#expiries.push(connection);
    this.#wakeUp.by(at);
  }

  /** Closes connections that are idle for too long, as long as `isReapable()` holds. */
  reap(now: number, isReapable: () => boolean): void {
    for (let c = this.idle.longestIdle; c !== undefined && isReapable(); c = this.idle.longestIdle) {
      if (c.idleSince + this.#policy.idleTimeout > now) return;
      this.idle.remove(c);
      this.retire(c, 'idle_timeout');
    }
  }

  keepAlive(now: number): void {
    if (now < this.#nextKeepaliveAt) return;
    this.#checkIdle(now, (connection) => connection.aliveAt + this.#policy.keepalive <= now);
    this.#nextKeepaliveAt = never;
    for (const connection of this.idle) this.#planKeepalive(connection.aliveAt);
  }

  /** A connection that has just shown that it works is due again after the interval. */
  #planKeepalive(aliveAt: number): void {
    this.#nextKeepaliveAt = Math.min(this.#nextKeepaliveAt, aliveAt + this.#policy.keepalive);
    this.#wakeUp.by(this.#nextKeepaliveAt);
  }

  /** Sets the alarm for whatever is due next. */
  rearm(isReapable: boolean): void {
    this.#wakeUp.by(this.#checking.head?.deadline ?? never);
    this.#wakeUp.by(this.#closing.head?.deadline ?? never);
    this.#wakeUp.by(this.#expiries.peek()?.heapKey ?? never);
    this.#wakeUp.by(this.#scanner?.nextScanAt ?? never);
    this.#wakeUp.by(this.#nextKeepaliveAt);
    const longestIdle = this.idle.longestIdle;
    if (longestIdle === undefined || !isReapable) return;
    this.#wakeUp.by(longestIdle.idleSince + this.#policy.idleTimeout, this.#policy.idleKeepsProcessAlive);
  }
}

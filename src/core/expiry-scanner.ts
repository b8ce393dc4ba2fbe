/**
 * Handles connections that reach the end of their lives while idle, so that a checkout does not have to. The scanner
 * looks only at connections that end, never at all of them.
 *
 * Where many would end together, some are replaced ahead of time, as fast as the source opens new ones and no faster:
 * when the crowd's time comes, it has thinned out. The replacement comes first where the limit leaves a free slot.
 * Otherwise a slot is freed for it, for a few at a time, so that a stopped source costs no more than those.
 */
import { Heap } from '../kernel/heap.js';
import { ExpiryCalendar } from './expiry-calendar.js';
import type { IdleConnections } from './idle-connections.js';
import type { PooledConnection } from './pooled-connection.js';
import type { DiscardReason } from './reasons.js';
import { tooOld } from './reservoir.js';

const intervalMs = 1_000;
/** Replacing ahead of time may want to go on sooner than the next scan; not sooner than this. */
const shortestPauseMs = 10;
/** Connections in use are passed over, but no more than this many in one scan. */
const mostPassedOver = 64;

/** The inputs of a scan; read anew after each step. */
export interface ScanSituation {
  /** Connections that are wanted and not there. */
  readonly missing: number;
  /** Connections that could be opened beside existing and missing ones. */
  readonly spareRoom: number;
  readonly wouldFillAPlace: boolean;
  readonly isShortOfLeases: boolean;
  /** Connections that can be opened in a millisecond. */
  readonly perMs: number;
  /** The time that one dial takes. */
  readonly dialMs: number;
}

export class ExpiryScanner<C> {
  readonly #idle: IdleConnections<C>;
  readonly #discard: (connection: PooledConnection<C>, reason: DiscardReason) => void;
  /** Live connections by the end of their lending. */
  readonly #byEnd = new Heap<PooledConnection<C>>();
  /** The ends of connections that are not marked. */
  readonly #calendar: ExpiryCalendar;
  /** To be closed as soon as their replacements are open. Handed out until then like any other. */
  readonly #marked = new Set<PooledConnection<C>>();
  #nextScanAt = Infinity;

  /** `discard`: takes one out of service that has just left the list of the idle. */
  constructor(
    longestLifeMs: number,
    idle: IdleConnections<C>,
    discard: (connection: PooledConnection<C>, reason: DiscardReason) => void,
  ) {
    this.#calendar = new ExpiryCalendar(longestLifeMs);
    this.#idle = idle;
    this.#discard = discard;
  }

  get nextScanAt(): number {
    return this.#nextScanAt;
  }

  watch(connection: PooledConnection<C>, now: number): void {
    connection.heapKey = connection.lendUntil;
    this.#byEnd.push(connection);
    if (!connection.expiring) this.#calendar.add(connection.lendUntil);
    if (this.#nextScanAt === Infinity) this.#nextScanAt = now + intervalMs;
  }

  /** The connection is being closed. */
  forget(connection: PooledConnection<C>): void {
    if (connection.heapIndex < 0) return;
    this.#byEnd.remove(connection);
    if (!this.#marked.delete(connection) && !connection.expiring) this.#calendar.remove(connection.lendUntil);
  }

  scan(now: number, situation: ScanSituation): void {
    if (now < this.#nextScanAt) return;
    this.#discardEnded(now);
    this.#discardReplaced(situation);
    this.#replaceAhead(now, situation);
    if (this.#byEnd.size === 0) {
      this.#nextScanAt = Infinity;
      return;
    }
    const soonest = now + (situation.isShortOfLeases ? intervalMs : pauseOf(situation));
    const wanted =
      this.#marked.size > 0 ? soonest : Math.max(soonest, this.#calendar.quietUntil - leadOf(situation));
    this.#nextScanAt = Math.min(now + intervalMs, wanted);
  }

  #discardEnded(now: number): void {
    for (let c = this.#byEnd.peek(); c !== undefined && c.lendUntil <= now; c = this.#byEnd.peek()) {
      if (c.state === 'idle') {
        this.#idle.remove(c);
        this.#discard(c, tooOld(true, c, now, 'scan'));
      } else {
        // In use: its release finds it.
        this.forget(c);
        c.expiring = true;
      }
    }
  }

  #discardReplaced(situation: ScanSituation): void {
    let replaced = this.#marked.size - situation.missing;
    if (replaced <= 0) return;
    for (const c of [...this.#marked]) {
      if (c.state !== 'idle') continue;
      this.#idle.remove(c);
      this.#discard(c, 'expiring_soon_on_scan');
      if (--replaced === 0) return;
    }
  }

  #replaceAhead(now: number, situation: ScanSituation): void {
    const first = this.#byEnd.peek();
    // While the source is busy, replacing gains nothing, whatever is overdue.
    if (first === undefined || !(situation.spareRoom > 0 || situation.wouldFillAPlace)) return;
    const overdue = this.#calendar.overdue(now + leadOf(situation), first.lendUntil, situation.perMs);
    if (overdue === 0) return;
    for (const c of this.#idleOfTheCrowd(overdue)) {
      // An earlier step may have changed this connection's state.
      if (c.state !== 'idle' || c.expiring) continue;
      if (situation.spareRoom > 0) this.#mark(c);
      else if (situation.wouldFillAPlace) {
        this.#idle.remove(c);
        this.#discard(c, 'expiring_soon_on_scan');
      } else return;
    }
  }

  /** Up to `count` idle connections of those that end too close together. */
  #idleOfTheCrowd(count: number): PooledConnection<C>[] {
    const idle: PooledConnection<C>[] = [];
    const lookedAt: PooledConnection<C>[] = [];
    const { crowdEndsBy } = this.#calendar;
    while (idle.length < count && lookedAt.length < count + mostPassedOver) {
      const c = this.#byEnd.peek();
      if (c === undefined || c.lendUntil > crowdEndsBy) break;
      this.#byEnd.remove(c);
      lookedAt.push(c);
      if (c.state === 'idle' && !c.expiring) idle.push(c);
    }
    for (const c of lookedAt) this.#byEnd.push(c);
    return idle;
  }

  #mark(connection: PooledConnection<C>): void {
    this.#calendar.remove(connection.lendUntil);
    this.#idle.markExpiring(connection);
    this.#marked.add(connection);
  }
}

/** Time until the next scan while replacements are due: about as long as the source takes for one connection. */
function pauseOf({ perMs }: ScanSituation): number {
  return Math.max(shortestPauseMs, 1 / perMs);
}

/** How much earlier a replacement must begin to be ready in time. */
function leadOf(situation: ScanSituation): number {
  return situation.dialMs + pauseOf(situation);
}

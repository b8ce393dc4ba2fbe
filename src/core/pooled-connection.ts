/** A connection as the pool sees it: its data, its state and the list it is in. */
import type { HeapItem } from '../kernel/heap.js';
import type { Linked } from '../kernel/linked-list.js';
import type { Slot } from './ledger.js';
import type { DiscardReason } from './reasons.js';

/**
 *     idle <-> in_use
 *     idle <-> checking
 *     idle, in_use, checking --> closing --> gone
 *
 * Each of the first four states is also the list of the pool in which the connection stands.
 */
export type ConnectionState = 'idle' | 'in_use' | 'checking' | 'closing' | 'gone';

/** Only the engine changes fields other than the first five and `uncountedUses`. */
export class PooledConnection<C> implements Linked<PooledConnection<C>>, HeapItem {
  readonly connection: C;
  /** Counts the connections of its pool, from 1. */
  readonly id: number;
  readonly bornAt: number;
  /** The end of its life; Infinity: no end. */
  readonly expiresAt: number;
  /** Not handed out after this time: its end or, with a reservoir, the start of the guard window before it. */
  readonly lendUntil: number;

  state: ConnectionState = 'idle';
  /** Its slot in the ledger; undefined if it opened after the slot had been given up. */
  slot: Slot | undefined;
  /** Incremented with each checkout: a release must name the checkout that it ends. */
  generation = 0;
  /** Checkouts that do not count towards `maxUses`; incremented by the caller before it releases the connection. */
  uncountedUses = 0;
  idleSince = Number.NaN;
  inUseSince = Number.NaN;
  /** Time of the last proof that the connection works. */
  aliveAt = Number.NaN;
  /** Time by which its check or its closing must be over. */
  deadline = Number.NaN;
  /** Near its end and to be replaced: still handed out, but no longer a spare. */
  expiring = false;
  /** The pool itself has ended its checkout, and its caller has not given it back yet. */
  isTakenAway = false;
  /** The error that broke it while it was in use. */
  broken: Error | undefined;
  reason: DiscardReason | undefined;
  /** The caller that uses the connection, where leaks are detected. */
  holder: unknown;
  leakReported = false;

  previous: PooledConnection<C> | undefined;
  next: PooledConnection<C> | undefined;
  heapKey = Number.NaN;
  heapIndex = -1;

  constructor(
    connection: C,
    id: number,
    bornAt: number,
    expiresAt: number,
    lendUntil: number,
    slot: Slot | undefined,
  ) {
    this.connection = connection;
    this.id = id;
    this.bornAt = bornAt;
    this.expiresAt = expiresAt;
    this.lendUntil = lendUntil;
    this.slot = slot;
  }

  /** Number of checkouts. */
  get uses(): number {
    return this.generation;
  }
}

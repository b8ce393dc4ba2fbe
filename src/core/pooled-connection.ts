/** A connection as the pool keeps it: what it is, where in its life it stands, and which list it is in. */
import type { HeapItem } from '../kernel/heap.js';
import type { Linked } from '../kernel/linked-list.js';
import type { Slot } from './ledger.js';
import type { DiscardReason } from './reasons.js';

/**
 *     idle <-> lent
 *     idle <-> checking
 *     idle, lent, checking --> closing --> gone
 *
 * Each of the first four states is also the list of the pool in which the connection stands.
 */
export type ConnectionState = 'idle' | 'lent' | 'checking' | 'closing' | 'gone';

/** All fields but the first five are changed by the engine alone. */
export class PooledConnection<C> implements Linked<PooledConnection<C>>, HeapItem {
  readonly connection: C;
  /** Counts the connections of its pool, from 1. */
  readonly id: number;
  readonly bornAt: number;
  /** The end of its life; Infinity: no end. */
  readonly expiresAt: number;
  /** Not lent from then on: its end, or with a reservoir the beginning of the guard window before it. */
  readonly lendUntil: number;

  state: ConnectionState = 'idle';
  /** Its place in the ledger; undefined when it came after its place had been given up. */
  slot: Slot | undefined;
  /** Goes up with each checkout: a release must name the checkout that it ends. */
  generation = 0;
  idleSince = Number.NaN;
  lentAt = Number.NaN;
  /** When it last showed that it works. */
  aliveAt = Number.NaN;
  /** Until when its check or its closing must be over. */
  deadline = Number.NaN;
  /** Near its end, and to be replaced: still lent, but no spare any more. */
  expiring = false;
  /** The error that broke it while it was in use. */
  broken: Error | undefined;
  reason: DiscardReason | undefined;
  /** The caller that has it, where leaks are looked for. */
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
    this.broken = undefined;
    this.reason = undefined;
    this.holder = undefined;
    this.previous = undefined;
    this.next = undefined;
  }

  /** How often it was lent. */
  get uses(): number {
    return this.generation;
  }
}

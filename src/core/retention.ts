/** Decides which connections a pool keeps, and why it closes the others. */
import type { Excess } from './excess.js';
import type { IdleConnections } from './idle-connections.js';
import type { Ledger } from './ledger.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolPolicy } from './pool-policy.js';
import type { PooledConnection } from './pooled-connection.js';
import type { DiscardReason } from './reasons.js';
import type { Refiller } from './refiller.js';
import type { ServiceState } from './service-state.js';
import type { CallerQueue } from './waiters.js';

export interface RetentionParts<C> {
  readonly policy: PoolPolicy;
  readonly ledger: Ledger;
  readonly excess: Excess;
  readonly connections: LiveConnections<C>;
  readonly waiters: CallerQueue<C>;
  readonly refiller: Refiller;
  readonly service: ServiceState<C>;
}

const never = Infinity;

export class Retention<C> {
  readonly #policy: PoolPolicy;
  readonly #ledger: Ledger;
  readonly #excess: Excess;
  readonly #connections: LiveConnections<C>;
  readonly #idle: IdleConnections<C>;
  readonly #waiters: CallerQueue<C>;
  readonly #refiller: Refiller;
  readonly #service: ServiceState<C>;
  /** With this many ready, the next connection released is one too many. */
  readonly #enoughReady: number;

  constructor(parts: RetentionParts<C>) {
    this.#policy = parts.policy;
    this.#ledger = parts.ledger;
    this.#excess = parts.excess;
    this.#connections = parts.connections;
    this.#idle = parts.connections.idle;
    this.#waiters = parts.waiters;
    this.#refiller = parts.refiller;
    this.#service = parts.service;
    this.#enoughReady = parts.policy.reservoir?.targetReady ?? never;
  }

  /** The quick check for a release without an error, in a pool that is open and within its limit. */
  isKeepable(connection: PooledConnection<C>, now: number): boolean {
    return (
      (this.#enoughReady === never || this.#idle.spares < this.#enoughReady) &&
      connection.broken === undefined &&
      now < connection.lendUntil &&
      connection.generation - connection.uncountedUses < this.#policy.maxUses
    );
  }

  /** The reason not to keep a released connection; undefined if it is kept. */
  reasonToRetire(connection: PooledConnection<C>, now: number, error: unknown): DiscardReason | undefined {
    if (error !== undefined) return 'released_with_error';
    if (connection.broken !== undefined) return 'broken';
    if (connection.generation - connection.uncountedUses >= this.#policy.maxUses) return 'max_uses';
    if (now >= connection.lendUntil) return this.#connections.tooOld(connection, now, 'return');
    if (this.#idle.spares >= this.#enoughReady && this.#waiters.size === 0) return 'reservoir_full';
    return this.reasonNotToKeep();
  }

  /** The reason not to keep even a good connection; undefined if the pool has a use for it. */
  reasonNotToKeep(): DiscardReason | undefined {
    if (this.#service.current === 'draining' && this.#waiters.size === 0) return 'drained';
    return this.#excess.reason;
  }

  /** True if there are more connections than are kept while idle. */
  isReapable(): boolean {
    const { minIdle, idleFloor } = this.#policy;
    const floor = Math.min(idleFloor, this.#refiller.mostKept);
    return this.#ledger.pending + this.#ledger.live > floor && this.#idle.spares > minIdle;
  }
}

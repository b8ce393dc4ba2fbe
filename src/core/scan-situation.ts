/** The state of a pool, for the scanner that replaces connections ahead of time. */
import type { Dialing } from './dialing.js';
import type { ScanSituation } from './expiry-scanner.js';
import type { Ledger } from './ledger.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolPolicy } from './pool-policy.js';

/** Read anew after each step of a scan. */
export class PoolSituation<C> implements ScanSituation {
  readonly #policy: PoolPolicy;
  readonly #ledger: Ledger;
  readonly #connections: LiveConnections<C>;
  readonly #dialing: Dialing<C>;

  constructor(policy: PoolPolicy, ledger: Ledger, connections: LiveConnections<C>, dialing: Dialing<C>) {
    this.#policy = policy;
    this.#ledger = ledger;
    this.#connections = connections;
    this.#dialing = dialing;
  }

  /** Connections that are wanted and not there. */
  get missing(): number {
    const { live, limit } = this.#ledger;
    const { idle, checking } = this.#connections;
    const inUse = live - idle.size - checking;
    return Math.max(0, Math.min(this.#policy.minIdle, limit - inUse) - idle.spares);
  }

  /** Connections that could be opened beside existing and missing ones. */
  get spareRoom(): number {
    return this.#ledger.room - Math.max(0, this.missing - this.#dialing.dials.underWay);
  }

  /**
   * True if a slot freed now would be filled without delay: missing connections are already being opened, and more dials
   * are allowed. Otherwise the source is busy, and freeing slots would only cost lives.
   */
  get wouldFillAPlace(): boolean {
    const { underWay } = this.#dialing.dials;
    return this.missing <= underWay && underWay < this.#tolerance;
  }

  /** No connection can be opened before a lease is granted. */
  get isShortOfLeases(): boolean {
    return this.#dialing.isShortOfLeases;
  }

  /** Connections that the source opens in a millisecond. */
  get perMs(): number {
    return Math.min(this.#permitsPerMs, this.#tolerance / this.dialMs);
  }

  /** How many connections may be missing at the same time for the sake of replacement. */
  get #tolerance(): number {
    const { minIdle, dialLimit, reservoir } = this.#policy;
    const margin = minIdle - (reservoir?.lowWatermark ?? 0);
    // Without a margin there is a gap in any case. Keep it no wider than it takes to keep the source busy: as many as
    // are being opened at its speed, and one whose slot is being freed.
    const wanted = margin > 0 ? margin : Math.ceil(this.#permitsPerMs * this.dialMs) + 1;
    return Math.max(1, Math.min(wanted, dialLimit, this.#policy.max));
  }

  get #permitsPerMs(): number {
    const rate = this.#policy.rateLimiter?.rate ?? Number.NaN;
    // A rate that is no number is taken for an unknown one.
    return rate > 0 ? rate / 1_000 : Infinity;
  }

  /** The time that one dial takes. */
  get dialMs(): number {
    return Math.max(1, this.#dialing.meanDialMs);
  }
}
